//! Which node this is, for as long as its state directory is there, and which instance of it.

use super::DaemonError;
use belljar_sandbox::state::State;
use belljar_store::jobs::Owner;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The lock on a state directory, and who has it.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) owner: Owner,
    /// The kernel lets go of it when this process is gone, however it ended.
    _lock: File,
}

/// For nobody but whoever runs the node.
const PRIVATE: u32 = 0o600;

const LOCK: &str = "node.lock";
const NODE_ID: &str = "node-id";

// === impl Identity ===

impl Identity {
    pub(super) fn take(state: &Path) -> Result<Self, DaemonError> {
        let failed = |path: &Path, source| DaemonError::State { path: path.to_owned(), source };
        // Sandboxes get through to what is theirs; nobody else looks around.
        State::at(state).create().map_err(|error| failed(state, error))?;
        let path = state.join(LOCK);
        let lock = OpenOptions::new().create(true).append(true).mode(PRIVATE).open(&path);
        let lock = lock.map_err(|error| failed(&path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DaemonError::Taken { path: state.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(failed(&path, error)),
        }
        let path = state.join(NODE_ID);
        let node = node_id(&path).map_err(|error| failed(&path, error))?;
        let instance = uuid::Uuid::now_v7().to_string();
        Ok(Self { owner: Owner { instance, node }, _lock: lock })
    }
}

/// The id that is in the file, or a new one, which is on the disk then.
fn node_id(path: &PathBuf) -> std::io::Result<String> {
    match std::fs::read_to_string(path) {
        Ok(id) if uuid::Uuid::try_parse(id.trim()).is_ok() => return Ok(id.trim().to_owned()),
        // A crash may have left it empty: then nobody has ever heard of it.
        Ok(id) if id.trim().is_empty() => {}
        Ok(_) => return Err(std::io::Error::other("there is no id in it")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let id = uuid::Uuid::now_v7().to_string();
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(PRIVATE).open(path)?;
    file.write_all(id.as_bytes())?;
    file.sync_all()?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_refused_as_long_as_the_first_lives_and_the_node_is_the_same_afterwards() {
        let state = tempfile::tempdir().unwrap();
        let first = Identity::take(state.path()).unwrap();
        assert!(matches!(Identity::take(state.path()), Err(DaemonError::Taken { .. })));
        let was = first.owner.clone();
        drop(first);
        let second = Identity::take(state.path()).unwrap();
        assert_eq!(second.owner.node, was.node);
        assert_ne!(second.owner.instance, was.instance);
    }

    #[test]
    fn state_that_another_user_could_replace_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let set =
            |mode| std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let state = place.path().join("node");
        set(0o777);
        assert!(matches!(Identity::take(&state), Err(DaemonError::State { .. })));
        assert!(!state.exists());
        set(0o755);
        Identity::take(&state).unwrap();
        assert_eq!(state.metadata().unwrap().permissions().mode() & 0o7777, 0o711);
    }

    #[test]
    fn what_is_no_id_is_not_taken_for_one_and_not_written_over() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join(NODE_ID), "something else").unwrap();
        assert!(matches!(Identity::take(state.path()), Err(DaemonError::State { .. })));
        assert_eq!(std::fs::read_to_string(state.path().join(NODE_ID)).unwrap(), "something else");
    }
}
