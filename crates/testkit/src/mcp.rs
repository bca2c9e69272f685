//! Real programs that speak MCP: the official SDK for Python, and from npm the conformance suite, the inspector and
//! servers. Installed and kept like those of [`crate::clients`].

use crate::clients::{environment, install_packages, node};
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const REQUIREMENTS: &str = include_str!("mcp/requirements.txt");
const PACKAGES: &str = include_str!("mcp/package.json");
const CLIENT: &str = include_str!("mcp/client.py");
const LOCK: &str = include_str!("mcp/package-lock.json");

/// A Python with the package `mcp`.
///
/// # Errors
/// Why there is none here.
pub fn python() -> Result<PathBuf, String> {
    sdk().map(|folder| folder.join("bin/python"))
}

/// The folder of that Python, to be lent to a sandbox at the same path.
///
/// # Errors
/// Why there is none here.
pub fn sdk() -> Result<PathBuf, String> {
    environment("mcp-sdk", REQUIREMENTS, true)
}

/// A client of that SDK, to be given the arguments and the environment that [`told`] is for.
///
/// # Errors
/// Why there is none here.
pub fn client(mode: &str) -> Result<Command, String> {
    let mut command = Command::new(python()?);
    command.args(["-c", CLIENT, mode]);
    Ok(command)
}

/// Returns the answers that such a client got for these calls, each a name and arguments. `$session` stands for the
/// session that was opened last.
pub fn told(client: &mut Command, calls: &Value) -> Value {
    let streams = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().expect("a client that starts");
    let mut input = child.stdin.take().expect("its standard input");
    write!(input, "{calls}").expect("a client that reads");
    drop(input);
    let output = child.wait_with_output().expect("a client that ends");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the client has failed: {complaint}");
    serde_json::from_slice(&output.stdout).expect("a client that prints JSON")
}

/// Makes what they take, if that isn't there yet.
///
/// # Errors
/// Why it can't be had here.
pub fn install() -> Result<PathBuf, String> {
    sdk()?;
    packages_folder()
}

/// The inspector, to be given arguments.
///
/// # Errors
/// Why there is none here.
pub fn inspector() -> Result<Command, String> {
    let mut command = Command::new(node()?);
    command.arg(packages_folder()?.join("node_modules/.bin/mcp-inspector"));
    Ok(command)
}

/// A program of one of these packages, to be started by its Node.
///
/// # Errors
/// Why there is none here.
pub fn program(script: &str) -> Result<Command, String> {
    let mut command = Command::new(node()?);
    command.arg(packages_folder()?.join("node_modules/@modelcontextprotocol").join(script));
    Ok(command)
}

/// The folder with the packages, to be lent to a sandbox.
///
/// # Errors
/// Why there is none here.
pub fn packages_folder() -> Result<PathBuf, String> {
    install_packages("mcp", PACKAGES, LOCK)
}
