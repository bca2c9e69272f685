//! What every backend must do, tried on each that there is.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod containers;
mod execution;
mod files;
mod house;
mod keeping;
mod lifetime;
mod limits;

use belljar_confine::launcher::Launcher;
use belljar_testkit::skip::skip;
use house::House;
use libtest_mimic::{Arguments, Trial};
use std::sync::Arc;

/// One thing that a backend must do.
type Case = (&'static str, fn(&House));

/// A backend's name, and how to come by one.
type Maker = (&'static str, fn(&Arc<Launcher>) -> Result<House, String>);

const BACKENDS: [Maker; 2] = [("native", House::native), ("docker", House::docker)];

fn main() -> std::process::ExitCode {
    if let Some(code) = house::as_another_program() {
        return code;
    }
    // Before the first thread.
    let launcher = Arc::new(Launcher::start().unwrap());
    let cases = [execution::CASES, files::CASES, keeping::CASES, lifetime::CASES, limits::CASES].concat();
    let mut trials = Vec::new();
    for (backend, house) in BACKENDS {
        let own = if backend == "docker" { containers::CASES } else { &[] };
        for (name, case) in cases.iter().chain(own) {
            let (launcher, case) = (Arc::clone(&launcher), *case);
            let name = format!("{backend}::{name}");
            trials.push(Trial::test(name.clone(), move || {
                match house(&launcher) {
                    Ok(house) => case(&house),
                    Err(reason) => skip(&name, &reason),
                }
                Ok(())
            }));
        }
    }
    let code = libtest_mimic::run(&Arguments::from_args(), trials).exit_code();
    house::end_engine();
    code
}
