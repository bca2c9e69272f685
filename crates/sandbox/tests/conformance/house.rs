//! A backend with a state directory of its own, and how cases use it.

use belljar_confine::launcher::Launcher;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::Outcome;
use belljar_contract::isolation::Required;
use belljar_sandbox::backend::{Backend, Execution, Sandbox, Wanted};
use belljar_sandbox::docker::{DeploymentId, DockerBackend, DockerSettings, ImageName, inside};
use belljar_sandbox::limits::Limits;
use belljar_sandbox::native::NativeBackend;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Program;
use belljar_sandbox::state::State;
use belljar_testkit::foreign_root::{Docker, IMAGE};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
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
    pub(crate) fn native(launcher: &Arc<Launcher>) -> Result<Self, String> {
        let state = state();
        let backend = NativeBackend::new(Arc::clone(launcher), State::at(state.path()));
        Ok(Self { backend: Box::new(backend), state })
    }

    pub(crate) fn docker(_: &Arc<Launcher>) -> Result<Self, String> {
        let state = state();
        let settings = DockerSettings {
            socket: engine_socket()?,
            image: ImageName::parse(IMAGE).unwrap(),
            deployment: DeploymentId::parse(state.path().file_name().unwrap().to_str().unwrap()).unwrap(),
            runtime: None,
            helper: std::env::current_exe().unwrap(),
        };
        let backend = DockerBackend::new(settings, State::at(state.path())).unwrap();
        Ok(Self { backend: Box::new(backend), state })
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

fn state() -> TempDir {
    let state = tempfile::Builder::new().prefix("belljar-test-").tempdir().unwrap();
    std::fs::set_permissions(state.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    state
}

/// The Docker engine of this run, started when the first case asks for it.
static ENGINE: Mutex<Option<Result<Docker, String>>> = Mutex::new(None);

fn engine_socket() -> Result<PathBuf, String> {
    let mut engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    engine.get_or_insert_with(Docker::start).as_ref().map(Docker::socket).map_err(Clone::clone)
}

/// Ends the engine, if there is one.
pub(crate) fn end_engine() {
    drop(ENGINE.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// This file is also the program that backends start in their sandboxes.
pub(crate) fn as_another_program() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    let is_inside = Path::new(&name).file_name()? == inside::NAME;
    is_inside.then(|| inside::main(arguments))
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
