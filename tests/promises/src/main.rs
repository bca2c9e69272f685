//! The probe: makes the attempts that it is given, and reports the result of each. It doesn't judge them.
//!
//! It is one static file and needs nothing from the root file system that it runs in. Every attempt is made in a
//! process of its own, so that an attempt that kills its process doesn't affect the others.

#![expect(clippy::print_stdout, reason = "what it says is what it is for")]

mod probe;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match probe::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("probe: {why}");
            ExitCode::FAILURE
        }
    }
}
