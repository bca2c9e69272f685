//! The programs that run in the machine, from wherever cargo has put them.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Static programs.
pub(crate) struct Built {
    pub(crate) belljar: PathBuf,
    pub(crate) conformance: PathBuf,
}

/// Builds them, if whoever runs all tests has not done so already. The whole workspace is named because what a
/// dependency is built with depends on who else is.
pub(crate) fn programs() -> Built {
    Built {
        belljar: built(&["build", "--workspace", "--bin", "belljar"]),
        conformance: built(&["test", "--no-run", "--workspace", "--test", "conformance"]),
    }
}

/// The one program that this makes.
fn built(arguments: &[&str]) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).args(["--quiet", "--message-format", "json"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let name = arguments.last().copied().unwrap_or_default();
    let mut executables = messages
        .filter(|message| message["target"]["name"] == name)
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from));
    executables.next().unwrap()
}
