//! Clones of the host's own that nobody can push from any more: their directories are gone, or they never came to be.

use super::base::{Base, BaseError, LaidOut, folders, keep};
use super::push::LOCK;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// No clone takes as long: what is less than that after this was cut off.
const LONGEST: Duration = Duration::from_secs(3600);

// === impl Base ===

impl Base {
    /// Removes those of people that are of no use any more. A directory that somebody is about to clone into has nothing of an
    /// earlier clone in it, so what was laid out there is none, either.
    ///
    /// # Errors
    /// [`BaseError`] when one can't be removed.
    pub fn clear_away(state: &Path, new: Option<&Path>) -> Result<(), BaseError> {
        let new = new.and_then(|directory| LaidOut::of(directory).ok());
        for folder in folders(&state.join(Self::OF_PEOPLE)) {
            if is_leftover(&folder, new.as_ref()) && !is_in_use(&folder) {
                std::fs::remove_dir_all(&folder).map_err(keep(&folder))?;
            }
        }
        Ok(())
    }
}

fn is_leftover(folder: &Path, new: Option<&LaidOut>) -> bool {
    match Base::open(folder).ok().as_ref().and_then(Base::laid_out) {
        Some(laid_out) => new == Some(laid_out) || is_gone(laid_out),
        None => is_old(folder),
    }
}

/// Whether a directory is gone, or another one stands in its place. Where its file system isn't there, nobody knows.
fn is_gone(laid_out: &LaidOut) -> bool {
    let path = laid_out.path();
    match path.symlink_metadata() {
        Ok(_) => LaidOut::of(&path).is_ok_and(|found| found != *laid_out),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let above = path.ancestors().skip(1).find_map(|above| above.metadata().ok());
            above.is_some_and(|above| above.dev() == laid_out.device())
        }
        Err(_) => false,
    }
}

fn is_old(folder: &Path) -> bool {
    let changed = folder.metadata().and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| SystemTime::now().duration_since(changed).is_ok_and(|age| age > LONGEST))
}

/// Whether somebody is pushing from it.
fn is_in_use(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err())
}

#[cfg(test)]
mod tests;
