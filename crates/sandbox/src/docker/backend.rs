//! The Docker backend: containers, their folders in a state directory.

use super::container::{self, ContainerBlueprint, ContainerUser, WritableMounts};
use super::container_hatches::PendingHatches;
use super::engine::{Engine, EngineRequestError, LocalImage};
use super::home;
use super::isolation::{Disk, ReportSubject, report};
use super::sandbox::{Container, DockerSandbox, ReadyContainer};
use super::trust::InstalledAuthorities;
use super::watched::WatchedContainer;
use super::{DockerSettings, ImageName, own_program};
use crate::backend::{Backend, BackendError, DirectoryFiller, Sandbox, SandboxRequest, with_causes};
use crate::correlation::fill_session;
use crate::disk_quota::{self, DiskQuotas};
use crate::provision::Provision;
use crate::run::{RUNNER_INSIDE, WorkspaceChoice};
use crate::spec::Lent;
use crate::state::{JOB, RunFolder, StateDirectory};
use crate::workspace::imprint::Imprint;
use crate::workspace::{COPY, copy};
use belljar_confine::plan::Identity;
use belljar_contract::id::RunId;
use belljar_files::directory::Directory;
use belljar_files::host_path::HostPath;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::process::{getegid, geteuid};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Component, Path};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes sandboxes that are containers. A clone shares the connection to the engine.
#[derive(Debug, Clone)]
pub struct DockerBackend {
    settings: DockerSettings,
    engine: Arc<Engine>,
    state: StateDirectory,
    quotas: Arc<DiskQuotas>,
}

/// Place and owner of a container that is being made.
struct ContainerContext<'p> {
    /// The run's folder.
    folder: &'p RunFolder,
    user: ContainerUser,
    /// True if the folder of a job in there is the sandbox's `/job`.
    has_job: bool,
}

/// Why something can't be put into a container.
#[derive(Debug, thiserror::Error)]
enum MountPlanError {
    #[error("{path} is neither a file nor a directory")]
    Kind { path: String },
    #[error("{path} contains the engine's socket")]
    Socket { path: String },
    #[error("cannot bind-mount at /{inside}: the container uses this path itself")]
    Place { inside: String },
    #[error("{path} belongs to root, so the container would run as root; use a copy of the workspace")]
    Roots { path: String },
    #[error("the container has a different file mounted at /{inside}")]
    Other { inside: String },
}

/// Expected mounts of a container: device and inode by path.
type ExpectedMounts = BTreeMap<String, (u64, u64)>;

/// Reason for refusing mounts: a file written into a directory of the host could be started by its loader.
const NO_MOUNTS: &str = "the engine mounts directories as executable; use the native backend";

/// User inside, when the choice is free.
const USER: ContainerUser = ContainerUser { uid: 1000, gid: 1000 };

// === impl DockerBackend ===

impl DockerBackend {
    /// The name in configurations and reports.
    pub const NAME: &'static str = "docker";

    /// Makes a backend that keeps its folders in `state`. The engine isn't contacted yet.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] when another thread can't be started.
    pub fn new(settings: DockerSettings, state: StateDirectory) -> Result<Self, BackendError> {
        let engine = Engine::at(&settings.socket).map_err(|error| unavailable(&error))?;
        Ok(Self { settings, engine: Arc::new(engine), state, quotas: Arc::default() })
    }

    /// Returns this backend for containers of another image.
    #[must_use]
    pub fn of_image(&self, image: ImageName) -> Self {
        Self { settings: DockerSettings { image, ..self.settings.clone() }, ..self.clone() }
    }

    /// Volumes that the image declares, as far as the engine knows it; containers of an image with volumes are not made.
    pub fn declared_volumes(&self) -> Vec<String> {
        self.engine.image(&self.settings.image).map_or_else(|_| Vec::new(), |image| image.volumes)
    }

    /// Checks that the engine answers.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] when it doesn't.
    pub fn check_engine(&self) -> Result<(), BackendError> {
        self.engine.ping().map_err(|error| unavailable(&error))
    }

    fn image(&self) -> Result<LocalImage, BackendError> {
        let name = &self.settings.image;
        let image = self.engine.image(name).map_err(|error| match error {
            EngineRequestError::Missing => BackendError::Unavailable {
                backend: Self::NAME,
                why: format!("the engine has no image {name}; `docker pull` or `docker load` gives it one"),
            },
            error => unavailable(&error),
        })?;
        match image.volumes.as_slice() {
            [] => Ok(image),
            volumes => Err(BackendError::Unavailable {
                backend: Self::NAME,
                why: format!(
                    "the image {name} declares volumes, which could be written without limit: {}",
                    volumes.join(", ")
                ),
            }),
        }
    }

    /// Checks that this may be mounted there.
    fn check(&self, path: &HostPath, inside: &str) -> Result<(u64, u64), Box<dyn Error + Send + Sync>> {
        let shown = || path.as_path().display().to_string();
        let is_plain = Path::new(inside).components().all(|part| matches!(part, Component::Normal(_)));
        let of_ours = ["proc", "sys", "dev", "run/belljar"];
        let is_ours =
            inside != RUNNER_INSIDE && of_ours.iter().any(|ours| Path::new(inside).starts_with(ours));
        if inside.is_empty() || !is_plain || is_ours {
            return Err(MountPlanError::Place { inside: inside.to_owned() }.into());
        }
        let opened = openat(CWD, path.as_path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let stat = fstat(&opened)?;
        let is_meant = path.is(&opened)?;
        if !is_meant
            || !matches!(FileType::from_raw_mode(stat.st_mode), FileType::Directory | FileType::RegularFile)
        {
            return Err(MountPlanError::Kind { path: shown() }.into());
        }
        let socket =
            std::fs::canonicalize(self.engine.socket()).unwrap_or_else(|_| self.engine.socket().to_owned());
        if socket.starts_with(std::fs::canonicalize(path.as_path())?) {
            return Err(MountPlanError::Socket { path: shown() }.into());
        }
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Returns the expected mounts, by device and inode. The engine walks the paths once more, and a path may lead to
    /// another file by then.
    fn meant(
        &self,
        wanted: &SandboxRequest,
        job: Option<&HostPath>,
    ) -> Result<ExpectedMounts, Box<dyn Error + Send + Sync>> {
        let mut meant = BTreeMap::new();
        for Lent { path, inside } in &wanted.provision.lent {
            meant.insert(inside.clone(), self.check(path, inside)?);
        }
        if let WorkspaceChoice::Direct(path) | WorkspaceChoice::Seen(path) = &wanted.workspace {
            meant.insert("workspace".to_owned(), self.check(path, "workspace")?);
        }
        if let Some(job) = job {
            meant.insert(JOB.to_owned(), self.check(job, JOB)?);
        }
        let helper = HostPath::resolve(&self.settings.helper)?;
        meant.insert(own_program::PATH.to_owned(), self.check(&helper, "helper")?);
        Ok(meant)
    }

    /// Owner of the folder of a run that works on a copy.
    pub fn owner_of_copies() -> Identity {
        identity(user_of_copies())
    }

    /// Makes a sandbox like [`Backend::create`], in a folder that stays the caller's and is for one sandbox. A workspace
    /// that is a copy begins with what `fill` puts into it; nothing runs in it yet.
    ///
    /// # Errors
    /// [`BackendError`], also that of `fill`; then nothing runs, and what was put into the folder is removed.
    pub fn create_in(
        &self,
        folder: &RunFolder,
        wanted: SandboxRequest,
        fill: DirectoryFiller<'_>,
    ) -> Result<Box<dyn Sandbox>, BackendError> {
        let user = user(&wanted.workspace).map_err(BackendError::Create)?;
        let place = ContainerContext { folder, user, has_job: false };
        Ok(Box::new(self.build(&place, wanted, fill)?))
    }

    /// Makes a sandbox for a job, in a folder that stays the caller's and is for one sandbox. The job's part of the folder
    /// is at `/job`. A workspace that is empty at first is in the folder, too. It is returned with the sandbox, and held
    /// from before anything runs.
    ///
    /// # Errors
    /// [`BackendError`]; then nothing runs, and what was put into the folder is removed.
    pub fn create_for_job(
        &self,
        folder: &RunFolder,
        wanted: SandboxRequest,
    ) -> Result<(Box<dyn Sandbox>, Option<Directory>), BackendError> {
        let create = |error: Box<dyn Error + Send + Sync>| BackendError::Create(error);
        let user = user(&wanted.workspace).map_err(create)?;
        let mut held = None;
        let mut hold = |workspace: &Directory, _: Identity| {
            held = Some(workspace.open_own(Path::new("."))?);
            Ok(())
        };
        let sandbox = self.build(&ContainerContext { folder, user, has_job: true }, wanted, &mut hold)?;
        Ok((Box::new(sandbox), held))
    }

    fn build(
        &self,
        place: &ContainerContext<'_>,
        mut wanted: SandboxRequest,
        fill: DirectoryFiller<'_>,
    ) -> Result<DockerSandbox, BackendError> {
        let create = |error: Box<dyn Error + Send + Sync>| BackendError::Create(error);
        let ContainerContext { folder, user, has_job } = *place;
        if wanted.provision.programs.is_some() {
            return Err(BackendError::Programs { backend: Self::NAME, why: NO_MOUNTS });
        }
        let image = self.image()?;
        let job = has_job.then(|| HostPath::resolve(folder.private().join(JOB))).transpose();
        let job = job.map_err(|error| BackendError::Create(error.into()))?;
        let offered = InstalledAuthorities::to(&mut wanted);
        let home = home::lent(folder, &wanted.provision.home, identity(user)).map_err(create)?;
        wanted.provision.lent.extend(home);
        let mut meant = self.meant(&wanted, job.as_ref()).map_err(create)?;
        let (workspace, imprint) = workspace(&wanted.workspace, place, fill).map_err(create)?;
        let is_seen = matches!(wanted.workspace, WorkspaceChoice::Seen(_));
        let writable = WritableMounts { workspace: !is_seen, job: has_job };
        let on_disk = workspace.iter().filter(|_| !is_seen).chain(&job);
        let growth = disk_quota::growth(on_disk, wanted.provision.limits.disk_bytes)
            .map_err(|error| BackendError::Create(error.into()))?;
        let doors =
            PendingHatches::open(&wanted.provision.hatches, folder, identity(user)).map_err(create)?;
        if let Some(doors) = &doors {
            meant.insert(doors.inside().to_owned(), self.check(doors.folder(), "handover").map_err(create)?);
        }
        let blueprint = ContainerBlueprint {
            settings: &self.settings,
            image_id: &image.id,
            run: folder.id(),
            owner: folder.path(),
            user,
            workspace: workspace.as_ref().map(HostPath::as_path),
            job: job.as_ref().map(HostPath::as_path),
            writable,
            lent: &wanted.provision.lent,
            limits: wanted.provision.limits,
            doors: doors.as_ref(),
        };
        let mut container = Container::create(&self.engine, &blueprint)?;
        let of_trust = offered.map(|offered| offered.variables(&self.engine, container.id())).transpose()?;
        let (channel, measured) = container.start()?;
        let hatches = doors.map(PendingHatches::take).transpose().map_err(create)?.unwrap_or_default();
        let misplaced = meant.iter().find(|(inside, found)| measured.places.get(*inside) != Some(*found));
        if let Some((inside, _)) = misplaced {
            return Err(create(MountPlanError::Other { inside: inside.clone() }.into()));
        }
        let watched = Arc::new(WatchedContainer::of(&container, &measured, &channel));
        let disk = match (workspace.is_some(), &growth) {
            _ if is_seen => Disk::OutOfReach,
            (false, _) => Disk::InMemory,
            (true, Some(_)) => Disk::Watched,
            (true, None) => Disk::Free,
        };
        let asked = ReportSubject {
            limits: &wanted.provision.limits,
            disk,
            user,
            writable: writable.places(),
            container_id: container.id(),
        };
        let isolation = report(&measured, &asked);
        let missing = isolation.missing(&wanted.provision.required);
        if !missing.is_empty() {
            return Err(BackendError::Weaker { backend: Self::NAME, missing });
        }
        let has_run_out_of_memory = self.follow_memory(&container)?;
        let env = environment(wanted.provision, of_trust.into_iter().flatten(), folder.id());
        let mut sandbox = DockerSandbox::new(ReadyContainer {
            container,
            watched: Arc::clone(&watched),
            run: folder.id().clone(),
            env,
            hatches,
            isolation,
            has_run_out_of_memory,
        });
        sandbox.imprint = imprint;
        sandbox.fate = growth.map(|growth| self.quotas.take(growth, watched)).unwrap_or_default();
        Ok(sandbox)
    }

    /// Has the engine kill the container when it runs out of memory. Returns whether it did.
    fn follow_memory(&self, container: &Container) -> Result<Arc<AtomicBool>, BackendError> {
        let has_run_out = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&has_run_out);
        self.engine
            .kill_on_out_of_memory(container.id(), move || tell.store(true, Ordering::Release))
            .map_err(|error| BackendError::Create(error.into()))?;
        Ok(has_run_out)
    }
}

/// Returns the variables of every program: those of the hatches and of TLS interception, and above them the request's.
fn environment(
    provision: Provision,
    of_trust: impl Iterator<Item = (&'static str, String)>,
    id: &RunId,
) -> BTreeMap<String, String> {
    let of_hatches = provision.hatches.iter().flat_map(|hatch| hatch.environment());
    let own = of_hatches.chain(of_trust).map(|(name, value)| (name.to_owned(), value));
    let mut env: BTreeMap<String, String> = own.collect();
    env.extend(provision.env);
    fill_session(&mut env, id);
    env
}

impl Backend for DockerBackend {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn health(&self) -> Result<(), BackendError> {
        self.engine.ping().map_err(|error| unavailable(&error))?;
        self.image()?;
        let made = self.create(SandboxRequest::default());
        made.and_then(Sandbox::destroy).map_err(|error| unavailable(&error))
    }

    fn create(&self, wanted: SandboxRequest) -> Result<Box<dyn Sandbox>, BackendError> {
        let user = user(&wanted.workspace).map_err(BackendError::Create)?;
        let folder =
            self.state.begin_run(identity(user)).map_err(|error| BackendError::Create(error.into()))?;
        let place = ContainerContext { folder: &folder, user, has_job: false };
        let mut sandbox = self.build(&place, wanted, &mut |_, _| Ok(()))?;
        sandbox.folder = Some(folder);
        Ok(Box::new(sandbox))
    }

    fn reconcile(&self) -> Result<Vec<RunId>, BackendError> {
        let labels = vec![
            format!("{}=true", container::MANAGED),
            format!("{}={}", container::DEPLOYMENT, self.settings.deployment.as_str()),
        ];
        let clear = |error: EngineRequestError| BackendError::Clear(error.into());
        let mut removed = Vec::new();
        for found in self.engine.list(labels).map_err(clear)? {
            let (labels, id) = (found.labels.unwrap_or_default(), found.id.unwrap_or_default());
            let Some(run) = labels.get(container::RUN).and_then(|run| RunId::parse(run).ok()) else {
                continue;
            };
            // If another installation keeps its folders elsewhere, it can't be determined from here if the owner lives.
            let folder = self.state.run_folder(&run);
            let is_ours = labels.get(container::OWNER).is_some_and(|owner| Path::new(owner) == folder);
            if is_ours && !self.state.is_owned(&run) {
                self.engine.remove(&id).map_err(clear)?;
                removed.push(run);
            }
        }
        let folders = self.state.reconcile().map_err(|error| BackendError::Clear(error.into()))?;
        removed.extend(folders.into_iter().filter(|run| !removed.contains(run)).collect::<Vec<_>>());
        Ok(removed)
    }
}

/// The directory that the container has as its workspace, if it has one of the host's, and what it was if it is a copy.
fn workspace(
    choice: &WorkspaceChoice,
    &ContainerContext { folder, user, has_job }: &ContainerContext<'_>,
    fill: DirectoryFiller<'_>,
) -> Result<(Option<HostPath>, Option<Imprint>), Box<dyn Error + Send + Sync>> {
    let owner = identity(user);
    let make = || -> Result<_, Box<dyn Error + Send + Sync>> {
        let path = folder.make(COPY, owner)?;
        let directory = Directory::open_host(path.as_path())?;
        Ok((path, directory))
    };
    Ok(match choice {
        WorkspaceChoice::Empty if has_job => {
            let (path, made) = make()?;
            fill(&made, owner)?;
            (Some(path), None)
        }
        WorkspaceChoice::Empty => (None, None),
        WorkspaceChoice::Direct(path) | WorkspaceChoice::Seen(path) => (Some(path.clone()), None),
        WorkspaceChoice::Copy(source) => {
            let (path, copied) = make()?;
            let imprint = copy::tree(&Directory::open_meant(source)?, &copied, owner)?;
            fill(&copied, owner)?;
            (Some(path), Some(imprint))
        }
    })
}

/// Returns the user inside. Containers made by root have a user of their own, or the owner of the directory that they work
/// in.
fn user(workspace: &WorkspaceChoice) -> Result<ContainerUser, Box<dyn Error + Send + Sync>> {
    match workspace {
        WorkspaceChoice::Direct(path) | WorkspaceChoice::Seen(path) if geteuid().is_root() => {
            let stat = fstat(&Directory::open_meant(path)?)?;
            match stat.st_uid {
                0 => Err(MountPlanError::Roots { path: path.as_path().display().to_string() }.into()),
                uid => Ok(ContainerUser { uid, gid: stat.st_gid }),
            }
        }
        _ => Ok(user_of_copies()),
    }
}

/// Returns the user for copies. A host process that is not root can only use its own user, or it could not clear away what
/// is left.
fn user_of_copies() -> ContainerUser {
    match geteuid().is_root() {
        true => USER,
        false => ContainerUser { uid: geteuid().as_raw(), gid: getegid().as_raw() },
    }
}

fn identity(ContainerUser { uid, gid }: ContainerUser) -> Identity {
    Identity { inside_uid: uid, inside_gid: gid, host_uid: uid, host_gid: gid }
}

fn unavailable(error: &(dyn Error + 'static)) -> BackendError {
    let why = with_causes(error);
    let hint = match error.downcast_ref() {
        Some(EngineRequestError::Unreachable { .. }) => "; is it running, and may this user open its socket?",
        _ => "",
    };
    BackendError::Unavailable { backend: DockerBackend::NAME, why: format!("{why}{hint}") }
}
