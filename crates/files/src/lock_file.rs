//! Lock files. `flock` takes no right but that to open the file, so no user but its owner may open one: another user could hold the lock.

use rustix::fs::{Mode, fchmod};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

const OWN: u32 = 0o600;
const OF_OTHERS: u32 = 0o077;

/// Opens a lock file, made if it is missing. It isn't locked yet.
///
/// # Errors
/// The system's.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).mode(OWN).open(path)?;
    close_to_others(&file, &file.metadata()?)?;
    Ok(file)
}

/// Former versions made them readable.
fn close_to_others(file: &File, metadata: &Metadata) -> io::Result<()> {
    match metadata.mode() & OF_OTHERS {
        0 => Ok(()),
        _ => Ok(fchmod(file, Mode::RUSR | Mode::WUSR)?),
    }
}
