//! What every backend must do, tried on each that there is.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod execution;
mod files;
mod house;
mod keeping;
mod lifetime;
mod limits;

use belljar_confine::launcher::Launcher;
use house::House;
use libtest_mimic::{Arguments, Trial};
use std::sync::Arc;

/// One thing that a backend must do.
type Case = (&'static str, fn(&House));

/// A backend's name, and how to come by one.
type Maker = (&'static str, fn(&Arc<Launcher>) -> House);

const BACKENDS: [Maker; 1] = [("native", House::native)];

fn main() -> std::process::ExitCode {
    // Before the first thread.
    let launcher = Arc::new(Launcher::start().unwrap());
    let cases = [execution::CASES, files::CASES, keeping::CASES, lifetime::CASES, limits::CASES].concat();
    let mut trials = Vec::new();
    for (backend, house) in BACKENDS {
        for (name, case) in &cases {
            let (launcher, case) = (Arc::clone(&launcher), *case);
            trials.push(Trial::test(format!("{backend}::{name}"), move || {
                case(&house(&launcher));
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
