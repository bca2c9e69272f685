//! A file as an anchor: notes one after the other, each after an empty line, appended in one write and synced.

use super::AnchorError;
use belljar_trusted::{input, trusted_file};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// Appends a note. The file is opened anew each time, so that it may be rotated or mounted again meanwhile.
pub(super) fn append(path: &Path, note: &str) -> Result<(), AnchorError> {
    // A FIFO without a reader or a link to elsewhere is refused, not waited for.
    let mut file =
        trusted_file::open_to_append(path).map_err(|error| AnchorError::io("open", path, error.into()))?;
    let metadata = file.metadata().map_err(|error| AnchorError::io("read", path, error))?;
    if !metadata.is_file() {
        return Err(AnchorError::NotAFile { path: path.to_owned() });
    }
    // After what a crash has cut off, the first line would not be one.
    let written = file.write_all(format!("\n{note}").as_bytes()).and_then(|()| file.sync_data());
    written.map_err(|error| AnchorError::io("append to", path, error))
}

/// Reads a file of notes.
///
/// # Errors
/// [`AnchorError`] if it can't be read, or is no regular file: a pipe would be waited for, and a device has no end.
pub fn notes_in_file(path: &Path) -> Result<Vec<u8>, AnchorError> {
    let mut file = input::open(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => AnchorError::NotAFile { path: path.to_owned() },
        _ => AnchorError::io("open", path, error),
    })?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| AnchorError::io("read", path, error))?;
    Ok(bytes)
}

/// Checks that the file is not in a place that an attacker of the log can change anyway.
pub(super) fn must_be_elsewhere(path: &Path, state: &Path) -> Result<(), AnchorError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A folder that can't be checked yet is reported when a delivery fails.
    let (Ok(folder), Ok(state)) = (folder.canonicalize(), state.canonicalize()) else { return Ok(()) };
    match folder.starts_with(state) {
        true => Err(AnchorError::BesideTheLog { path: path.to_owned() }),
        false => Ok(()),
    }
}
