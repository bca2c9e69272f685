//! Conformance suite: requirements on every backend, tried on each that is available.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod calls;
mod containers;
mod execution;
mod files;
mod hatches;
mod hostile;
mod house;
mod lifetime;
mod limits;
mod programs;
mod ready;
mod walls;

use belljar_confine::launcher::Launcher;
use belljar_testkit::skip::skip;
use house::BackendFixture;
use libtest_mimic::{Arguments, Trial};
use std::sync::Arc;

/// A requirement on a backend.
type BackendCase = (&'static str, fn(&BackendFixture));

/// A backend.
#[derive(Clone, Copy)]
struct BackendMaker {
    name: &'static str,
    /// Makes the backend, or returns the reason why it isn't available here.
    make: fn(&Arc<Launcher>) -> Result<BackendFixture, String>,
    /// Further requirements on it.
    own: &'static [&'static [BackendCase]],
}

const BACKENDS: [BackendMaker; 5] = [
    BackendMaker {
        name: "native",
        make: BackendFixture::native,
        own: &[lifetime::SEALED, hostile::CASES, hatches::OPEN, programs::HELD],
    },
    BackendMaker {
        name: "native_made_ahead",
        make: BackendFixture::native_made_ahead,
        own: &[lifetime::SEALED, hostile::CASES, hatches::OPEN, programs::HELD],
    },
    BackendMaker {
        name: "docker",
        make: BackendFixture::docker,
        own: &[lifetime::SEALED, hostile::CASES, hatches::OPEN, containers::CASES, programs::REFUSED],
    },
    BackendMaker {
        name: "subprocess",
        make: BackendFixture::subprocess,
        own: &[
            lifetime::SEALED,
            hostile::CASES,
            hatches::SHUT,
            walls::CASES,
            calls::CASES,
            programs::REFUSED,
        ],
    },
    // No trait promises a wall; the isolation report does.
    BackendMaker { name: "fake", make: BackendFixture::fake, own: &[lifetime::UNSEALED, hatches::SHUT] },
];

fn main() -> std::process::ExitCode {
    if let Some(code) = house::as_another_program() {
        return code;
    }
    // Before the first thread.
    let launcher = Arc::new(Launcher::start().unwrap());
    let cases = [execution::CASES, files::CASES, lifetime::CASES, limits::CASES].concat();
    let mut trials = Vec::new();
    for BackendMaker { name: backend, make, own } in BACKENDS {
        for (name, case) in cases.iter().chain(own.iter().copied().flatten()) {
            let (launcher, case) = (Arc::clone(&launcher), *case);
            let name = format!("{backend}::{name}");
            trials.push(Trial::test(name.clone(), move || {
                match make(&launcher) {
                    Ok(house) => case(&house),
                    Err(reason) => skip(&name, &reason),
                }
                Ok(())
            }));
        }
    }
    for (name, case) in ready::CASES {
        let launcher = Arc::clone(&launcher);
        trials.push(Trial::test(format!("ready::{name}"), move || {
            case(&launcher);
            Ok(())
        }));
    }
    let code = libtest_mimic::run(&Arguments::from_args(), trials).exit_code();
    house::end_engine();
    code
}
