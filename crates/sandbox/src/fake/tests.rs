//! Tests of faults on demand, and of the record of calls.

use super::faults::{Fault, FaultScript, Operation};
use super::{FakeBackend, WARNING};
use crate::backend::{Backend, BackendError, Execution, Sandbox, SandboxRequest};
use crate::limits::Limit;
use crate::provision::Provision;
use crate::spec::Program;
use crate::state::StateDirectory;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::ProgramOutcome;
use belljar_contract::isolation::RequiredLayers;
use std::fs::File;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn backend(script: &FaultScript) -> (FakeBackend, TempDir) {
    let state = tempfile::tempdir().unwrap();
    (FakeBackend::asked_for_as("fake", StateDirectory::at(state.path()), script.clone()).unwrap(), state)
}

fn wanted(required: &[&str]) -> SandboxRequest {
    let required = RequiredLayers::parse(required.iter().map(|name| (*name).to_owned())).unwrap();
    SandboxRequest { provision: Provision { required, ..Provision::default() }, ..SandboxRequest::default() }
}

fn exec(sandbox: &dyn Sandbox, argv: &[&str]) -> Result<Box<dyn Execution>, BackendError> {
    let nothing = || File::options().read(true).write(true).open("/dev/null").unwrap().into();
    let program = Program { argv: argv.iter().map(Into::into).collect(), directory: "/workspace".to_owned() };
    sandbox.exec(&program, Stdio::Descriptors([nothing(), nothing(), nothing()]))
}

#[test]
fn it_exists_only_for_whoever_asks_for_it_by_name() {
    for name in ["native", "", "FAKE", "subprocess"] {
        let refused = FakeBackend::asked_for_as(name, StateDirectory::at("/nowhere"), FaultScript::default())
            .unwrap_err();
        assert!(refused.to_string().contains("seals nothing"), "{refused}");
    }
}

#[test]
fn no_layer_can_be_had() {
    let (backend, _state) = backend(&FaultScript::default());
    let error = backend.create(wanted(&["seccomp"])).unwrap_err();
    let BackendError::Weaker { missing, .. } = error else { panic!("{error:?}") };
    assert_eq!(missing[0].detail, WARNING);
}

#[test]
fn each_call_goes_wrong_once_as_foreseen_and_every_call_is_told() {
    let script = FaultScript::default();
    let (backend, _state) = backend(&script);
    for operation in [Operation::Create, Operation::Exec, Operation::Health, Operation::Destroy] {
        script.next(operation, Fault::Fails { why: "as foreseen" });
    }
    assert!(matches!(backend.health(), Err(BackendError::Unavailable { .. })));
    assert!(matches!(backend.create(wanted(&[])), Err(BackendError::Create(_))));
    let sandbox = backend.create(wanted(&[])).unwrap();
    assert!(matches!(exec(&*sandbox, &["true"]), Err(BackendError::Reach(_))));
    let mut execution = exec(&*sandbox, &["sh", "-c", "exit 4"]).unwrap();
    assert_eq!(execution.wait_until(None).unwrap().unwrap().outcome, ProgramOutcome::Exited(4));
    let id = sandbox.id().clone();
    assert!(matches!(sandbox.destroy(), Err(BackendError::Clear(_))));
    // A sandbox that could not be cleared away is a leftover.
    assert_eq!(backend.reconcile().unwrap(), std::slice::from_ref(&id));
    let told: Vec<_> =
        script.calls().into_iter().map(|call| (call.operation, call.sandbox, call.detail)).collect();
    let of_backend = |operation| (operation, None, String::new());
    let of_sandbox = |operation, detail: &str| (operation, Some(id.clone()), detail.to_owned());
    assert_eq!(
        told,
        [
            of_backend(Operation::Health),
            of_backend(Operation::Create),
            of_backend(Operation::Create),
            of_sandbox(Operation::Exec, "true"),
            of_sandbox(Operation::Exec, "sh -c exit 4"),
            of_sandbox(Operation::Destroy, ""),
            of_backend(Operation::Reconcile),
        ]
    );
}

#[test]
fn out_of_memory_the_whole_sandbox_ends() {
    let script = FaultScript::default();
    let (backend, _state) = backend(&script);
    let sandbox = backend.create(wanted(&[])).unwrap();
    let mut other = exec(&*sandbox, &["sleep", "60"]).unwrap();
    script.next(Operation::Exec, Fault::OutOfMemory);
    let mut execution = exec(&*sandbox, &["sleep", "60"]).unwrap();
    for execution in [&mut execution, &mut other] {
        assert_eq!(execution.wait_until(None).unwrap().unwrap().outcome, ProgramOutcome::Killed);
    }
    assert_eq!(sandbox.ended_by(), Some(Limit::Memory));
    assert!(matches!(exec(&*sandbox, &["true"]), Err(BackendError::Gone)));
}

#[test]
fn what_is_slow_is_done_all_the_same() {
    let script = FaultScript::default();
    let (backend, _state) = backend(&script);
    script.next(Operation::Health, Fault::Slow { by: Duration::from_millis(30) });
    let begun = Instant::now();
    backend.health().unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(30));
}
