//! The native backend: sandboxes launched by a small process, their folders in a state directory.

use super::sandbox::NativeSandbox;
use super::{identity, resident};
use crate::backend::{Backend, BackendError, Fill, Sandbox, Wanted};
use crate::directory::{Directory, DirectoryError};
use crate::run::WorkspaceChoice;
use crate::spec::{SandboxSpec, Workspace};
use crate::state::{RunFolder, State};
use crate::workspace::held::{HeldWorkspace, Layers};
use belljar_confine::execution::Resident;
use belljar_confine::launcher::Launcher;
use belljar_contract::id::RunId;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Makes native sandboxes.
#[derive(Debug)]
pub struct NativeBackend {
    launcher: Arc<Launcher>,
    state: State,
}

// === impl NativeBackend ===

impl NativeBackend {
    /// The name in configurations and reports.
    pub const NAME: &'static str = "native";

    /// One that launches through `launcher` and keeps its folders in `state`.
    pub fn new(launcher: Arc<Launcher>, state: State) -> Self {
        Self { launcher, state }
    }
}

impl Backend for NativeBackend {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn health(&self) -> Result<(), BackendError> {
        let spec = SandboxSpec {
            workspace: Workspace::Empty,
            job: None,
            lent: Vec::new(),
            unlisted_scratch: None,
            env: BTreeMap::new(),
        };
        let made = resident(&self.launcher, &spec).map_err(|error| BackendError::Unavailable {
            backend: Self::NAME,
            why: format!("{}; `belljar doctor` says more", crate::backend::with_causes(&error)),
        })?;
        Resident::new(made.launched.sealed).end();
        Ok(())
    }

    fn create(&self, wanted: Wanted) -> Result<Box<dyn Sandbox>, BackendError> {
        self.create_filled(wanted, &mut |_, _| Ok(()))
    }

    fn create_filled(&self, wanted: Wanted, fill: Fill<'_>) -> Result<Box<dyn Sandbox>, BackendError> {
        let create = |error: Box<dyn std::error::Error + Send + Sync>| BackendError::Create(error);
        let owner = identity::choose().identity;
        let folder = self.state.begin_run(owner).map_err(|error| create(error.into()))?;
        let spec = SandboxSpec {
            workspace: layers(&wanted.workspace, &folder).map_err(|error| create(error.into()))?,
            job: None,
            lent: wanted.lent,
            unlisted_scratch: None,
            env: wanted.env,
        };
        // Held from before the start: whatever comes to their names, these are what was meant.
        let layers = hold(&spec.workspace).map_err(|error| create(error.into()))?;
        if let Some(layers) = &layers {
            fill(&layers.upper, owner).map_err(create)?;
        }
        let running = resident(&self.launcher, &spec).map_err(|error| create(error.into()))?;
        let resident = Resident::new(running.launched.sealed);
        let root = running.launched.exported.map(Directory::from);
        let root = root.ok_or_else(|| create("the sandbox's root did not come back".into()))?;
        let shown = root.open_place(Path::new("workspace")).map_err(|error| create(error.into()))?;
        if matches!(spec.workspace, Workspace::Empty) {
            fill(&shown, owner).map_err(create)?;
        }
        let workspace = HeldWorkspace { shown, layers, owner };
        Ok(Box::new(NativeSandbox::new(folder, spec, resident, running.isolation, (root, workspace))))
    }

    fn reconcile(&self) -> Result<Vec<RunId>, BackendError> {
        self.state.reconcile().map_err(|error| BackendError::Clear(error.into()))
    }
}

/// The workspace, with a folder for its changes if it is a copy.
fn layers(choice: &WorkspaceChoice, folder: &RunFolder) -> Result<Workspace, crate::state::StateError> {
    Ok(match choice {
        WorkspaceChoice::Empty => Workspace::Empty,
        WorkspaceChoice::Direct(path) => Workspace::Direct(path.clone()),
        WorkspaceChoice::Copy(source) => Workspace::Copy {
            source: source.clone(),
            upper: folder.make("upper", identity::choose().identity)?,
            work: folder.make("work", identity::choose().identity)?,
        },
    })
}

fn hold(workspace: &Workspace) -> Result<Option<Layers>, DirectoryError> {
    let Workspace::Copy { source, upper, .. } = workspace else { return Ok(None) };
    Ok(Some(Layers { source: Directory::open_meant(source)?, upper: Directory::open_meant(upper)? }))
}
