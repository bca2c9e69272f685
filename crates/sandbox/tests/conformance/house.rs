//! A backend with a state directory of its own, and how cases use it.

use belljar_confine::launcher::Launcher;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::Outcome;
use belljar_contract::isolation::Required;
use belljar_sandbox::backend::{Backend, Execution, Sandbox, Wanted};
use belljar_sandbox::fake::FakeBackend;
use belljar_sandbox::fake::faults::Script;
use belljar_sandbox::limits::Limits;
use belljar_sandbox::native::NativeBackend;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Program;
use belljar_sandbox::state::State;
use belljar_sandbox::subprocess::{SubprocessBackend, SubprocessSettings};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A backend under test.
pub(crate) struct House {
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) state: TempDir,
}

/// What a program did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl House ===

impl House {
    pub(crate) fn native(launcher: &Arc<Launcher>) -> Self {
        let state = tempfile::Builder::new().prefix("belljar-test-").tempdir().unwrap();
        std::fs::set_permissions(state.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let backend = NativeBackend::new(Arc::clone(launcher), State::at(state.path()));
        Self { backend: Box::new(backend), state }
    }

    pub(crate) fn subprocess(_: &Arc<Launcher>) -> Self {
        let state = tempfile::Builder::new().prefix("belljar-test-").tempdir().unwrap();
        let executable = std::env::current_exe().unwrap();
        let backend =
            SubprocessBackend::new(executable, State::at(state.path()), SubprocessSettings::default());
        Self { backend: Box::new(backend), state }
    }

    pub(crate) fn fake(_: &Arc<Launcher>) -> Self {
        let state = tempfile::Builder::new().prefix("belljar-test-").tempdir().unwrap();
        let backend = FakeBackend::asked_for_as("fake", State::at(state.path()), Script::default()).unwrap();
        Self { backend: Box::new(backend), state }
    }

    /// An empty sandbox.
    pub(crate) fn sandbox(&self) -> Box<dyn Sandbox> {
        self.sandbox_on(WorkspaceChoice::Empty)
    }

    pub(crate) fn sandbox_on(&self, workspace: WorkspaceChoice) -> Box<dyn Sandbox> {
        let env = BTreeMap::from([("GIVEN".to_owned(), "a value".to_owned())]);
        let limits = Limits::default();
        let required = Required::default();
        self.backend.create(Wanted { workspace, lent: Vec::new(), env, limits, required }).unwrap()
    }
}

/// A program and its arguments, started in the workspace.
pub(crate) fn program(argv: &[&str]) -> Program {
    Program { argv: argv.iter().map(Into::into).collect(), directory: "/workspace".to_owned() }
}

pub(crate) fn shell(script: &str) -> Program {
    program(&["sh", "-c", script])
}

pub(crate) fn nothing() -> OwnedFd {
    openat(CWD, "/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

pub(crate) fn pipe() -> (File, OwnedFd) {
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    (ours.into(), theirs)
}

/// Runs a shell script to its end.
#[track_caller]
pub(crate) fn run(sandbox: &dyn Sandbox, script: &str) -> Ran {
    let ((mut stdout, output), (mut stderr, errors)) = (pipe(), pipe());
    let mut execution =
        sandbox.exec(&shell(script), Stdio::Descriptors([nothing(), output, errors])).unwrap();
    let reader = std::thread::spawn(move || text(&mut stderr));
    let stdout = text(&mut stdout);
    Ran { outcome: wait(execution.as_mut()), stdout, stderr: reader.join().unwrap() }
}

fn text(from: &mut File) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Starts a script whose output goes nowhere.
#[track_caller]
pub(crate) fn start(sandbox: &dyn Sandbox, script: &str) -> Box<dyn Execution> {
    sandbox.exec(&shell(script), Stdio::Descriptors([nothing(), nothing(), nothing()])).unwrap()
}

#[track_caller]
pub(crate) fn wait(execution: &mut dyn Execution) -> Outcome {
    let ended = execution.wait_until(Some(Instant::now() + PATIENCE)).unwrap();
    ended.unwrap_or_else(|| panic!("it did not end")).outcome
}
