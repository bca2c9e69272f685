//! The native backend: namespaces, Landlock and seccomp of this kernel; nothing to install, nothing to run before.

mod backend;
mod environment;
mod identity;
mod isolation;
mod sandbox;
mod view;

pub use backend::NativeBackend;

use crate::spec::{Program, SandboxSpec, Workspace};
use belljar_confine::launch::{LaunchError, Launched, launch};
use belljar_confine::launcher::Launcher;
use belljar_confine::lend::{LendError, prepare};
use belljar_confine::plan::{self, Access, Command, Entry, HostPath, Identity, Limits, Plan, Source, Stdio};
use belljar_confine::seccomp::policy::Audience;
use belljar_contract::isolation::Isolation;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

/// A sandbox of this backend, running.
#[derive(Debug)]
pub struct Running {
    /// The sandbox, its terminal and its timings.
    pub launched: Launched,
    /// Every layer, in force or not.
    pub isolation: Isolation,
}

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A directory of the host can't be lent to the sandbox's user.
    #[error("can't lend a directory to the sandbox")]
    Lend(#[from] LendError),
    /// An argument or variable can't be passed to a program.
    #[error("{what} holds a NUL byte")]
    Nul {
        /// Which.
        what: String,
    },
    /// The kernel refused.
    #[error("can't start the sandbox")]
    Launch(#[from] LaunchError),
}

/// How much `/tmp`, the home directory, shared memory and an empty workspace may hold together.
const SCRATCH_BYTES: u64 = 1 << 30;

/// Builds a sandbox and starts a program in it, from this very process, which must have a single thread.
///
/// # Errors
/// [`StartError`]; nothing of the sandbox is left then.
pub fn start(spec: &SandboxSpec, program: &Program, stdio: Stdio) -> Result<Running, StartError> {
    start_by(launch, (spec, None), program, stdio)
}

/// The same, through a launcher that was started while this process was small.
///
/// # Errors
/// [`StartError`]; nothing of the sandbox is left then.
pub fn start_through(
    launcher: &Launcher,
    spec: &SandboxSpec,
    program: &Program,
    stdio: Stdio,
) -> Result<Running, StartError> {
    start_by(|plan| launcher.launch(plan), (spec, Some(launcher)), program, stdio)
}

/// Builds a sandbox in which nothing runs yet. Its root directory comes back with it.
fn resident(launcher: &Launcher, spec: &SandboxSpec) -> Result<Running, StartError> {
    build(|plan| launcher.launch(plan), (spec, Some(launcher)), None)
}

fn start_by(
    launch: impl FnOnce(&Plan) -> Result<Launched, LaunchError>,
    (spec, launcher): (&SandboxSpec, Option<&Launcher>),
    program: &Program,
    stdio: Stdio,
) -> Result<Running, StartError> {
    let has_terminal = matches!(stdio, Stdio::Terminal);
    let program = plan::Program { command: command(spec, program, has_terminal)?, stdio };
    build(launch, (spec, launcher), Some(program))
}

fn build(
    launch: impl FnOnce(&Plan) -> Result<Launched, LaunchError>,
    (spec, launcher): (&SandboxSpec, Option<&Launcher>),
    program: Option<plan::Program>,
) -> Result<Running, StartError> {
    let identity = identity::choose();
    // A job names artifacts in its workspace; into a sandbox that lives on, files are copied wherever they are to be.
    let exported = match (&program, &spec.job) {
        (None, _) => Some(String::new()),
        (Some(_), Some(_)) => Some("workspace".to_owned()),
        (Some(_), None) => None,
    };
    let plan = Plan {
        identity: identity.identity,
        root: root(spec, &Lending { chosen: identity, launcher })?,
        scratch_bytes: SCRATCH_BYTES,
        writable: writable(spec),
        exported,
        hostname: "belljar".to_owned(),
        limits: Limits::default(),
        hides_mounts: names_host_paths(spec),
        // What runs a job is the runner, and nothing else is.
        audience: if spec.job.is_some() { Audience::Runner } else { Audience::Everyone },
        program,
    };
    let launched = launch(&plan)?;
    let isolation = isolation::report(&plan, &identity, launched.landlock_abi);
    Ok(Running { launched, isolation })
}

fn root(spec: &SandboxSpec, lending: &Lending<'_>) -> Result<Vec<Entry>, StartError> {
    let scratch = |inside: &str| Entry::Scratch { inside: inside.to_owned() };
    let mut root = view::of_host(lending.chosen.identity);
    root.push(scratch("tmp"));
    root.push(scratch(environment::HOME_INSIDE));
    root.push(match &spec.workspace {
        Workspace::Empty => scratch("workspace"),
        Workspace::Direct(path) => lending.bind("workspace", path, Access::ReadWrite)?,
        Workspace::Copy { source, upper, work } => Entry::Overlay {
            inside: "workspace".to_owned(),
            lower: lending.lend(source, Access::ReadOnly)?,
            upper: upper.clone(),
            work: work.clone(),
        },
    });
    if let Some(job) = &spec.job {
        // Made for this run and given to its user: needs no mapping.
        let source = Source::Path(job.clone());
        root.push(Entry::Bind { inside: "job".to_owned(), source, access: Access::ReadWrite });
    }
    root.extend(spec.unlisted_scratch.as_deref().map(scratch));
    for lent in &spec.lent {
        root.push(lending.view(&lent.inside, &lent.path)?);
    }
    Ok(root)
}

/// How directories of the host are lent.
struct Lending<'a> {
    chosen: identity::Chosen,
    /// Asked for what takes a process of one thread; this process is one if there is none.
    launcher: Option<&'a Launcher>,
}

impl Lending<'_> {
    fn bind(&self, inside: &str, path: &HostPath, access: Access) -> Result<Entry, StartError> {
        Ok(Entry::Bind { inside: inside.to_owned(), source: self.lend(path, access)?, access })
    }

    /// What is lent is looked at through an overlay, so that no service that listens in it is reached. A file has no
    /// such thing in it.
    fn view(&self, inside: &str, path: &HostPath) -> Result<Entry, StartError> {
        if !path.is_directory() {
            return self.bind(inside, path, Access::ReadOnly);
        }
        Ok(Entry::View { inside: inside.to_owned(), source: self.lend(path, Access::ReadOnly)? })
    }

    fn lend(&self, path: &HostPath, access: Access) -> Result<Source, StartError> {
        match self.chosen.maps_files {
            true => Ok(prepare(path, access, self.chosen.identity, self.launcher)?),
            false => Ok(Source::Path(path.clone())),
        }
    }
}

/// Whether something is bound whose path on the host is nobody's business inside. Programs and libraries are where they
/// are on the host anyway, and overlays name no paths.
fn names_host_paths(spec: &SandboxSpec) -> bool {
    let is_direct = matches!(spec.workspace, Workspace::Direct(_));
    is_direct || spec.job.is_some() || spec.lent.iter().any(|lent| !lent.path.is_directory())
}

fn writable(spec: &SandboxSpec) -> Vec<String> {
    let job = spec.job.as_ref().map(|_| "job");
    ["tmp", environment::HOME_INSIDE, "workspace"].into_iter().chain(job).map(str::to_owned).collect()
}

fn command(spec: &SandboxSpec, program: &Program, has_terminal: bool) -> Result<Command, StartError> {
    let argv = program.argv.iter().map(|argument| c_string(argument.clone(), "an argument"));
    let env = environment::made_from_nothing(&spec.env, has_terminal);
    let env = env.into_iter().map(|(name, value)| c_string(format!("{name}={value}").into(), &name));
    Ok(Command {
        argv: argv.collect::<Result<_, _>>()?,
        env: env.collect::<Result<_, _>>()?,
        directory: c_string(program.directory.clone().into(), "the working directory")?,
    })
}

pub(crate) fn c_string(text: OsString, what: &str) -> Result<CString, StartError> {
    CString::new(text.into_vec()).map_err(|_| StartError::Nul { what: what.to_owned() })
}

/// The user and group that own what the host makes for a sandbox, such as `/job`.
pub fn owner() -> Identity {
    identity::choose().identity
}
