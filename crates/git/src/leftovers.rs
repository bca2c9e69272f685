//! Garbage collection of the host's own clones that can't be pushed from any more: their directories are gone, or were never
//! completed.

use super::base::{CheckoutDirectory, HostClone, RECORD, folders};
use super::push::LOCK;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Maximum duration of a clone. An incomplete one that is older was interrupted.
const LONGEST: Duration = Duration::from_secs(3600);
/// Time since the last push during which a missing directory may come back.
const MOVED_AWAY: Duration = Duration::from_secs(14 * 24 * 3600);

// === impl HostClone ===

impl HostClone {
    /// Removes operators' clones that are of no use any more. `new` is a directory that is about to be cloned into: it is
    /// empty, so a clone that was laid out at that path is of no use, even if it was another directory.
    pub fn clear_away(state: &Path, new: Option<&Path>) {
        let new = new.and_then(|directory| directory.canonicalize().ok());
        for folder in folders(&state.join(Self::OF_PEOPLE)) {
            // A clone that can't be removed does no harm.
            if is_leftover(&folder, new.as_deref()) && !is_in_use(&folder) {
                let _ = std::fs::remove_dir_all(&folder);
            }
        }
    }
}

fn is_leftover(folder: &Path, new: Option<&Path>) -> bool {
    match HostClone::open(folder) {
        Ok(base) => match base.laid_out() {
            Some(laid_out) => new == Some(&laid_out.path()) || is_gone(folder, laid_out),
            None => is_old(folder, LONGEST),
        },
        // A record that can't be read may be readable later, or for another version. A clone without a record is incomplete.
        Err(_) => {
            let record = folder.join(RECORD).symlink_metadata();
            let is_missing = record.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
            is_missing && is_old(folder, LONGEST)
        }
    }
}

/// Returns true if the directory is gone, or another one is in its place, and it hasn't been pushed from for [`MOVED_AWAY`].
/// Returns false if that is uncertain: the file system is not mounted or has another device number. A directory that was moved
/// away may be moved back.
fn is_gone(folder: &Path, laid_out: &CheckoutDirectory) -> bool {
    let path = laid_out.path();
    let is_long_unused = is_old(folder, MOVED_AWAY);
    match path.symlink_metadata() {
        Ok(_) => CheckoutDirectory::of(&path)
            .is_ok_and(|found| is_long_unused && found.device() == laid_out.device() && found != *laid_out),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let above = path.ancestors().skip(1).find_map(|above| above.metadata().ok());
            is_long_unused && above.is_some_and(|above| above.dev() == laid_out.device())
        }
        Err(_) => false,
    }
}

fn is_old(folder: &Path, limit: Duration) -> bool {
    let changed = folder.metadata().and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| SystemTime::now().duration_since(changed).is_ok_and(|age| age > limit))
}

/// Returns true if a push from it is under way.
fn is_in_use(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err())
}

#[cfg(test)]
mod tests;
