//! Tests of the bridge with real MCP servers in real sandboxes, and with malicious servers.

mod hostile;
pub(crate) mod rig;
mod sealed;
mod servers;
mod web;

use rig::SandboxFactory;

/// A test: its name and function, which returns the reason if it can't run here.
pub(crate) type Case = (&'static str, fn(&SandboxFactory) -> Result<(), String>);

pub(crate) fn cases() -> Vec<Case> {
    [servers::CASES, sealed::CASES, hostile::CASES, web::CASES].concat()
}
