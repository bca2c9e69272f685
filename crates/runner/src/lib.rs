//! Runs one job inside a sandbox: its steps, in order, then its agent, and writes the result.
//!
//! Course of a job: [`invocation`] parses where it comes from. [`run`] reads it, has `policy` admit it, carries out its
//! [`step`]s, lets the [`agent`] work if there is one, and collects its artifacts. [`result_file`] writes the result
//! atomically. A result is always complete, even after a failure.
//!
//! If a tool of the host requests a single action, it performs that instead ([`workbench`]).
//!
//! No network but the servers that the node names ([`status`], [`http_client`]), no async runtime, no shell. The runner
//! trusts neither the job nor what its steps leave behind.

#![forbid(unsafe_code)]

pub mod patch;

mod agent;
mod artifacts;
mod atomic_file;
mod cancellation;
mod content;
mod deadline;
mod directory;
mod excerpt;
mod failure_code;
mod glob;
mod http_client;
mod invocation;
mod job_document;
mod log;
mod mcp;
mod network_need;
mod own_process;
mod process;
mod result_file;
mod run;
mod status;
mod step;
mod walk;
mod workbench;

use invocation::Invocation;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Runs the command line; `arguments` are those after the program's name.
///
/// Takes over the process: it becomes the reaper of its descendants, changes its directory and handles signals.
pub fn main_with(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let said = match Invocation::parse(arguments) {
        Ok(Invocation::Run(options)) => return run::run(&options),
        Ok(Invocation::Workbench) => return workbench::serve(),
        Ok(Invocation::Tree { way, directory }) => return workbench::tree::carry(way, &directory),
        Ok(Invocation::Help) => write!(std::io::stdout(), "{}", invocation::USAGE),
        Ok(Invocation::Version) => writeln!(std::io::stdout(), "cynode-sba {}", env!("CARGO_PKG_VERSION")),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cynode-sba: {error}\n\n{}", invocation::USAGE);
            return ExitCode::FAILURE;
        }
    };
    // If stdout has no reader, a failed write does no harm.
    let _ = said;
    ExitCode::SUCCESS
}
