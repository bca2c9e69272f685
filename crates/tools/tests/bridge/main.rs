//! The bridge, with real servers of MCP, in real sandboxes, and with servers that mean no good.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod hostile;
mod rig;
mod sealed;
mod servers;
mod web;

use belljar_sandbox::native::NativeBackend;
use belljar_testkit::skip::skip;
use libtest_mimic::{Arguments, Failed, Trial};
use rig::House;
use std::sync::Arc;

/// A test: what it shows, and how; the reason if it can't be shown here.
type Case = (&'static str, fn(&House) -> Result<(), String>);

fn main() -> std::process::ExitCode {
    let arguments = Arguments::from_args();
    // Before the first thread.
    let launcher = belljar_testkit::launcher::start().unwrap();
    let house = Arc::new(House::new(|state| NativeBackend::new(launcher, state)));
    let cases = [servers::CASES, sealed::CASES, hostile::CASES, web::CASES].concat();
    let trials = cases.into_iter().map(|(name, case): Case| {
        let house = Arc::clone(&house);
        Trial::test(name, move || {
            if let Err(reason) = case(&house) {
                skip(name, &reason);
            }
            Ok::<(), Failed>(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
