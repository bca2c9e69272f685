//! Workspace of a session, as its keeper accesses it: that of its only sandbox, or a copy of the keeper's own on which all
//! its sandboxes work. Changes in either are reported, committed and undone in the same way.

use super::sandboxes::LiveSandboxes;
use crate::backend::BackendError;
use crate::run::WorkspaceChoice;
use crate::session::Refusal;
use crate::spec::HostPath;
use crate::state::RunFolder;
use crate::workspace::baseline::Baseline;
use crate::workspace::changes::{ChangeSet, ChangesError};
use crate::workspace::growth::WorkspaceGrowth;
use crate::workspace::imprint::Imprint;
use crate::workspace::live_workspace::{CopyLayers, HeldWorkspace};
use crate::workspace::relaxed_permissions::RelaxedPermissions;
use crate::workspace::{COPY, copy};
use belljar_confine::plan::Identity;
use belljar_files::directory::{Directory, DirectoryError};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

/// Workspace of a session.
#[derive(Debug)]
pub(in crate::session) struct SessionWorkspace {
    /// Choice of the caller.
    pub(in crate::session) choice: WorkspaceChoice,
    /// The keeper's own, if it is one.
    own: Option<OwnedWorkspace>,
}

/// State that a commit is measured against.
#[derive(Debug)]
pub(in crate::session) struct CommitBaseline {
    /// Time at which the copy was made, and the state that commits have left in its source since.
    pub(in crate::session) baseline: Baseline,
    /// Imprint of the copy, if it shares nothing with its source.
    pub(in crate::session) imprint: Option<Imprint>,
}

/// A workspace that no sandbox goes away with.
#[derive(Debug)]
struct OwnedWorkspace {
    held: HeldWorkspace,
    grown: Arc<WorkspaceGrowth>,
    folder: RunFolder,
}

type WorkspaceFailure = Box<dyn Error + Send + Sync>;

// === impl SessionWorkspace ===

impl SessionWorkspace {
    /// Makes the ground of a session whose only sandbox has the workspace.
    pub(in crate::session) fn of_sandbox(choice: WorkspaceChoice) -> Self {
        Self { choice, own: None }
    }

    /// Makes a workspace of the keeper's own, and the choice that sandboxes are made with. A directory that is changed in
    /// place stays where it is.
    pub(super) fn make(
        choice: WorkspaceChoice,
        (folder, owner): (RunFolder, Identity),
    ) -> Result<(Self, CommitBaseline), BackendError> {
        let made = Self::lay(&choice, (folder, owner)).map_err(BackendError::Create)?;
        let (own, measure) = made;
        Ok((Self { choice, own: Some(own) }, measure))
    }

    fn lay(
        choice: &WorkspaceChoice,
        (folder, owner): (RunFolder, Identity),
    ) -> Result<(OwnedWorkspace, CommitBaseline), WorkspaceFailure> {
        let baseline = Baseline::now();
        let shown = match choice {
            WorkspaceChoice::Direct(path) | WorkspaceChoice::Seen(path) => Directory::open_meant(path)?,
            WorkspaceChoice::Empty | WorkspaceChoice::Copy(_) => {
                Directory::open_meant(&folder.make(COPY, owner)?)?
            }
        };
        let (layers, imprint) = match choice {
            WorkspaceChoice::Copy(source) => {
                let source = Directory::open_meant(source)?;
                let imprint = copy::tree(&source, &shown, owner)?;
                (Some(CopyLayers { source, upper: shown.try_clone()? }), Some(imprint))
            }
            _ => (None, None),
        };
        let baseline = match &imprint {
            Some(imprint) => baseline.of_imprint(imprint),
            None => baseline,
        };
        let grown = Arc::new(WorkspaceGrowth::since_now(shown.try_clone()?));
        let held = HeldWorkspace { shown, layers, owner };
        Ok((OwnedWorkspace { held, grown, folder }, CommitBaseline { baseline, imprint }))
    }

    /// Returns the growth of the workspace by what was written there.
    pub(super) fn grown(&self) -> Option<Arc<WorkspaceGrowth>> {
        self.own.as_ref().map(|own| Arc::clone(&own.grown))
    }

    /// Returns the workspace that sandboxes are asked to work on, or only to look at.
    pub(super) fn for_sandboxes(&self, is_seen: bool) -> Result<WorkspaceChoice, BackendError> {
        let path = match (&self.own, &self.choice) {
            (_, WorkspaceChoice::Direct(path)) => path.clone(),
            (Some(own), WorkspaceChoice::Empty | WorkspaceChoice::Copy(_)) => {
                let path = HostPath::resolve(own.folder.private().join(COPY));
                path.map_err(|error| BackendError::Create(error.into()))?
            }
            (_, choice) => return Ok(choice.clone()),
        };
        Ok(if is_seen { WorkspaceChoice::Seen(path) } else { WorkspaceChoice::Direct(path) })
    }

    /// The workspace as a fork begins with it, if there can be one.
    pub(super) fn to_fork<'g>(
        &'g self,
        standing: &'g LiveSandboxes<'_>,
    ) -> Result<&'g HeldWorkspace, Refusal> {
        let shown = standing.iter().find_map(|sandbox| sandbox.workspace());
        shown.filter(|_| self.own.is_none()).ok_or(Refusal::Apart)
    }

    /// The workspace with its layers, if it is a copy.
    pub(super) fn copy<'g>(
        &'g self,
        standing: &'g LiveSandboxes<'_>,
    ) -> Result<(&'g HeldWorkspace, &'g CopyLayers), Refusal> {
        let path = match &self.choice {
            WorkspaceChoice::Direct(path) | WorkspaceChoice::Seen(path) => path,
            WorkspaceChoice::Empty => return Err(Refusal::Empty),
            WorkspaceChoice::Copy(path) => {
                let of_sandbox = || standing.iter().find_map(|sandbox| sandbox.workspace());
                let held = self.own.as_ref().map(|own| &own.held).or_else(of_sandbox);
                let held = held.ok_or(Refusal::Apart)?;
                let none = || Refusal::Direct { directory: shown(path) };
                return Ok((held, held.layers.as_ref().ok_or_else(none)?));
            }
        };
        Err(Refusal::Direct { directory: shown(path) })
    }

    /// Clears away what is the keeper's own.
    pub(super) fn end(&mut self) {
        if let Some(OwnedWorkspace { held, folder, .. }) = self.own.take() {
            drop(held);
            // A folder that can't be cleared away now is cleared away as a leftover; changes to a copy stay.
            let _ = folder.end();
        }
    }
}

fn shown(path: &HostPath) -> String {
    path.as_path().display().to_string()
}

// === impl CommitBaseline ===

impl CommitBaseline {
    /// Makes the measure of a copy that is an overlay on its source.
    pub(in crate::session) fn of_layer(baseline: Baseline) -> Self {
        Self { baseline, imprint: None }
    }

    /// Reads the changes while work in the sandbox goes on.
    pub(super) fn read(
        &self,
        layers: &CopyLayers,
        opened: &mut RelaxedPermissions<'_>,
    ) -> Result<ChangeSet, ChangesError> {
        match &self.imprint {
            Some(imprint) => ChangeSet::read_live_copy(&layers.source, &layers.upper, imprint, opened),
            None => ChangeSet::read_live(&layers.source, &layers.upper, opened),
        }
    }

    /// Records everything that is equal in both now as unchanged, whatever becomes of the source.
    pub(super) fn renew<'p>(
        &mut self,
        layers: &CopyLayers,
        paths: impl IntoIterator<Item = &'p Path>,
    ) -> Result<(), DirectoryError> {
        match &mut self.imprint {
            Some(imprint) => imprint.renew((&layers.upper, &layers.source), paths),
            None => Ok(()),
        }
    }
}
