//! Tests of workspace tools in real sandboxes, and with malicious workspaces.

mod call;
mod code;
mod everywhere;
mod files;
mod git;
mod hostile_files;
mod hostile_git;
mod leaving_nothing;
mod one_sandbox;
pub(crate) mod rig;

use rig::WorkbenchFactory;

/// A test: its name and function, which returns the reason if it can't run here.
pub(crate) type Case = (&'static str, fn(&WorkbenchFactory) -> Result<(), String>);

pub(crate) fn cases() -> Vec<Case> {
    [
        files::CASES,
        hostile_files::CASES,
        code::CASES,
        leaving_nothing::CASES,
        git::CASES,
        hostile_git::CASES,
        everywhere::CASES,
    ]
    .concat()
}
