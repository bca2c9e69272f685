//! Integration tests of tools that work in real sandboxes (tools of other MCP servers, and workspace tools), and of configured
//! tools that work on the host.

#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't go on has failed")]

mod bridge;
mod configured;
mod file;
mod message;
mod metrics;
mod postgres;
mod workbench;

use belljar_sandbox::native::NativeBackend;
use belljar_testkit::skip::skip;
use bridge::rig::SandboxFactory;
use libtest_mimic::{Arguments, Failed, Trial};
use std::sync::Arc;
use workbench::rig::WorkbenchFactory;

fn main() -> std::process::ExitCode {
    if let Some(code) = workbench::rig::as_another_program() {
        return code;
    }
    let arguments = Arguments::from_args();
    // This must happen before the first thread is started.
    let launcher = belljar_testkit::launcher::start().unwrap();
    let house = Arc::new(SandboxFactory::new(|state| NativeBackend::new(Arc::clone(&launcher), state)));
    let benches = Arc::new(WorkbenchFactory::new(launcher));
    let mut trials = trials(&bridge::cases(), &house);
    trials.extend(workbench_trials(&benches));
    trials.extend(configured::cases().into_iter().map(|(name, case)| trial(name, case)));
    let code = libtest_mimic::run(&arguments, trials).exit_code();
    drop(benches);
    code
}

fn trials(cases: &[bridge::Case], house: &Arc<SandboxFactory>) -> Vec<Trial> {
    let trial = |(name, case): &bridge::Case| {
        let (house, case) = (Arc::clone(house), *case);
        trial(name, move || case(&house))
    };
    cases.iter().map(trial).collect()
}

fn workbench_trials(benches: &Arc<WorkbenchFactory>) -> Vec<Trial> {
    let trial = |(name, case): &workbench::Case| {
        let (benches, case) = (Arc::clone(benches), *case);
        trial(name, move || case(&benches))
    };
    workbench::cases().iter().map(trial).collect()
}

/// A test: its name and function, which returns the reason if it can't run here.
fn trial(name: &'static str, case: impl FnOnce() -> Result<(), String> + Send + 'static) -> Trial {
    Trial::test(name, move || {
        if let Err(reason) = case() {
            skip(name, &reason);
        }
        Ok::<(), Failed>(())
    })
}
