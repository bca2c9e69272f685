//! The `belljar` command. Started under the name of the runner, it is the runner: one file holds
//! everything that a sandbox is given to run.

#![forbid(unsafe_code)]

mod access;
mod approvals;
mod backend;
mod client;
mod command;
mod configuration;
mod error;
mod git;
mod grants;
mod kept;
mod limits;
mod listen_check;
mod models;
mod output;
mod programs;
mod progress;
mod prompt;
mod sandbox_args;
mod state;
mod summary;
mod terminal;
mod trust;
mod trust_review;
mod trusted_files;
mod usage_text;
mod web;

use belljar_sandbox::subprocess;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let started_as = std::env::args_os().next().unwrap_or_default();
    let arguments = std::env::args_os().skip(1);
    explain_missing_random_devices();
    belljar_store::audit::anchor::install_source(configuration::anchors);
    match Path::new(&started_as).file_name().and_then(|name| name.to_str()) {
        Some("cynode-sba") => return belljar_runner::main_with(arguments),
        Some(belljar_sandbox::session::KEEPER) => return command::session::keep(),
        Some(subprocess::SUPERVISOR) => return subprocess::main_inside(),
        Some(belljar_sandbox::canary::PROGRAM) => return belljar_sandbox::canary::main_inside(arguments),
        Some(belljar_sandbox::docker::own_program::NAME) => {
            return belljar_sandbox::docker::own_program::main(arguments);
        }
        _ => {}
    }
    let code = command::run().unwrap_or_else(|error| error.report());
    match output::outcome() {
        // An exit code of the command's own failure takes precedence over that of failed output.
        Err(error) if code == ExitCode::SUCCESS => error.report(),
        Err(error) => {
            error.report();
            code
        }
        Ok(()) => code,
    }
}

/// Has a process that finds no random numbers say what is missing: ids are made by a library that panics then. This program is static, so that
/// the library takes them from devices.
fn explain_missing_random_devices() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_about_them =
            panic.payload_as_str().is_some_and(|text| text.to_ascii_lowercase().contains("rng"));
        let missing = ["/dev/random", "/dev/urandom"].into_iter().find(|device| !Path::new(device).exists());
        let Some(device) = missing.filter(|_| is_about_them) else { return usual(panic) };
        output::tell(&format!(
            "belljar: {device} is missing, so there are no random numbers to make ids of; mount /dev here, or make the device (`mknod -m 666 /dev/random c 1 8`, `mknod -m 666 /dev/urandom c 1 9`)\n"
        ));
        std::process::exit(i32::from(error::OWN_FAILURE));
    }));
}
