//! A backend with a state directory of its own, and how cases use it.

use belljar_confine::launcher::Launcher;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::ProgramOutcome;
use belljar_sandbox::backend::{Backend, Execution, Sandbox, SandboxRequest};
use belljar_sandbox::docker::{DeploymentId, DockerBackend, DockerSettings, ImageName, own_program};
use belljar_sandbox::fake::FakeBackend;
use belljar_sandbox::fake::faults::FaultScript;
use belljar_sandbox::native::NativeBackend;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Program;
use belljar_sandbox::state::StateDirectory;
use belljar_sandbox::subprocess::{self, SubprocessBackend, SubprocessSettings};
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::wait::until;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A backend under test.
pub(crate) struct BackendFixture {
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) state: TempDir,
}

/// Output and outcome of a program.
#[derive(Debug)]
pub(crate) struct ProgramRun {
    pub(crate) outcome: ProgramOutcome,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl BackendFixture ===

impl BackendFixture {
    pub(crate) fn native(launcher: &Arc<Launcher>) -> Result<Self, String> {
        let state = state();
        let backend = NativeBackend::new(Arc::clone(launcher), StateDirectory::at(state.path()));
        Ok(Self { backend: Box::new(backend), state })
    }

    /// Makes the native backend with a warm pool. The first sandbox is requested here, so a case gets one of the next.
    pub(crate) fn native_made_ahead(launcher: &Arc<Launcher>) -> Result<Self, String> {
        let state = state();
        let backend = NativeBackend::for_many(Arc::clone(launcher), StateDirectory::at(state.path()), 2);
        let house = Self { backend: Box::new(backend), state };
        drop(house.sandbox());
        Ok(house)
    }

    pub(crate) fn docker(_: &Arc<Launcher>) -> Result<Self, String> {
        let state = state();
        let settings = docker_settings(&engine_socket()?, state.path());
        let backend = DockerBackend::new(settings, StateDirectory::at(state.path())).unwrap();
        Ok(Self { backend: Box::new(backend), state })
    }

    /// Default request for a sandbox.
    pub(crate) fn wanted(workspace: WorkspaceChoice) -> SandboxRequest {
        Self::wanted_with(workspace, Provision::default())
    }

    /// Request for a sandbox that is given that, and one variable.
    pub(crate) fn wanted_with(workspace: WorkspaceChoice, provision: Provision) -> SandboxRequest {
        let env = BTreeMap::from([("GIVEN".to_owned(), "a value".to_owned())]);
        SandboxRequest { workspace, provision: Provision { env, ..provision } }
    }

    pub(crate) fn subprocess(_: &Arc<Launcher>) -> Result<Self, String> {
        let state = state();
        let executable = std::env::current_exe().unwrap();
        let backend = SubprocessBackend::new(
            executable,
            StateDirectory::at(state.path()),
            SubprocessSettings::default(),
        );
        Ok(Self { backend: Box::new(backend), state })
    }

    pub(crate) fn fake(_: &Arc<Launcher>) -> Result<Self, String> {
        let state = state();
        let backend =
            FakeBackend::asked_for_as("fake", StateDirectory::at(state.path()), FaultScript::default())
                .unwrap();
        Ok(Self { backend: Box::new(backend), state })
    }

    /// An empty sandbox.
    pub(crate) fn sandbox(&self) -> Box<dyn Sandbox> {
        self.sandbox_on(WorkspaceChoice::Empty)
    }

    pub(crate) fn sandbox_on(&self, workspace: WorkspaceChoice) -> Box<dyn Sandbox> {
        self.backend.create(Self::wanted(workspace)).unwrap()
    }

    /// Reports that a layer can't be tried here, because the backend itself reports that it has none.
    pub(crate) fn skip(&self, layer: &str) {
        let test = format!("conformance, {layer} of {}", self.backend.name());
        belljar_testkit::skip::skip(&test, "the backend reports that it has no such layer here");
    }
}

pub(crate) fn state() -> TempDir {
    let state = tempfile::Builder::new().prefix("belljar-test-").tempdir().unwrap();
    std::fs::set_permissions(state.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    state
}

/// The Docker engine of this run, started when the first case asks for it.
static ENGINE: Mutex<Option<Result<Docker, String>>> = Mutex::new(None);

pub(crate) fn engine_socket() -> Result<PathBuf, String> {
    let mut engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    engine.get_or_insert_with(Docker::start).as_ref().map(Docker::socket).map_err(Clone::clone)
}

/// Runs a `docker` command.
pub(crate) fn docker(arguments: &[&str]) -> Result<String, String> {
    let engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    engine.as_ref().unwrap().as_ref().unwrap().command(arguments)
}

/// Settings for a state directory; its name is the deployment's.
pub(crate) fn docker_settings(socket: &Path, state: &Path) -> DockerSettings {
    DockerSettings {
        socket: socket.to_owned(),
        image: ImageName::parse(IMAGE).unwrap(),
        deployment: DeploymentId::parse(state.file_name().unwrap().to_str().unwrap()).unwrap(),
        runtime: None,
        helper: std::env::current_exe().unwrap(),
    }
}

/// Ends the engine, if there is one.
pub(crate) fn end_engine() {
    drop(ENGINE.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Runs as the program that backends start in their sandboxes, which is this file, too.
pub(crate) fn as_another_program() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    match Path::new(&name).file_name()?.to_str()? {
        own_program::NAME => Some(own_program::main(arguments)),
        subprocess::SUPERVISOR => Some(subprocess::main_inside()),
        OWNER => Some(own(arguments)),
        crate::hatches::CALLER => Some(crate::hatches::call(arguments)),
        crate::calls::TRIER => Some(crate::calls::try_to_make_one(Path::new(&arguments.next()?))),
        _ => None,
    }
}

/// The name under which this file owns a sandbox until it is killed.
const OWNER: &str = "belljar-test-owner";

fn own(mut arguments: std::env::ArgsOs) -> ExitCode {
    let mut path = || PathBuf::from(arguments.next().unwrap());
    let (socket, state) = (path(), path());
    let backend = DockerBackend::new(docker_settings(&socket, &state), StateDirectory::at(&state)).unwrap();
    let _sandbox = backend.create(BackendFixture::wanted(WorkspaceChoice::Empty)).unwrap();
    std::fs::write(state.join("ready"), "").unwrap();
    loop {
        std::thread::park();
    }
}

/// A process that owns a sandbox in that state directory.
pub(crate) fn owner(state: &Path) -> Child {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .arg0(OWNER)
        .args([&engine_socket().unwrap(), state])
        .spawn()
        .unwrap();
    until(|| state.join("ready").exists() || owner.try_wait().unwrap().is_some());
    owner
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
pub(crate) fn run(sandbox: &dyn Sandbox, script: &str) -> ProgramRun {
    let ((mut stdout, output), (mut stderr, errors)) = (pipe(), pipe());
    let mut execution =
        sandbox.exec(&shell(script), Stdio::Descriptors([nothing(), output, errors])).unwrap();
    let reader = std::thread::spawn(move || text(&mut stderr));
    let stdout = text(&mut stdout);
    ProgramRun { outcome: wait(execution.as_mut()), stdout, stderr: reader.join().unwrap() }
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
pub(crate) fn wait(execution: &mut dyn Execution) -> ProgramOutcome {
    let ended = execution.wait_until(Some(Instant::now() + PATIENCE)).unwrap();
    ended.unwrap_or_else(|| panic!("it did not end")).outcome
}
