//! The identity of the node, which lasts as long as its state directory, and of this instance.

use super::DaemonError;
use belljar_sandbox::state::StateDirectory;
use belljar_store::jobs::Owner;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The lock on a state directory. The kernel releases it when this process ends, however it ends.
#[derive(Debug)]
pub(super) struct StateLock {
    state: PathBuf,
    file: File,
}

/// The lock on a state directory, and its owner.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) owner: Owner,
    /// Former instances that are known to be gone: they held this lock on this host.
    pub(super) gone: Vec<String>,
    /// True if no node has used the state directory before.
    pub(super) is_new: bool,
    _lock: StateLock,
}

/// File mode: only the node's own user may read and write.
const PRIVATE: u32 = 0o600;

const LOCK: &str = "node.lock";
const NODE_ID: &str = "node-id";
const INSTANCES: &str = "instances";

/// Maximum number of former instances that are remembered. More crashes in a row than that cost a wait of one lease.
const REMEMBERED: usize = 32;

/// The instances that held the lock, and the lock's identity. A copied state directory has another lock, and a rebooted host
/// another boot id: then the list proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LockRecord {
    boot_id: String,
    device: u64,
    inode: u64,
    instances: Vec<String>,
}

// === impl StateLock ===

impl StateLock {
    /// Takes the lock. Writes nothing else: leftovers of former instances may fill the disk.
    pub(super) fn take(state: &Path) -> Result<Self, DaemonError> {
        // Users of sandboxes can search the directory for their own parts, but not list it.
        StateDirectory::at(state).create().map_err(|error| failed(state, error))?;
        let path = state.join(LOCK);
        let file = OpenOptions::new().create(true).append(true).mode(PRIVATE).open(&path);
        let file = file.map_err(|error| failed(&path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { state: state.to_owned(), file }),
            Err(TryLockError::WouldBlock) => Err(DaemonError::Taken { path: state.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(&path, error)),
        }
    }
}

// === impl Identity ===

impl Identity {
    /// Returns the identity of a new instance of the node that owns the state directory.
    pub(super) fn of(lock: StateLock) -> Result<Self, DaemonError> {
        let path = lock.state.join(NODE_ID);
        let (node, is_new) = node_id(&path).map_err(|error| failed(&path, error))?;
        let instance = uuid::Uuid::now_v7().to_string();
        let path = lock.state.join(INSTANCES);
        let gone = LockRecord::succeed(&path, &lock.file, &instance).map_err(|error| failed(&path, error))?;
        Ok(Self { owner: Owner { instance, node }, gone, is_new, _lock: lock })
    }
}

fn failed(path: &Path, source: std::io::Error) -> DaemonError {
    DaemonError::State { path: path.to_owned(), source }
}

// === impl LockRecord ===

impl LockRecord {
    /// Adds this instance to the list, and returns those that held the lock before.
    fn succeed(path: &Path, lock: &File, instance: &str) -> std::io::Result<Vec<String>> {
        let lock = lock.metadata()?;
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let mut held = Self { boot_id, device: lock.dev(), inode: lock.ino(), instances: Vec::new() };
        let known = std::fs::read(path).ok().and_then(|text| serde_json::from_slice::<Self>(&text).ok());
        let gone =
            known.filter(|known| known.is_of_lock(&held)).map_or_else(Vec::new, |known| known.instances);
        let first = (gone.len() + 1).saturating_sub(REMEMBERED);
        held.instances = gone.iter().skip(first).cloned().chain([instance.to_owned()]).collect();
        let partial = path.with_extension("partial");
        let mut options = OpenOptions::new();
        let mut file = options.create(true).write(true).truncate(true).mode(PRIVATE).open(&partial)?;
        file.write_all(&serde_json::to_vec(&held)?)?;
        file.sync_all()?;
        std::fs::rename(partial, path)?;
        Ok(gone)
    }

    fn is_of_lock(&self, other: &Self) -> bool {
        let of = |held: &Self| (held.boot_id.clone(), held.device, held.inode);
        of(self) == of(other)
    }
}

/// Returns the id in the file, or a new one that is then on the disk; and true if it is new.
fn node_id(path: &Path) -> std::io::Result<(String, bool)> {
    match std::fs::read_to_string(path) {
        Ok(id) if uuid::Uuid::try_parse(id.trim()).is_ok() => return Ok((id.trim().to_owned(), false)),
        // A crash may have left the file empty: then the id was never used.
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
    Ok((id, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(state: &Path) -> Result<Identity, DaemonError> {
        StateLock::take(state).and_then(Identity::of)
    }

    #[test]
    fn state_directory_admits_one_daemon_and_keeps_its_node_id() {
        let state = tempfile::tempdir().unwrap();
        let first = take(state.path()).unwrap();
        assert!(matches!(take(state.path()), Err(DaemonError::Taken { .. })));
        let (was, first_gone) = (first.owner.clone(), first.gone.clone());
        drop(first);
        let second = take(state.path()).unwrap();
        assert_eq!(second.owner.node, was.node);
        assert_ne!(second.owner.instance, was.instance);
        assert_eq!((first_gone, second.gone), (Vec::new(), vec![was.instance]));
    }

    #[test]
    fn instance_of_a_copied_state_directory_is_not_known_to_be_gone() {
        let place = tempfile::tempdir().unwrap();
        let [state, copy] = ["state", "copy"].map(|name| place.path().join(name));
        let first = take(&state).unwrap();
        std::fs::create_dir(&copy).unwrap();
        for name in [LOCK, NODE_ID, INSTANCES] {
            std::fs::copy(state.join(name), copy.join(name)).unwrap();
        }
        let copied = take(&copy).unwrap();
        assert_eq!((&copied.owner.node, copied.gone), (&first.owner.node, Vec::new()));
        // Control: the list of the state directory itself is believed.
        let instance = first.owner.instance.clone();
        drop(first);
        assert_eq!(take(&state).unwrap().gone, [instance]);
    }

    #[test]
    fn state_directory_replaceable_by_another_user_is_rejected() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        let set =
            |mode| std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let state = place.path().join("node");
        set(0o777);
        assert!(matches!(take(&state), Err(DaemonError::State { .. })));
        assert!(!state.exists());
        set(0o755);
        take(&state).unwrap();
        assert_eq!(state.metadata().unwrap().permissions().mode() & 0o7777, 0o711);
    }

    #[test]
    fn invalid_node_id_file_is_rejected_and_not_overwritten() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join(NODE_ID), "something else").unwrap();
        assert!(matches!(take(state.path()), Err(DaemonError::State { .. })));
        assert_eq!(std::fs::read_to_string(state.path().join(NODE_ID)).unwrap(), "something else");
    }
}
