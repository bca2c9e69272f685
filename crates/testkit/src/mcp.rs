//! Real clients of MCP: the official SDK for Python, and the inspector, which is one for the command line. Made and kept as
//! [`crate::clients`] are.

use crate::clients::{environment, node, packages};
use std::path::PathBuf;
use std::process::Command;

const REQUIREMENTS: &str = include_str!("mcp/requirements.txt");
const MANIFEST: &str = include_str!("mcp/package.json");
const LOCK: &str = include_str!("mcp/package-lock.json");

/// The folder of the inspector.
const NAME: &str = "mcp-clients";

/// A Python with the package `mcp`.
///
/// # Errors
/// Why there is none here.
pub fn python() -> Result<PathBuf, String> {
    environment("mcp-sdk", REQUIREMENTS, true).map(|folder| folder.join("bin/python"))
}

/// Makes what they take, if that isn't there yet.
///
/// # Errors
/// Why it can't be had here.
pub fn install() -> Result<PathBuf, String> {
    python()?;
    packages(NAME, MANIFEST, LOCK)
}

/// The inspector, to be given arguments.
///
/// # Errors
/// Why there is none here.
pub fn inspector() -> Result<Command, String> {
    let node = node()?;
    let packages = packages(NAME, MANIFEST, LOCK)?;
    let mut command = Command::new(node);
    command.arg(packages.join("node_modules/.bin/mcp-inspector"));
    Ok(command)
}
