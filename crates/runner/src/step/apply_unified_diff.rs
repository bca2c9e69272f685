//! `apply_unified_diff`: a patch to files of the workspace. It applies completely, or no byte changes.
//!
//! Where `git apply` would accept a patch, the result is the same here; see [`crate::patch`] for what is refused beyond
//! that. No symbolic link is followed. Files keep their permission bits except for the execute bits that the patch
//! changes.

mod parents;
mod staging;
mod transaction;
mod workspace_tree;

use super::StepContext;
use crate::deadline::{Deadline, Interruption};
use crate::directory::PathError;
use crate::failure_code::{Fault, code_of_io};
use crate::patch::plan::{self, Change as Planned, FileChangeKind};
use crate::patch::{self, ParseError, Patch, PlanError, RelativeName};
use belljar_contract::failure::FailureCode;
use belljar_contract::job::step::apply_unified_diff::ApplyUnifiedDiff;
use belljar_contract::path::{ParsePathError, PathEscapes, StepPath, WorkspacePath};
use belljar_contract::result::Change;
use belljar_contract::result::output::{AppliedDiff, PatchedFile, StepOutput};
use belljar_policy::admission::{AdmissionDenial, AdmittedJob};
use std::path::Path;
use transaction::{Transaction, TransactionError};
use workspace_tree::WorkspaceTree;

/// Reason why a patch was not applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyUnifiedDiffError {
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error("path refused: {path}")]
    Name {
        path: RelativeName,
        #[source]
        source: ParsePathError,
    },
    #[error(transparent)]
    Escapes(#[from] PathEscapes),
    #[error(transparent)]
    Denied(#[from] AdmissionDenial),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Workspace(#[from] PathError),
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    #[error(transparent)]
    Interrupted(#[from] Interruption),
}

pub(super) fn carry_out(
    apply: &ApplyUnifiedDiff,
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
) -> Result<StepOutput, ApplyUnifiedDiffError> {
    let patch = patch::parse(apply.diff.as_bytes())?;
    permit(&patch, surroundings.admitted)?;
    let root = surroundings.workspace.subdirectory(Path::new(""))?;
    let mut tree = WorkspaceTree::new(&root);
    let plan = plan::plan(&patch, &mut tree)?;
    let mut transaction = Transaction::new(&root);
    staging::stage(&plan.changes, &tree, &mut transaction, deadline)?;
    transaction.commit(&plan.removed)?;
    Ok(StepOutput::ApplyUnifiedDiff(AppliedDiff { files: plan.changes.iter().map(patched_file).collect() }))
}

/// Checks every path of the patch, read or written, against the rules for paths and the job's own.
fn permit(patch: &Patch<'_>, admitted: &AdmittedJob) -> Result<(), ApplyUnifiedDiffError> {
    for file in patch.files() {
        for name in file.names.source().into_iter().chain(file.names.target()) {
            // Git quotes tabs and line breaks, so they are allowed; characters that hide or reorder text are refused as
            // everywhere.
            StepPath::parse(&name.as_str().replace(['\t', '\n', '\r'], " "))
                .map_err(|source| ApplyUnifiedDiffError::Name { path: name.clone(), source })?;
            admitted.permit_path(&WorkspacePath::beneath_root(name.as_str())?)?;
        }
    }
    Ok(())
}

fn patched_file(planned: &Planned) -> PatchedFile {
    let (change, from) = match &planned.what {
        FileChangeKind::Created => (Change::Created, None),
        FileChangeKind::Modified => (Change::Modified, None),
        FileChangeKind::Deleted => (Change::Deleted, None),
        FileChangeKind::Renamed { from } => (Change::Renamed, Some(from)),
        FileChangeKind::Copied { from } => (Change::Copied, Some(from)),
        FileChangeKind::ModeChanged => (Change::ModeChanged, None),
    };
    let text = |name: &RelativeName| name.as_str().to_owned();
    PatchedFile { path: text(&planned.path), change, from: from.map(text) }
}

// === impl ApplyUnifiedDiffError ===

impl Fault for ApplyUnifiedDiffError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Parse(error) if error.is_policy() => FailureCode::PolicyViolation,
            Self::Parse(ParseError::TooLarge { .. }) => FailureCode::ConstraintViolation,
            Self::Parse(_) => FailureCode::StepFailed,
            Self::Name { .. } | Self::Escapes(_) | Self::Denied(_) => FailureCode::PolicyViolation,
            Self::Plan(error) if error.is_policy() => FailureCode::PolicyViolation,
            Self::Plan(PlanError::TooLarge { .. }) => FailureCode::ConstraintViolation,
            Self::Plan(PlanError::Io { source, .. }) => code_of_io(source),
            Self::Plan(_) => FailureCode::StepFailed,
            Self::Workspace(error) => error.code(),
            Self::Transaction(error) => error.code(),
            Self::Interrupted(interrupted) => interrupted.code(),
        }
    }
}
