//! `cynode-sba`: runs one job inside a sandbox.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    belljar_runner::main_with(std::env::args_os().skip(1))
}
