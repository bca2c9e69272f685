//! The programs that run in the machine, from cargo's target folder.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Static programs.
pub(crate) struct StaticPrograms {
    pub(crate) belljar: PathBuf,
    pub(crate) conformance: PathBuf,
}

/// Builds them, unless the run of all tests has done so already. The command must be the same, for the whole workspace and
/// with a test, so that cargo chooses the same features of dependencies. Other features would replace the `belljar` that
/// other tests are running at the moment.
pub(crate) fn programs() -> StaticPrograms {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--workspace", "--bin", "belljar", "--test", "conformance"]);
    command.args(["--quiet", "--message-format", "json"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let messages: Vec<Value> =
        messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect();
    let executable = |name: &str, kind: &str| {
        let is_it = |message: &&Value| {
            message["target"]["name"] == name
                && message["target"]["kind"][0] == kind
                && message["executable"].is_string()
        };
        PathBuf::from(messages.iter().find(is_it).unwrap()["executable"].as_str().unwrap())
    };
    StaticPrograms { belljar: executable("belljar", "bin"), conformance: executable("conformance", "test") }
}

/// Returns the names of the native backend's tests in the program `conformance`.
pub(crate) fn native_tests(conformance: &Path) -> Vec<String> {
    let output =
        Command::new(conformance).args(["--list", "--format", "terse", "native::"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).unwrap();
    listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}
