//! Scripts in a Python that has the clients of the three dialects.

use belljar_testkit::clients;
use std::process::{Command, Stdio};

/// Runs a script with these arguments; returns the JSON that it prints last. If the clients are not installed, the
/// error gives the reason.
pub(crate) fn run(script: &str, arguments: &[&str]) -> Result<serde_json::Value, String> {
    let python = clients::python()?;
    let ran = Command::new(python)
        .args(["-I", "-c", script])
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{stdout}\n{stderr}");
    Ok(serde_json::from_str(stdout.lines().last().unwrap_or_default()).unwrap())
}
