//! The bridge, with real servers of MCP, in real sandboxes, and with servers that mean no good.

mod hostile;
pub(crate) mod rig;
mod sealed;
mod servers;
mod web;

use rig::House;

/// A test: what it shows, and how; the reason if it can't be shown here.
pub(crate) type Case = (&'static str, fn(&House) -> Result<(), String>);

pub(crate) fn cases() -> Vec<Case> {
    [servers::CASES, sealed::CASES, hostile::CASES, web::CASES].concat()
}
