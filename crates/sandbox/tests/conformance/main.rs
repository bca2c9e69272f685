//! What every backend must do, tried on each that there is.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod execution;
mod files;
mod house;
mod lifetime;
mod walls;

use belljar_confine::launcher::Launcher;
use belljar_sandbox::subprocess;
use house::House;
use libtest_mimic::{Arguments, Trial};
use std::sync::Arc;

/// One thing that a backend must do.
type Case = (&'static str, fn(&House));

/// A backend.
#[derive(Clone, Copy)]
struct Maker {
    name: &'static str,
    /// How to come by one.
    make: fn(&Arc<Launcher>) -> House,
    /// Whether it seals anything.
    seals: bool,
}

const BACKENDS: [Maker; 3] = [
    Maker { name: "native", make: House::native, seals: true },
    Maker { name: "subprocess", make: House::subprocess, seals: true },
    Maker { name: "fake", make: House::fake, seals: false },
];

fn main() -> std::process::ExitCode {
    // The subprocess backend's supervisor is this very executable.
    if std::env::args_os().next().is_some_and(|name| name == subprocess::SUPERVISOR) {
        return subprocess::main_inside();
    }
    // Before the first thread.
    let launcher = Arc::new(Launcher::start().unwrap());
    let cases = [execution::CASES, files::CASES, lifetime::CASES].concat();
    let mut trials = Vec::new();
    for Maker { name: backend, make, seals } in BACKENDS {
        // No trait promises a wall; the isolation report does.
        let walls = if seals { lifetime::SEALED } else { lifetime::UNSEALED };
        for (name, case) in cases.iter().chain(walls) {
            let (launcher, case) = (Arc::clone(&launcher), *case);
            trials.push(Trial::test(format!("{backend}::{name}"), move || {
                case(&make(&launcher));
                Ok(())
            }));
        }
    }
    for (name, case) in walls::CASES {
        trials.push(Trial::test(format!("subprocess::{name}"), move || {
            case();
            Ok(())
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
