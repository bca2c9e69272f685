//! The `belljar` command. Started under the name of the runner, it is the runner: one file holds both, so that a
//! sandbox finds in it whatever it needs.

#![forbid(unsafe_code)]

mod command;
mod error;
mod lending;
mod progress;
mod state;
mod summary;
mod terminal;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let started_as = std::env::args_os().next().unwrap_or_default();
    if Path::new(&started_as).file_name().is_some_and(|name| name == "cynode-sba") {
        return belljar_runner::main_with(std::env::args_os().skip(1));
    }
    match command::run() {
        Ok(code) => code,
        Err(error) => error.report(),
    }
}
