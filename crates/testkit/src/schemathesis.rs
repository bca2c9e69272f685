//! Schemathesis, from PyPI: asks a server for everything that its OpenAPI document says may be asked for, and much that
//! may not, and holds the answers against the document.

use crate::clients::environment;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

const REQUIREMENTS: &str = include_str!("schemathesis/requirements.txt");

/// What a schema can't say.
const HOOKS: &str = include_str!("schemathesis/hooks.py");

/// Makes what it takes, if that isn't there yet.
///
/// # Errors
/// Why it can't be had here.
pub fn install() -> Result<PathBuf, String> {
    environment("schemathesis", REQUIREMENTS, true)
}

/// Asks a server, and says what was found: whether all is well, and the report. The same seed asks for the same.
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
        // How many documents its generator throws away says nothing of what is answered to the others.
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
