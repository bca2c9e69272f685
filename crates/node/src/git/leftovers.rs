//! Clones of the host's own that nobody can push from any more: their directories are gone, or they never came to be.

use super::base::{Base, LaidOut, RECORD, folders};
use super::push::LOCK;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// No clone takes as long: what is less than that after this was cut off.
const LONGEST: Duration = Duration::from_secs(3600);
/// A directory that isn't where it was may come back for so long after the last push from it.
const MOVED_AWAY: Duration = Duration::from_secs(14 * 24 * 3600);

// === impl Base ===

impl Base {
    /// Removes those of people that are of no use any more. A directory that somebody is about to clone into has nothing of an
    /// earlier clone in it, so what was laid out there is none, either,
    /// also where it was another directory.
    pub fn clear_away(state: &Path, new: Option<&Path>) {
        let new = new.and_then(|directory| directory.canonicalize().ok());
        for folder in folders(&state.join(Self::OF_PEOPLE)) {
            // One that can't be removed is in nobody's way.
            if is_leftover(&folder, new.as_deref()) && !is_in_use(&folder) {
                let _ = std::fs::remove_dir_all(&folder);
            }
        }
    }
}

fn is_leftover(folder: &Path, new: Option<&Path>) -> bool {
    match Base::open(folder) {
        Ok(base) => match base.laid_out() {
            Some(laid_out) => new == Some(&laid_out.path()) || is_gone(folder, laid_out),
            None => is_old(folder, LONGEST),
        },
        // What can't be read now may be read another time, or by another version; what was never recorded is half a clone.
        Err(_) => {
            let record = folder.join(RECORD).symlink_metadata();
            let is_missing = record.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
            is_missing && is_old(folder, LONGEST)
        }
    }
}

/// Whether a directory is gone, or another one stands in its place. Where its file system isn't there, or has another number
/// than it had, nobody knows; and who has moved a directory away may move it back.
fn is_gone(folder: &Path, laid_out: &LaidOut) -> bool {
    let path = laid_out.path();
    let is_long_unused = is_old(folder, MOVED_AWAY);
    match path.symlink_metadata() {
        Ok(_) => LaidOut::of(&path)
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

/// Whether somebody is pushing from it.
fn is_in_use(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err())
}

#[cfg(test)]
mod tests;
