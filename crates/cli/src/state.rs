//! Paths of belljar's state directory and of its own program.

use crate::error::CliError;
use belljar_sandbox::state::StateDirectory;
use std::path::PathBuf;

const AGENTS: &str = "agents.db";

/// The state directory of root, and of the system.
///
/// Root's is not in a home directory: those are closed to all other users, the sandbox's included.
const OF_SYSTEM: &str = "/var/lib/belljar";

/// The state directory: `BELLJAR_STATE_DIR`, else the system's for root, else the user's. [`check`] refuses
/// commands that have none; this function then returns the system's, in which another user can create nothing.
pub(crate) fn open() -> StateDirectory {
    let state = StateDirectory::at(location().unwrap_or_else(|| PathBuf::from(OF_SYSTEM)));
    state.begin_use();
    state
}

/// Checks that a state directory is configured, and that no other local user can replace its content. Creates nothing.
pub(crate) fn check() -> Result<(), CliError> {
    let path = location().ok_or_else(|| CliError::usage(NO_LOCATION.to_owned()))?;
    StateDirectory::at(&path).check().map_err(|source| CliError::StateDirectory { path, source })
}

const NO_LOCATION: &str =
    "no state directory: HOME is not set; set BELLJAR_STATE_DIR to a directory of your own, or set HOME";

fn location() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(explicit) = std::env::var_os("BELLJAR_STATE_DIR").filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(explicit));
    }
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from(OF_SYSTEM));
    }
    // Never `home_dir()`: without HOME it asks the system's user database, for which glibc loads modules into this static program.
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    state.map(|state| state.join("belljar"))
}

/// The file that this program was started from, which is the runner too.
pub(crate) fn own_program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|source| CliError::read("/proc/self/exe".as_ref(), source))
}

/// Returns true if this machine has an agents database.
pub(crate) fn has_agents_database() -> bool {
    open().path().join(AGENTS).exists()
}

/// Returns the path of this machine's agents database.
pub(crate) fn agents_database() -> Result<PathBuf, CliError> {
    let state = open();
    state.create().map_err(|source| CliError::read(state.path(), source))?;
    Ok(state.path().join(AGENTS))
}
