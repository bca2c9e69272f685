//! The workspace of the agent's session, for the host's git.

use super::failures;
use super::mcp_sessions::McpSessions;
use super::tree_transfer::{TreeTransfer, TreeTransferError};
use crate::state;
use belljar_contract::category::Category;
use belljar_contract::id::RunId;
use belljar_contract::path::WorkspacePath;
use belljar_contract::tool::DomainCode;
use belljar_files::directory::Directory;
use belljar_files::tree::{HostTree, TreeLimits};
use belljar_policy::handoff::ApprovedPaths;
use belljar_sandbox::backend::with_causes;
use belljar_sandbox::session::SessionClient;
use belljar_tools::answer::Failure;
use belljar_tools::builtin::git::host::{CallBounds, GitWorkspace, GitWorkspaces, ReadTree, of_tree};
use belljar_tools::caller::Caller;
use belljar_tools::workbench::failure as of_refusal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The session in which the built-in tools work.
pub(super) struct SessionGitWorkspaces {
    pub(super) desk: Arc<McpSessions>,
}

/// Workspace of a session.
struct SessionWorkspace {
    client: SessionClient,
    run_id: RunId,
    folder: PathBuf,
}

/// Limits of a tree that is read from the workspace. They are generous, because ignored files are read but not pushed.
const READ: TreeLimits = TreeLimits { files: 500_000, bytes: 4 << 30, file_bytes: 1 << 30 };

impl GitWorkspaces for SessionGitWorkspaces {
    fn of(&self, _: &Caller) -> Result<Box<dyn GitWorkspace>, Failure> {
        let client = self.desk.own_session(Category::VersionControl)?;
        let run_id = run_of(&client)?;
        let folder = state::open().run_folder(&run_id);
        Ok(Box::new(SessionWorkspace { client, run_id, folder }))
    }

    fn approved(&self) -> &ApprovedPaths {
        &self.desk.offer.pushes
    }

    fn approval_hint(&self) -> &'static str {
        "The operator does so with `--trust PATH` when the tools are started. "
    }
}

impl GitWorkspace for SessionWorkspace {
    fn run_id(&self) -> &RunId {
        &self.run_id
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn source(&self) -> Option<&Path> {
        self.client.session().copy_of.as_deref()
    }

    fn put(&self, tree: &HostTree<'_>, inside: &WorkspacePath, bounds: &CallBounds) -> Result<(), Failure> {
        let transfer = TreeTransfer { client: &self.client, bounds };
        transfer.put(tree, inside).map_err(|error| of_transfer(&error))
    }

    fn read(&self, inside: &WorkspacePath, scratch: &Path, bounds: &CallBounds) -> Result<ReadTree, Failure> {
        let top = Directory::open_host(scratch).map_err(|error| of_tree(&error.into()))?;
        let transfer = TreeTransfer { client: &self.client, bounds };
        transfer.take(inside, top, READ).map_err(|error| of_transfer(&error))
    }
}

/// Returns the run that a session is.
pub(super) fn run_of(client: &SessionClient) -> Result<RunId, Failure> {
    RunId::parse(&client.session().id).map_err(|error| Failure::internal("read the session's id", &error))
}

/// Returns the failure of a tree that can't be transferred.
fn of_transfer(error: &TreeTransferError) -> Failure {
    let code = match error {
        TreeTransferError::Session(error) => return failures::of_session(error),
        TreeTransferError::Refused(refused) => return of_refusal(refused.clone()),
        TreeTransferError::Directory(error) => return Failure::internal("read the tree", error),
        TreeTransferError::TooMuch { .. } | TreeTransferError::OutOfTime => DomainCode::LimitExceeded,
        TreeTransferError::Broken { .. } => DomainCode::Unavailable,
        TreeTransferError::NoTree => DomainCode::ToolFailed,
    };
    Failure::new(code, with_causes(error))
}
