//! The files that belljar obeys on the host, and the workspaces that sandboxes write directly: one must not be in the other.

use crate::configuration::{candidates, read_bytes};
use crate::error::CliError;
use crate::state;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_trusted::trusted_file::{self, Found, Role, UntrustedFileError};
use belljar_trusted::{input, named};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Opens a file that belljar obeys, if no sandbox and no other user can write it.
pub(crate) fn open(path: &Path) -> Result<File, CliError> {
    state::open();
    trusted_file::open(path).map_err(|error| untrusted(path, error))
}

/// Checks a file that belljar obeys, and that is read elsewhere.
pub(crate) fn check(path: &Path) -> Result<(), CliError> {
    state::open();
    trusted_file::check(path).map(drop).map_err(|error| untrusted(path, error))
}

/// Checks a file with a secret of a node. That other users can read it is logged, and it counts all the same: the
/// machine may have no other users.
pub(crate) fn check_secret(path: &Path) -> Result<(), CliError> {
    check(path)?;
    if trusted_file::is_readable_by_others(path) {
        let path = crate::output::path(path).to_string();
        tracing::warn!(path, "other users of this machine can read this file; chmod 600");
    }
    Ok(())
}

/// Refuses a policy that lies where the sandbox writes: it would be its own.
pub(crate) fn check_outside(path: &Path, workspace: &WorkspaceChoice) -> Result<(), CliError> {
    let WorkspaceChoice::Direct(directory) = workspace else { return Ok(()) };
    trusted_file::check_outside(path, directory.as_path()).map_err(|error| untrusted(path, error))
}

fn untrusted(path: &Path, error: UntrustedFileError) -> CliError {
    CliError::read(path, error.into())
}

/// Checks the files that a configuration names: credentials and the programs that print them, authorities, secrets.
pub(crate) fn check_named(document: &[u8]) -> Result<(), CliError> {
    named::check(document).map_err(|error| {
        let path = error.path().to_owned();
        CliError::read(&path, error.into())
    })
}

/// Registers this program, the configurations that would be found, and what they name, so that a change of one takes a yes. It doesn't matter whether
/// this process obeys any of it: another one will.
pub(crate) fn register_usual() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let state = state::open();
        if state.path().is_dir() {
            // What is in it is obeyed, such as the levels of agents.
            let _ = trusted_file::expect(state.path(), Role::Mentioned);
        }
        // The next command of this user is the same program.
        if let Ok(program) = std::env::current_exe() {
            let _ = trusted_file::expect(&program, Role::File);
        }
        for path in candidates() {
            let Ok(Found::File) = trusted_file::expect(&path, Role::File) else { continue };
            let read = input::open(&path).and_then(read_bytes);
            read.iter().for_each(|document| named::register(document));
        }
    });
}

/// Registers the workspace if a sandbox writes it directly. It is refused if belljar obeys a file in it, or would obey one that the
/// sandbox could put there, or keeps its state there.
pub(crate) fn lend(workspace: &WorkspaceChoice) -> Result<(), CliError> {
    if !matches!(workspace, WorkspaceChoice::Empty) {
        register_usual();
    }
    let WorkspaceChoice::Direct(directory) = workspace else { return Ok(()) };
    let directory = directory.as_path();
    let mut places = candidates();
    places.push(state::open().path().join("runs"));
    // Both may have been said relative to the working directory.
    let places: Vec<PathBuf> = places.iter().filter_map(|place| std::path::absolute(place).ok()).collect();
    trusted_file::lend_workspace(directory, &places).map_err(|error| CliError::usage(error.to_string()))
}
