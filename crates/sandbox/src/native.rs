//! The native backend: namespaces, Landlock and seccomp of this kernel; it needs no installation and no daemon.

mod backend;
pub(crate) mod environment;
pub(crate) mod groups;
mod identity;
mod isolation;
mod programs;
mod quiesce;
mod sandbox;
mod teardown;
pub(crate) mod view;
mod warm_pool;

pub use backend::NativeBackend;
pub use environment::{HOME, SEARCH_PATH};
pub use identity::HostUser;
pub use view::shows;

use crate::backend::{BackendError, in_words};
use crate::disk_quota::{self, DiskQuotas, QuotaOutcome};
use crate::hatch::{self, Hatch};
use crate::limits::{Limit, Limits};
use crate::spec::{Program, SandboxSpec, Workspace};
use crate::state::{JOB, StateDirectory};
use belljar_confine::group::{Cgroup, CgroupError};
use belljar_confine::launch::{LaunchError, LaunchedSandbox, launch};
use belljar_confine::launcher::Launcher;
use belljar_confine::mount_preparation::{MountPrepareError, prepare};
use belljar_confine::plan::{self, Access, Command, HostSource, Plan, RootEntry, Stdio};
use belljar_confine::sealed::ProgramOutcome;
use belljar_confine::seccomp::policy::Audience;
use belljar_confine::wall;
use belljar_contract::id::RunId;
use belljar_contract::isolation::{Isolation, Layer};
use belljar_files::directory::DirectoryError;
use belljar_files::host_path::HostPath;
use groups::DeploymentGroups;
use programs::NO_LANDLOCK;
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;

/// A sandbox of this backend, running.
#[derive(Debug)]
pub struct RunningSandbox {
    /// The sandbox, its terminal and its timings.
    pub launched: LaunchedSandbox,
    /// The control group that it is in. After the sandbox itself: a group can be removed only when it is empty.
    pub group: Option<Cgroup>,
    fate: QuotaOutcome,
    /// State of every layer, in force or not.
    pub isolation: Isolation,
}

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A directory of the host can't be lent to the sandbox's user.
    #[error("cannot bind-mount a directory into the sandbox")]
    Lend(#[from] MountPrepareError),
    /// An argument or variable can't be passed to a program.
    #[error("{what} contains a NUL byte")]
    Nul {
        /// Which.
        what: String,
    },
    /// A directory that it may write to can't be measured, and so not be limited.
    #[error("can't measure the workspace")]
    Measure(#[from] DirectoryError),
    /// It can't be kept within its limits.
    #[error("can't limit the sandbox")]
    Limit(#[from] CgroupError),
    /// A required layer is not available.
    #[error("this host cannot provide {}", in_words(.missing))]
    Weaker {
        /// The layers that are missing, each with the reason.
        missing: Vec<Layer>,
    },
    /// A list of programs can't be held.
    #[error("this host cannot enforce a list of programs: {NO_LANDLOCK}")]
    NoLandlock,
    /// The kernel refused.
    #[error("can't start the sandbox")]
    Launch(#[from] LaunchError),
}

/// Builds a sandbox and starts a program in it, from this very process, which must have a single thread. What outlives
/// a crash is found through `state`.
///
/// # Errors
/// [`StartError`]; nothing of the sandbox is left then.
pub fn start(
    spec: &SandboxSpec,
    state: &StateDirectory,
    program: &Program,
    stdio: Stdio,
) -> Result<RunningSandbox, StartError> {
    start_by(None, spec, state, program, stdio)
}

/// Starts a sandbox through a launcher that was started while this process was small.
///
/// # Errors
/// [`StartError`]; nothing of the sandbox is left then.
pub fn start_through(
    launcher: &Launcher,
    spec: &SandboxSpec,
    state: &StateDirectory,
    program: &Program,
    stdio: Stdio,
) -> Result<RunningSandbox, StartError> {
    start_by(Some(launcher), spec, state, program, stdio)
}

/// Starts a sandbox, through a launcher if there is one.
pub(crate) fn start_by(
    launcher: Option<&Launcher>,
    spec: &SandboxSpec,
    state: &StateDirectory,
    program: &Program,
    stdio: Stdio,
) -> Result<RunningSandbox, StartError> {
    let site = NativeSite {
        launcher,
        makes_many: false,
        groups: &DeploymentGroups::open(state),
        quotas: &DiskQuotas::default(),
    };
    build(&site, spec, Some(starting(spec, program, stdio)?))
}

/// Clears away what native sandboxes of this deployment left whose owner is gone, and returns the ids of their runs.
///
/// # Errors
/// [`BackendError::Clear`] for the first leftover that can't be cleared away.
pub fn reconcile(state: &StateDirectory) -> Result<Vec<RunId>, BackendError> {
    groups::clear(state).map_err(|error| BackendError::Clear(error.into()))?;
    state.reconcile().map_err(|error| BackendError::Clear(error.into()))
}

/// Launcher and control groups with which sandboxes are built.
struct NativeSite<'a> {
    /// Asked for what takes a process of one thread; this process is one if there is none.
    launcher: Option<&'a Launcher>,
    /// True if it is worth while to prepare the next sandboxes.
    makes_many: bool,
    groups: &'a DeploymentGroups,
    quotas: &'a DiskQuotas,
}

fn starting(spec: &SandboxSpec, program: &Program, stdio: Stdio) -> Result<plan::Program, StartError> {
    let has_terminal = matches!(stdio, Stdio::Terminal);
    Ok(plan::Program { command: command(spec, program, has_terminal)?, stdio })
}

/// Builds a sandbox. Nothing runs in one without a program, and its root directory is returned with it.
fn build(
    site: &NativeSite<'_>,
    spec: &SandboxSpec,
    program: Option<plan::Program>,
) -> Result<RunningSandbox, StartError> {
    // A job names artifacts in its workspace; into a sandbox that lives on, files are copied wherever they are to be.
    let exported = match (&program, &spec.job) {
        (None, _) => Some(String::new()),
        (Some(_), Some(_)) => Some("workspace".to_owned()),
        (Some(_), None) => None,
    };
    let programs = spec.provision.programs.as_ref().map(|listed| programs::of(listed, spec)).transpose()?;
    let growth = disk_quota::growth(places_on_disk(spec), spec.provision.limits.disk_bytes)?;
    let held = site.groups.hold(&spec.id, &spec.provision.limits)?;
    let plan = Plan {
        identity: spec.user.identity,
        base: view::of_host(spec.user.identity),
        root: root(spec, site)?,
        scratch_bytes: spec.provision.limits.scratch_bytes,
        writable: writable(spec),
        exported,
        hatches: spec.provision.hatches.iter().flat_map(|hatch| hatch.sockets()).collect(),
        hostname: "belljar".to_owned(),
        limits: rlimits(&spec.provision.limits),
        group: held.entrance()?,
        group_name: held.group.as_ref().and_then(Cgroup::name).map(str::to_owned),
        watched_memory_bytes: held.watched_memory_bytes,
        hides_mounts: names_host_paths(spec),
        programs,
        audience: if spec.is_runner {
            Audience::Runner
        } else {
            wall!(OpenAt2: Audience::Everyone, else Audience::Runner)
        },
        program,
    };
    let keepers = isolation::LimitEnforcement { held: &held, is_disk_watched: growth.is_some() };
    let isolation = isolation::report(&plan, spec, keepers);
    let missing = isolation::missing(&isolation, spec);
    if !missing.is_empty() {
        return Err(StartError::Weaker { missing });
    }
    let launched = match site.launcher {
        Some(launcher) if site.makes_many => launcher.launch_one_of_many(&plan)?,
        Some(launcher) => launcher.launch(&plan)?,
        None => launch(&plan)?,
    };
    // Dropped on failure, and with it the sandbox: none may run without a watch.
    let mut running =
        RunningSandbox { launched, group: held.group, fate: QuotaOutcome::default(), isolation };
    if let Some(growth) = growth {
        let handle = running.launched.sealed.handle();
        let handle = handle.map_err(|source| LaunchError::Control { source })?;
        running.fate = site.quotas.take(growth, handle);
    }
    Ok(running)
}

// === impl RunningSandbox ===

impl RunningSandbox {
    /// Returns the limit that has ended it, if one has.
    pub fn ended_by(&self, outcome: ProgramOutcome) -> Option<Limit> {
        let has_oom_kills = || self.group.as_ref().is_some_and(|group| group.oom_kills() > 0);
        match outcome {
            ProgramOutcome::OutOfMemory => Some(Limit::Memory),
            _ if self.fate.has_outgrown() => Some(Limit::Disk),
            _ if has_oom_kills() => Some(Limit::Memory),
            _ => None,
        }
    }
}

/// Returns the paths on the host's disk that it may write to.
fn places_on_disk(spec: &SandboxSpec) -> impl Iterator<Item = &HostPath> {
    let workspace = match &spec.workspace {
        Workspace::Direct(path) | Workspace::Copy { upper: path, .. } => Some(path),
        Workspace::Empty | Workspace::Seen(_) => None,
    };
    workspace.into_iter().chain(&spec.job)
}

fn rlimits(limits: &Limits) -> plan::Limits {
    let Limits { open_files, processes, terminals, filters, .. } = *limits;
    plan::Limits { open_files, processes, terminals, filters, ..plan::Limits::default() }
}

fn root(spec: &SandboxSpec, site: &NativeSite<'_>) -> Result<Vec<RootEntry>, StartError> {
    let lending = LendingContext { user: spec.user, launcher: site.launcher };
    let scratch = |inside: &str| RootEntry::Scratch { inside: inside.to_owned() };
    let mut root = vec![scratch("tmp"), scratch(environment::HOME_INSIDE)];
    root.push(match &spec.workspace {
        Workspace::Empty => scratch("workspace"),
        // Made for this run and given to its user: needs no mapping.
        Workspace::Direct(path) if spec.has_own_workspace => RootEntry::Bind {
            inside: "workspace".to_owned(),
            source: HostSource::Path(path.clone()),
            access: Access::ReadWrite,
        },
        Workspace::Direct(path) => lending.bind("workspace", path, Access::ReadWrite)?,
        // As it is at any moment, which an overlay would not show.
        Workspace::Seen(path) => lending.bind("workspace", path, Access::ReadOnly)?,
        Workspace::Copy { source, upper, work } => RootEntry::Overlay {
            inside: "workspace".to_owned(),
            lower: lending.lend(source, Access::ReadOnly)?,
            upper: upper.clone(),
            work: work.clone(),
        },
    });
    if let Some(job) = &spec.job {
        // Made for this run and given to its user: needs no mapping.
        let source = HostSource::Path(job.clone());
        root.push(RootEntry::Bind { inside: JOB.to_owned(), source, access: Access::ReadWrite });
    }
    root.extend(spec.unlisted_scratch.as_deref().map(scratch));
    root.extend(spec.provision.hatches.iter().map(|hatch| scratch(hatch.directory())));
    for lent in &spec.provision.lent {
        root.push(lending.view(&lent.inside, &lent.path)?);
    }
    root.extend(spec.provision.home.iter().map(|(path, content)| RootEntry::File {
        inside: format!("{}/{path}", environment::HOME_INSIDE),
        content: content.clone().into_bytes(),
    }));
    Ok(root)
}

/// Way in which directories of the host are lent.
struct LendingContext<'a> {
    user: HostUser,
    /// Asked for what takes a process of one thread; this process is one if there is none.
    launcher: Option<&'a Launcher>,
}

impl LendingContext<'_> {
    fn bind(&self, inside: &str, path: &HostPath, access: Access) -> Result<RootEntry, StartError> {
        Ok(RootEntry::Bind { inside: inside.to_owned(), source: self.lend(path, access)?, access })
    }

    /// A lent directory is seen through an overlay, so that no service that listens in it can be reached. A file has no
    /// services in it.
    fn view(&self, inside: &str, path: &HostPath) -> Result<RootEntry, StartError> {
        if wall!(Views: !path.is_directory(), else true) {
            return self.bind(inside, path, Access::ReadOnly);
        }
        Ok(RootEntry::View { inside: inside.to_owned(), source: self.lend(path, Access::ReadOnly)? })
    }

    fn lend(&self, path: &HostPath, access: Access) -> Result<HostSource, StartError> {
        match self.user.maps_files {
            true => Ok(prepare(path, access, self.user.identity, self.launcher)?),
            false => Ok(HostSource::Path(path.clone())),
        }
    }
}

/// Returns true if a bind mount would reveal a path of the host inside. Programs and libraries are where they are on the
/// host anyway, and overlays name no paths.
fn names_host_paths(spec: &SandboxSpec) -> bool {
    let is_bound = matches!(spec.workspace, Workspace::Direct(_) | Workspace::Seen(_));
    is_bound || spec.job.is_some() || spec.provision.lent.iter().any(|lent| !lent.path.is_directory())
}

fn writable(spec: &SandboxSpec) -> Vec<String> {
    let job = spec.job.as_ref().map(|_| JOB);
    let workspace = (!matches!(spec.workspace, Workspace::Seen(_))).then_some("workspace");
    let own = ["tmp", environment::HOME_INSIDE].into_iter();
    own.chain(workspace).chain(job).map(str::to_owned).collect()
}

fn command(spec: &SandboxSpec, program: &Program, has_terminal: bool) -> Result<Command, StartError> {
    let argv = program.argv.iter().map(|argument| c_string(argument.clone(), "an argument"));
    let of_hatches = spec.provision.hatches.iter().flat_map(|hatch| hatch.environment());
    let mut env: BTreeMap<String, String> =
        of_hatches.chain(of_trust(spec)).map(|(name, value)| (name.to_owned(), value)).collect();
    env.extend(spec.provision.env.clone());
    let env = environment::made_from_nothing(&env, has_terminal);
    let env = env.into_iter().map(|(name, value)| c_string(format!("{name}={value}").into(), &name));
    Ok(Command {
        argv: argv.collect::<Result<_, _>>()?,
        env: env.collect::<Result<_, _>>()?,
        directory: c_string(program.directory.clone().into(), "the working directory")?,
    })
}

/// Variables that make programs with web access trust the host's authorities, also clients that come with a list of their
/// own.
fn of_trust(spec: &SandboxSpec) -> impl Iterator<Item = (&'static str, String)> {
    let authorities = spec.provision.hatches.contains(&Hatch::Web).then(view::authorities).flatten();
    authorities.into_iter().flat_map(hatch::trusting)
}

pub(crate) fn c_string(text: OsString, what: &str) -> Result<CString, StartError> {
    CString::new(text.into_vec()).map_err(|_| StartError::Nul { what: what.to_owned() })
}
