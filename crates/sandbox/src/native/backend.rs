//! The native backend: sandboxes launched by a small process, their folders in a state directory.

use super::disk_quota::DiskQuotas;
use super::groups::DeploymentGroups;
use super::programs::NO_LANDLOCK;
use super::sandbox::{NativeSandbox, SandboxParts};
use super::teardown::MountTeardown;
use super::warm_pool::{WarmPool, WarmSandbox};
use super::{HostUser, NativeSite, RunningSandbox, StartError, build, isolation};
use crate::backend::{Backend, BackendError, DirectoryFiller, Sandbox, SandboxRequest};
use crate::correlation::fill_session;
use crate::run::WorkspaceChoice;
use crate::spec::{SandboxSpec, Workspace};
use crate::state::StateDirectory;
use crate::workspace::live_workspace::{CopyLayers, HeldWorkspace};
use belljar_confine::execution::ResidentSandbox;
use belljar_confine::launcher::Launcher;
use belljar_contract::id::RunId;
use belljar_files::directory::{Directory, DirectoryError};
use std::path::Path;
use std::sync::Arc;

/// Makes native sandboxes.
#[derive(Debug)]
pub struct NativeBackend {
    shop: Arc<SandboxBuilder>,
    /// Empty ones that are ready, for a program that makes many.
    spares: Option<WarmPool>,
}

/// State that is needed to build a sandbox.
#[derive(Debug)]
pub(super) struct SandboxBuilder {
    launcher: Arc<Launcher>,
    makes_many: bool,
    state: StateDirectory,
    groups: DeploymentGroups,
    quotas: DiskQuotas,
    remains: Arc<MountTeardown>,
}

// === impl SandboxBuilder ===

impl SandboxBuilder {
    fn open(launcher: Arc<Launcher>, state: StateDirectory, makes_many: bool) -> Self {
        let groups = DeploymentGroups::open(&state);
        Self { launcher, makes_many, state, groups, quotas: DiskQuotas::default(), remains: Arc::default() }
    }

    /// A sandbox in which nothing runs yet.
    pub(super) fn build(&self, spec: &SandboxSpec) -> Result<RunningSandbox, StartError> {
        let Self { launcher, makes_many, groups, quotas, state: _, remains: _ } = self;
        let site = NativeSite { launcher: Some(launcher), makes_many: *makes_many, groups, quotas };
        build(&site, spec, None)
    }
}

// === impl NativeBackend ===

impl NativeBackend {
    /// The name in configurations and reports.
    pub const NAME: &'static str = "native";

    /// Makes a backend that launches through `launcher` and keeps its folders in `state`.
    pub fn new(launcher: Arc<Launcher>, state: StateDirectory) -> Self {
        Self { shop: Arc::new(SandboxBuilder::open(launcher, state, false)), spares: None }
    }

    /// Makes a backend for a program that makes many sandboxes. A warm pool holds `spares` empty sandboxes, each for one
    /// use. Only a sandbox whose workspace is a copy has a folder of its own.
    pub fn for_many(launcher: Arc<Launcher>, state: StateDirectory, spares: usize) -> Self {
        let shop = Arc::new(SandboxBuilder::open(launcher, state, true));
        let spares = Some(WarmPool::keep(Arc::clone(&shop), spares));
        Self { shop, spares }
    }

    /// Takes a sandbox from the warm pool, or makes one now.
    fn have(&self, spec: SandboxSpec) -> Result<(SandboxSpec, RunningSandbox), StartError> {
        let is_plain = matches!(spec.workspace, Workspace::Empty)
            && spec.provision.lent.is_empty()
            && spec.provision.hatches.is_empty()
            && spec.provision.home.is_empty()
            && spec.provision.programs.is_none();
        let spare =
            self.spares.as_ref().filter(|_| is_plain).and_then(|spares| spares.take(&spec.provision.limits));
        let Some(WarmSandbox { spec: made_for, running }) = spare else {
            return self.shop.build(&spec).map(|running| (spec, running));
        };
        let missing = isolation::missing(&running.isolation, &spec);
        match missing.is_empty() {
            true => Ok((SandboxSpec { id: made_for.id, user: made_for.user, ..spec }, running)),
            false => Err(StartError::Weaker { missing }),
        }
    }
}

impl Backend for NativeBackend {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn health(&self) -> Result<(), BackendError> {
        let spec = SandboxSpec::new(StateDirectory::new_id(), HostUser::choose());
        let made = self.shop.build(&spec).map_err(|error| BackendError::Unavailable {
            backend: Self::NAME,
            why: format!("{}; run `belljar doctor` for details", crate::backend::with_causes(&error)),
        })?;
        ResidentSandbox::new(made.launched.sealed).end();
        drop(made.group);
        Ok(())
    }

    fn create(&self, wanted: SandboxRequest) -> Result<Box<dyn Sandbox>, BackendError> {
        self.create_filled(wanted, &mut |_, _| Ok(()))
    }

    fn create_filled(
        &self,
        mut wanted: SandboxRequest,
        fill: DirectoryFiller<'_>,
    ) -> Result<Box<dyn Sandbox>, BackendError> {
        let create = |error: Box<dyn std::error::Error + Send + Sync>| BackendError::Create(error);
        let user = HostUser::choose();
        let is_copy = matches!(wanted.workspace, WorkspaceChoice::Copy(_));
        let folder = match is_copy || self.spares.is_none() {
            true => Some(self.shop.state.begin_run(user.identity()).map_err(|error| create(error.into()))?),
            false => None,
        };
        let workspace = Workspace::of_run(&wanted.workspace, folder.as_ref(), user);
        let id = folder.as_ref().map_or_else(StateDirectory::new_id, |folder| folder.id().clone());
        fill_session(&mut wanted.provision.env, &id);
        let spec = SandboxSpec {
            workspace: workspace.map_err(|error| create(error.into()))?,
            provision: wanted.provision,
            ..SandboxSpec::new(id, user)
        };
        // Held from before the start: whatever takes over their names, these are the meant directories.
        let layers = hold(&spec.workspace).map_err(|error| create(error.into()))?;
        if let Some(layers) = &layers {
            fill(&layers.upper, user.identity()).map_err(create)?;
        }
        let (spec, running) = self.have(spec).map_err(|error| match error {
            StartError::Weaker { missing } => BackendError::Weaker { backend: Self::NAME, missing },
            StartError::NoLandlock => BackendError::Programs { backend: Self::NAME, why: NO_LANDLOCK },
            error => create(error.into()),
        })?;
        let user = spec.user.identity();
        let root = running.launched.exported.map(Directory::from);
        let root =
            root.ok_or_else(|| create("the launcher did not return the sandbox's root directory".into()))?;
        let shown = root.open_place(Path::new("workspace")).map_err(|error| create(error.into()))?;
        if matches!(spec.workspace, Workspace::Empty) {
            fill(&shown, user).map_err(create)?;
        }
        let workspace = HeldWorkspace { shown, layers, owner: user };
        let made = SandboxParts {
            root,
            workspace,
            resident: ResidentSandbox::new(running.launched.sealed),
            mounts: running.launched.mounts,
            hatches: running.launched.hatches,
            remains: Arc::clone(&self.shop.remains),
            group: running.group,
            fate: running.fate,
            folder,
        };
        Ok(Box::new(NativeSandbox::new(spec, made, running.isolation)))
    }

    fn reconcile(&self) -> Result<Vec<RunId>, BackendError> {
        super::reconcile(&self.shop.state)
    }
}

fn hold(workspace: &Workspace) -> Result<Option<CopyLayers>, DirectoryError> {
    let Workspace::Copy { source, upper, .. } = workspace else { return Ok(None) };
    Ok(Some(CopyLayers { source: Directory::open_meant(source)?, upper: Directory::open_meant(upper)? }))
}
