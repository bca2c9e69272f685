//! Where belljar keeps what it makes, and where belljar itself is.

use crate::error::CliError;
use belljar_sandbox::state::State;
use std::path::PathBuf;

const AGENTS: &str = "agents.db";

/// The state directory: `BELLJAR_STATE_DIR`, else the system's for root, else the user's.
///
/// Root's is not in a home directory: those are closed to everybody else, the sandbox's user included.
pub(crate) fn open() -> State {
    let explicit = std::env::var_os("BELLJAR_STATE_DIR").map(PathBuf::from);
    let users = || {
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        state
            .or_else(|| std::env::home_dir().map(|home| home.join(".local/state")))
            .map(|state| state.join("belljar"))
    };
    let path = match (explicit, rustix::process::geteuid().is_root()) {
        (Some(path), _) => Some(path),
        (None, true) => Some(PathBuf::from("/var/lib/belljar")),
        (None, false) => users(),
    };
    let state = State::at(path.unwrap_or_else(|| std::env::temp_dir().join("belljar")));
    state.begin_use();
    state
}

/// The file that this program was started from, which is the runner too.
pub(crate) fn own_program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|source| CliError::read("/proc/self/exe".as_ref(), source))
}

/// Whether anything is kept of agents on this machine.
pub(crate) fn has_agents_database() -> bool {
    open().path().join(AGENTS).exists()
}

/// The file with what is kept of agents on this machine.
pub(crate) fn agents_database() -> Result<PathBuf, CliError> {
    let state = open();
    state.create().map_err(|source| CliError::read(state.path(), source))?;
    Ok(state.path().join(AGENTS))
}
