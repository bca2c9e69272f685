//! Checks of trusted files on the host (configuration, policies, secrets) against the workspaces that sandboxes write directly:
//! neither may contain the other.

use crate::configuration::{candidates, read_bytes};
use crate::error::CliError;
use crate::state;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_trusted::trusted_file::{self, PathRole, PathState, UntrustedFileError};
use belljar_trusted::{input, named_files};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Checks that only trusted users can write a file. The caller reads the file itself.
pub(crate) fn check(path: &Path) -> Result<(), CliError> {
    state::open();
    trusted_file::check(path).map(drop).map_err(|error| untrusted(path, error))
}

/// Checks a file with a secret of a node. A file that other users can read is logged but accepted: the machine may have no
/// other users.
pub(crate) fn check_secret(path: &Path) -> Result<(), CliError> {
    check(path)?;
    if trusted_file::is_readable_by_others(path) {
        let path = crate::output::path(path).to_string();
        tracing::warn!(path, "other users of this machine can read this file; chmod 600");
    }
    Ok(())
}

/// Refuses a policy file that the sandbox could write: the sandbox could then change its own policy.
pub(crate) fn check_outside(path: &Path, workspace: &WorkspaceChoice) -> Result<(), CliError> {
    let WorkspaceChoice::Direct(directory) = workspace else { return Ok(()) };
    trusted_file::check_outside(path, directory.as_path()).map_err(|error| untrusted(path, error))
}

fn untrusted(path: &Path, error: UntrustedFileError) -> CliError {
    CliError::read(path, error.into())
}

/// Registers this program, the default configurations and the files that they name, so that a change to one needs an approval. Files
/// that this process doesn't use are registered, too: another process will use them.
pub(crate) fn register_usual() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let state = state::open();
        if state.path().is_dir() {
            // Its content is trusted, such as the levels of agents.
            let _ = trusted_file::expect(state.path(), PathRole::Mentioned);
        }
        // The user's next command runs this program again.
        if let Ok(program) = std::env::current_exe() {
            let _ = trusted_file::expect(&program, PathRole::File);
        }
        for path in candidates() {
            let Ok(PathState::File) = trusted_file::expect(&path, PathRole::File) else { continue };
            let read = input::open(&path).and_then(read_bytes);
            read.iter().for_each(|document| named_files::register(document));
        }
    });
}

/// Registers the workspace if a sandbox writes it directly. Refuses a workspace that contains a trusted file, a path where the sandbox
/// could create one, or belljar's state.
pub(crate) fn lend(workspace: &WorkspaceChoice) -> Result<(), CliError> {
    if !matches!(workspace, WorkspaceChoice::Empty) {
        register_usual();
    }
    let WorkspaceChoice::Direct(directory) = workspace else { return Ok(()) };
    let directory = directory.as_path();
    let mut places = candidates();
    places.push(state::open().path().join("runs"));
    // Both may be relative to the working directory.
    let places: Vec<PathBuf> = places.iter().filter_map(|place| std::path::absolute(place).ok()).collect();
    trusted_file::lend_workspace(directory, &places).map_err(|error| CliError::usage(error.to_string()))
}
