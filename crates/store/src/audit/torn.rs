//! Torn tails: what a crash has left of a batch. Nothing of it was acknowledged; it is kept nevertheless, and a record
//! reports it.
//!
//! Its file is named after the record that reports it, so a tail without a record is known by its name.

use super::error::{AuditError, Fault};
use super::event::Event;
use super::folder::{LogFolder, sync_directory};
use super::hash::Hash;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

pub(super) const TORN: &str = "torn";
pub(super) const KIND: &str = "torn_tail";

const PARTIAL: &str = ".partial";

/// The event of its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TornTail {
    /// The name in the folder.
    pub(super) file: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// Copies the end of a segment into a file, which the record of that number will report.
pub(super) fn move_aside(
    folder: &LogFolder,
    (source, begin): (&mut File, u64),
    sequence: u64,
) -> Result<(), AuditError> {
    let path = folder.path().join(TORN);
    let failed = |error| AuditError::io("move aside what a crash has left to", &path, error);
    source.seek(SeekFrom::Start(begin)).map_err(failed)?;
    let content = digest(&mut *source).map_err(failed)?;
    let known = tails(folder, sequence)?;
    // An earlier process was killed before it wrote the record.
    if known.iter().any(|tail| (tail.bytes, &tail.sha256) == (content.0, &content.1)) {
        return Ok(());
    }
    let name = format!("{sequence}.{}", known.len() + 1);
    let partial = format!("{TORN}/{name}{PARTIAL}");
    let _ = std::fs::remove_file(folder.path().join(&partial));
    let mut copy = folder.create(&partial)?;
    source.seek(SeekFrom::Start(begin)).map_err(failed)?;
    io::copy(source, &mut copy).and_then(|_| copy.sync_all()).map_err(failed)?;
    std::fs::rename(folder.path().join(&partial), path.join(&name)).map_err(failed)?;
    sync_directory(&path)
}

/// Returns the events for torn tails that the record of that number, and those after it, will report.
pub(super) fn untold(folder: &LogFolder, sequence: u64) -> Result<Vec<Event>, AuditError> {
    let tails = tails(folder, sequence)?;
    // It is an object, and short.
    Ok(tails.iter().filter_map(|tail| Event::of_log(KIND, None, tail).ok()).collect())
}

/// Returns the torn tails that belong to the record with that number.
fn tails(folder: &LogFolder, sequence: u64) -> Result<Vec<TornTail>, AuditError> {
    let prefix = format!("{sequence}.");
    let names = folder.names(TORN)?;
    let ours = names.iter().filter(|name| name.starts_with(&prefix) && !is_partial(name));
    ours.map(|name| tail(folder, name)).collect()
}

fn tail(folder: &LogFolder, name: &str) -> Result<TornTail, AuditError> {
    let file = folder.open_to_read(&format!("{TORN}/{name}"))?;
    let (bytes, sha256) =
        digest(file).map_err(|error| AuditError::io("read", &folder.path().join(TORN).join(name), error))?;
    Ok(TornTail { file: name.to_owned(), bytes, sha256 })
}

/// Returns true if the file is an unfinished copy.
pub(super) fn is_partial(name: &str) -> bool {
    name.ends_with(PARTIAL)
}

/// Removes copies that were not finished. Their originals are still there.
pub(super) fn clear(folder: &LogFolder) -> Result<(), AuditError> {
    for name in folder.names(TORN)?.iter().filter(|name| is_partial(name)) {
        let path = folder.path().join(TORN).join(name);
        std::fs::remove_file(&path).map_err(|error| AuditError::io("remove", &path, error))?;
    }
    Ok(())
}

/// Checks that the files are those that the records report. `open` is the record that may not exist yet.
pub(super) fn check(folder: &LogFolder, told: &[TornTail], open: Option<u64>) -> Result<(), AuditError> {
    let file = |name: &str| format!("{TORN}/{name}");
    let names = folder.names(TORN)?;
    for expected in told {
        if names.binary_search(&expected.file).is_err() {
            return Err(AuditError::damaged(file(&expected.file), None, Fault::Missing));
        }
        if tail(folder, &expected.file)? != *expected {
            return Err(AuditError::damaged(file(&expected.file), None, Fault::Altered));
        }
    }
    let prefix = open.map(|sequence| format!("{sequence}."));
    let is_open = |name: &str| prefix.as_ref().is_some_and(|prefix| name.starts_with(prefix));
    let is_told = |name: &String| told.iter().any(|tail| tail.file == *name);
    match names.iter().find(|name| !is_told(name) && !is_open(name)) {
        Some(foreign) => Err(AuditError::damaged(file(foreign), None, Fault::Foreign)),
        None => Ok(()),
    }
}

/// The length and the hash of all there is to read.
fn digest(mut source: impl Read) -> io::Result<(u64, String)> {
    struct DigestWriter(Sha256);

    impl Write for DigestWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut hashing = DigestWriter(Sha256::new());
    let bytes = io::copy(&mut source, &mut hashing)?;
    Ok((bytes, Hash::from_array(hashing.0.finalize().into()).to_string()))
}
