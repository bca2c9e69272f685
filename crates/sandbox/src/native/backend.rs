//! The native backend: sandboxes launched by a small process, their folders in a state directory.

use super::groups::{self, Groups};
use super::sandbox::{Made, NativeSandbox};
use super::warden::Warden;
use super::{HostUser, Running, Site, StartError, build};
use crate::backend::{Backend, BackendError, Fill, Sandbox, Wanted};
use crate::directory::{Directory, DirectoryError};
use crate::spec::{SandboxSpec, Workspace};
use crate::state::State;
use crate::workspace::held::{HeldWorkspace, Layers};
use belljar_confine::execution::Resident;
use belljar_confine::launcher::Launcher;
use belljar_contract::id::RunId;
use std::path::Path;
use std::sync::Arc;

/// Makes native sandboxes.
#[derive(Debug)]
pub struct NativeBackend {
    launcher: Arc<Launcher>,
    state: State,
    groups: Groups,
    warden: Warden,
}

// === impl NativeBackend ===

impl NativeBackend {
    /// The name in configurations and reports.
    pub const NAME: &'static str = "native";

    /// One that launches through `launcher` and keeps its folders in `state`.
    pub fn new(launcher: Arc<Launcher>, state: State) -> Self {
        let groups = Groups::open(&state);
        Self { launcher, state, groups, warden: Warden::default() }
    }

    /// A sandbox in which nothing runs yet.
    fn build(&self, spec: &SandboxSpec) -> Result<Running, StartError> {
        build(
            &Site { launcher: Some(&self.launcher), groups: &self.groups, warden: &self.warden },
            spec,
            None,
        )
    }
}

impl Backend for NativeBackend {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn health(&self) -> Result<(), BackendError> {
        let spec = SandboxSpec::new(State::new_id(), HostUser::choose());
        let made = self.build(&spec).map_err(|error| BackendError::Unavailable {
            backend: Self::NAME,
            why: format!("{}; `belljar doctor` says more", crate::backend::with_causes(&error)),
        })?;
        Resident::new(made.launched.sealed).end();
        drop(made.group);
        Ok(())
    }

    fn create(&self, wanted: Wanted) -> Result<Box<dyn Sandbox>, BackendError> {
        self.create_filled(wanted, &mut |_, _| Ok(()))
    }

    fn create_filled(&self, wanted: Wanted, fill: Fill<'_>) -> Result<Box<dyn Sandbox>, BackendError> {
        let create = |error: Box<dyn std::error::Error + Send + Sync>| BackendError::Create(error);
        let user = HostUser::choose();
        let folder = self.state.begin_run(user.identity()).map_err(|error| create(error.into()))?;
        let workspace = Workspace::of_run(&wanted.workspace, &folder, user);
        let spec = SandboxSpec {
            workspace: workspace.map_err(|error| create(error.into()))?,
            lent: wanted.lent,
            env: wanted.env,
            limits: wanted.limits,
            required: wanted.required,
            ..SandboxSpec::new(folder.id().clone(), user)
        };
        // Held from before the start: whatever comes to their names, these are what was meant.
        let layers = hold(&spec.workspace).map_err(|error| create(error.into()))?;
        if let Some(layers) = &layers {
            fill(&layers.upper, user.identity()).map_err(create)?;
        }
        let running = self.build(&spec).map_err(|error| match error {
            StartError::Weaker { missing } => BackendError::Weaker { backend: Self::NAME, missing },
            error => create(error.into()),
        })?;
        let root = running.launched.exported.map(Directory::from);
        let root = root.ok_or_else(|| create("the sandbox's root did not come back".into()))?;
        let shown = root.open_place(Path::new("workspace")).map_err(|error| create(error.into()))?;
        if matches!(spec.workspace, Workspace::Empty) {
            fill(&shown, user.identity()).map_err(create)?;
        }
        let workspace = HeldWorkspace { shown, layers, owner: user.identity() };
        let resident = Resident::new(running.launched.sealed);
        let made = Made { root, workspace, resident, group: running.group, fate: running.fate, folder };
        Ok(Box::new(NativeSandbox::new(spec, made, running.isolation)))
    }

    fn reconcile(&self) -> Result<Vec<RunId>, BackendError> {
        groups::clear(&self.state).map_err(|error| BackendError::Clear(error.into()))?;
        self.state.reconcile().map_err(|error| BackendError::Clear(error.into()))
    }
}

fn hold(workspace: &Workspace) -> Result<Option<Layers>, DirectoryError> {
    let Workspace::Copy { source, upper, .. } = workspace else { return Ok(None) };
    Ok(Some(Layers { source: Directory::open_meant(source)?, upper: Directory::open_meant(upper)? }))
}
