//! Schemathesis, from PyPI: sends a server all kinds of requests that its OpenAPI document allows, and many that it
//! doesn't, and compares the answers with the document.

use crate::clients::environment;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

const REQUIREMENTS: &str = include_str!("schemathesis/requirements.txt");

/// Hooks for constraints that a schema can't express.
const HOOKS: &str = include_str!("schemathesis/hooks.py");

/// Makes what it takes, if that isn't there yet.
///
/// # Errors
/// Why it can't be had here.
pub fn install() -> Result<PathBuf, String> {
    environment("schemathesis", REQUIREMENTS, true)
}

/// Tests a server; returns true if all is well, and the report. The same seed gives the same requests.
///
/// # Errors
/// Why it can't be had here.
pub fn ask(server: SocketAddr, document: &str, token: &str, seed: u64) -> Result<(bool, String), String> {
    const EXAMPLES: &str = "30";
    let environment = install()?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    std::fs::write(folder.path().join("hooks.py"), HOOKS).map_err(|error| error.to_string())?;
    let url = format!("http://{server}");
    let asked = Command::new(environment.join("bin/python"))
        .arg(environment.join("bin/schemathesis"))
        .args(["run", &format!("{url}{document}"), "--url", &url])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .args(["--phases", "examples,coverage,fuzzing", "--checks", "all", "--max-examples", EXAMPLES])
        // The number of generated documents that its generator filters out doesn't affect the tests of the others.
        .args(["--suppress-health-check", "filter_too_much"])
        .args(["--seed", &seed.to_string(), "--request-timeout", "60", "--no-color"])
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder.path())
        .env("PYTHONPATH", folder.path())
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .output()
        .map_err(|error| error.to_string())?;
    let report =
        format!("{}{}", String::from_utf8_lossy(&asked.stdout), String::from_utf8_lossy(&asked.stderr));
    Ok((asked.status.success(), report))
}
