//! The subprocess backend: a supervisor for each sandbox, its folders in a state directory.

use super::environment::{PrivateDirectories, made_from_nothing};
use super::sandbox::SubprocessSandbox;
use super::settings::SubprocessSettings;
use super::{SUPERVISOR, isolation, view};
use crate::backend::{Backend, BackendError, Sandbox, SandboxRequest, with_causes};
use crate::correlation::fill_session;
use crate::hatch::none_of;
use crate::host_directories::{self, SandboxDirectories};
use crate::limits::Limits;
use crate::run::WorkspaceChoice;
use crate::spec::Lent;
use crate::state::StateDirectory;
use belljar_confine::execution::ResidentSandbox;
use belljar_confine::plan::{self, Identity};
use belljar_confine::supervised::{self, Files, OpenedPath, SupervisedPlan, SupervisedWalls, User};
use belljar_contract::id::RunId;
use belljar_files::directory::Directory;
use rustix::fd::AsFd;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Makes sandboxes without namespaces.
#[derive(Debug)]
pub struct SubprocessBackend {
    executable: PathBuf,
    state: StateDirectory,
    settings: SubprocessSettings,
    walls: SupervisedWalls,
    /// The variables of the host that a program may get.
    host: Vec<(OsString, OsString)>,
}

/// Whatever keeps a sandbox from being made.
type CreationError = Box<dyn Error + Send + Sync>;

// === impl SubprocessBackend ===

impl SubprocessBackend {
    /// The name in configurations and reports.
    pub const NAME: &'static str = "subprocess";

    /// Makes a backend that keeps its folders in `state`. `executable`, started under the name [`SUPERVISOR`], must be a
    /// supervisor ([`super::main_inside`]) and nothing else.
    pub fn new(executable: PathBuf, state: StateDirectory, settings: SubprocessSettings) -> Self {
        Self {
            executable,
            state,
            settings,
            walls: SupervisedWalls::default(),
            host: std::env::vars_os().collect(),
        }
    }

    /// Returns this backend with other variables of the host than this process's.
    #[must_use]
    pub fn with_environment(self, host: Vec<(OsString, OsString)>) -> Self {
        Self { host, ..self }
    }

    /// Returns this backend with some walls left out, as on a kernel that lacks them. Its sandboxes report them as not in
    /// force.
    #[must_use]
    pub fn with_walls(self, walls: SupervisedWalls) -> Self {
        Self { walls, ..self }
    }

    fn make(&self, wanted: &SandboxRequest) -> Result<SubprocessSandbox, CreationError> {
        let owner = owner(&wanted.workspace)?;
        let folder = self.state.begin_run(owner)?;
        let rooms = SandboxDirectories::make(&folder, &wanted.workspace, &wanted.provision.home, owner)?;
        let own = PrivateDirectories { home: rooms.home(), temporary: rooms.temporary() };
        let mut asked = wanted.provision.env.clone();
        fill_session(&mut asked, folder.id());
        let env = made_from_nothing(self.host.clone(), &asked, &self.settings, own)?;
        let plan = SupervisedPlan {
            base: place(&rooms.workspace().directory)?,
            files: self.files(&rooms, &wanted.provision.lent)?,
            walls: self.walls,
            limits: limits(&wanted.provision.limits),
            held: vec![place(folder.lock())?],
            user: (owner.host_uid != host_directories::owner().host_uid).then(|| user(owner)),
        };
        let started = supervised::start(&self.executable, SUPERVISOR, &plan)?;
        let isolation = isolation::report(
            (&self.settings, &wanted.provision.limits),
            self.walls,
            (owner.host_uid, started.landlock_abi),
        );
        let resident = ResidentSandbox::new(started.sealed);
        Ok(SubprocessSandbox { resident, folder, rooms, env, isolation, owner })
    }

    fn files(&self, rooms: &SandboxDirectories, lent: &[Lent]) -> Result<Files, CreationError> {
        let mut readable = Vec::new();
        for lent in lent {
            readable.push(open_lent(lent)?);
        }
        for room in rooms.readable() {
            readable.push(place(&room.directory)?);
        }
        if !self.settings.workspace_only {
            return Ok(Files::AllOfTheUsers);
        }
        let prefixes = self.settings.extra_safe_path_prefixes.iter();
        let prefixes = prefixes.map(|prefix| prefix.as_path().to_string_lossy().into_owned());
        let writable = rooms.writable().map(|room| place(&room.directory));
        Ok(Files::Listed {
            writable: writable.collect::<Result<_, _>>()?,
            readable,
            system: view::system().into_iter().chain(prefixes).collect(),
            devices: view::devices(),
        })
    }
}

impl Backend for SubprocessBackend {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn has_own_root(&self) -> bool {
        false
    }

    fn health(&self) -> Result<(), BackendError> {
        let probe = || -> Result<(), CreationError> {
            let plan = SupervisedPlan {
                base: open(Path::new("/"))?,
                files: Files::Listed {
                    writable: Vec::new(),
                    readable: Vec::new(),
                    system: view::system(),
                    devices: view::devices(),
                },
                walls: self.walls,
                limits: plan::Limits::default(),
                held: Vec::new(),
                user: None,
            };
            ResidentSandbox::new(supervised::start(&self.executable, SUPERVISOR, &plan)?.sealed).end();
            Ok(())
        };
        probe().map_err(|error| BackendError::Unavailable { backend: Self::NAME, why: with_causes(&*error) })
    }

    fn create(&self, wanted: SandboxRequest) -> Result<Box<dyn Sandbox>, BackendError> {
        none_of(self.name(), &wanted.provision.hatches)?;
        if wanted.provision.programs.is_some() {
            return Err(BackendError::Programs { backend: Self::NAME, why: NO_MOUNTS });
        }
        let sandbox = self.make(&wanted).map_err(BackendError::Create)?;
        let missing = sandbox.isolation.missing(&wanted.provision.required);
        match missing.is_empty() {
            true => Ok(Box::new(sandbox)),
            false => Err(BackendError::Weaker { backend: Self::NAME, missing }),
        }
    }

    fn reconcile(&self) -> Result<Vec<RunId>, BackendError> {
        self.state.reconcile().map_err(|error| BackendError::Clear(error.into()))
    }
}

/// Reason why a list of programs is refused. Landlock alone would not enforce it: a loader, which every program needs,
/// starts any file that was written.
const NO_MOUNTS: &str = "without a mount namespace, a program could be written and started through its loader; use the native backend";

/// Returns the owner of its files: the user who runs this, or, where that is root, the owner of the workspace. No other
/// user could go on working on those files, and programs don't need root's rights.
fn owner(workspace: &WorkspaceChoice) -> Result<Identity, CreationError> {
    let own = host_directories::owner();
    let (WorkspaceChoice::Direct(path) | WorkspaceChoice::Seen(path)) = workspace else { return Ok(own) };
    if own.host_uid != 0 {
        return Ok(own);
    }
    let uid = fstat(&Directory::open_meant(path)?)?.st_uid;
    // Not the directory's group: a user's directory may be of any group.
    let gid = if uid == 0 { 0 } else { group_of(uid).unwrap_or(uid) };
    Ok(Identity { inside_uid: uid, inside_gid: gid, host_uid: uid, host_gid: gid })
}

/// The first group of a user that the system knows, unless it is root's.
fn group_of(uid: u32) -> Option<u32> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut groups = users.lines().filter_map(|line| {
        let mut fields = line.split(':').skip(2);
        let (id, group) = (fields.next()?.parse::<u32>().ok()?, fields.next()?.parse::<u32>().ok()?);
        (id == uid).then_some(group)
    });
    groups.next().filter(|group| *group != 0)
}

fn user(Identity { host_uid, host_gid, .. }: Identity) -> User {
    User { uid: host_uid, gid: host_gid }
}

/// The kernel counts these for each process, and processes for each user.
fn limits(wanted: &Limits) -> plan::Limits {
    let Limits { open_files, processes, .. } = *wanted;
    plan::Limits { open_files, processes, ..plan::Limits::default() }
}

/// Opens a lent path. Without a root of its own, a sandbox can see a lent path only where it is on the host.
fn open_lent(lent: &Lent) -> Result<OpenedPath, CreationError> {
    let seen_at = Path::new("/").join(&lent.inside);
    let opened = open(&seen_at)?;
    match lent.path.is(&opened)? {
        true => Ok(opened),
        false => Err(format!(
            "cannot mount {} at {}: the subprocess backend shows paths only at their host location",
            lent.path.as_path().display(),
            seen_at.display()
        )
        .into()),
    }
}

fn open(path: &Path) -> Result<OpenedPath, CreationError> {
    let opened = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    Ok(opened
        .map(OpenedPath::from)
        .map_err(|source| belljar_files::directory::DirectoryError { path: path.to_owned(), source })?)
}

fn place(opened: impl AsFd) -> Result<OpenedPath, CreationError> {
    Ok(rustix::io::fcntl_dupfd_cloexec(opened, 3).map(OpenedPath::from)?)
}
