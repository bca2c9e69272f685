//! Runs a job inside the sandbox.
#![forbid(unsafe_code)]

pub mod patch;

/// The runner's main function.
pub fn main_with(_: impl Iterator<Item = std::ffi::OsString>) -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
