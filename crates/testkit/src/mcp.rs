//! Real programs that speak MCP: the conformance suite, the Inspector, and servers, all from npm.

use crate::clients::{install_packages, node};
use std::path::PathBuf;
use std::process::Command;

const PACKAGES: &str = include_str!("mcp/package.json");
const LOCK: &str = include_str!("mcp/package-lock.json");

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
