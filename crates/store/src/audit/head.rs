//! The head: a small file with the log's length, so that a truncated log is detected.
//!
//! It has two marks, each a copy of a checkpoint with its position. The first is the last complete batch, the second
//! the batch that is being written. The second is set before the batch is written, so a batch can be incomplete only
//! where the two differ.

use super::chain::Position;
use super::checkpoint;
use super::error::{AuditError, Fault};
use super::folder::{HEAD, LogFolder};
use super::key::PublicKey;
use super::record::Record;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A checkpoint and where its line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CheckpointMark {
    pub(super) segment: u64,
    pub(super) end: u64,
    /// Line of the checkpoint, without the newline.
    pub(super) line: Vec<u8>,
    pub(super) position: Position,
}

/// Contents of the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) done: CheckpointMark,
    pub(super) next: CheckpointMark,
}

/// The file.
#[derive(Debug)]
pub(super) struct HeadFile {
    path: PathBuf,
    file: File,
    /// Content when it was last read or written.
    known: Vec<u8>,
}

/// The bytes of one mark, filled up with spaces.
const MARK: usize = 1024;

// === impl CheckpointMark ===

impl CheckpointMark {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes =
            format!("{{\"segment\":{},\"end\":{},\"checkpoint\":", self.segment, self.end).into_bytes();
        bytes.extend_from_slice(&self.line);
        bytes.push(b'}');
        // A checkpoint is much shorter than this.
        bytes.resize(MARK - 1, b' ');
        bytes.push(b'\n');
        bytes
    }

    /// Reads a mark that is exactly as it would be written, of a checkpoint that this key has signed.
    fn parse(bytes: &[u8], key: &PublicKey) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let rest = text.strip_prefix("{\"segment\":")?;
        let (segment, rest) = rest.split_once(",\"end\":")?;
        let (end, rest) = rest.split_once(",\"checkpoint\":")?;
        let line = rest.trim_end_matches(['\n', ' ']).strip_suffix('}')?.as_bytes();
        let record = Record::parse(line).ok().filter(|record| checkpoint::is_genuine(record, key))?;
        let mark = Self {
            segment: segment.parse().ok()?,
            end: end.parse().ok()?,
            line: line.to_vec(),
            position: Position { sequence: record.sequence, hash: record.hash },
        };
        (mark.to_bytes() == bytes).then_some(mark)
    }
}

// === impl Head ===

impl Head {
    /// Returns the head file's content if both marks are this one.
    pub(super) fn content_of(mark: &CheckpointMark) -> Vec<u8> {
        mark.to_bytes().repeat(2)
    }

    pub(super) fn parse(bytes: &[u8], key: &PublicKey) -> Result<Self, Fault> {
        let (done, next) = bytes.split_at_checked(MARK).ok_or(Fault::Altered)?;
        let mark = |bytes| CheckpointMark::parse(bytes, key).ok_or(Fault::Altered);
        Ok(Self { done: mark(done)?, next: mark(next)? })
    }

    /// Returns true if the lines after this checkpoint may be the rest of an incomplete batch.
    pub(super) fn excuses_rest_after(&self, last: Position) -> bool {
        // After a power failure, the head on disk may be older than the log.
        self.next != self.done || last.sequence > self.next.position.sequence
    }
}

// === impl HeadFile ===

impl HeadFile {
    pub(super) fn open(folder: &LogFolder) -> Result<Self, AuditError> {
        let path = folder.path().join(HEAD);
        let file = folder.open_to_write(HEAD)?;
        Ok(Self { path, file, known: Vec::new() })
    }

    /// Returns true if another process has changed it since it was last read or written here.
    pub(super) fn has_changed(&self) -> Result<bool, AuditError> {
        Ok(self.bytes()? != self.known)
    }

    pub(super) fn read(&mut self, key: &PublicKey) -> Result<Head, AuditError> {
        self.known = self.bytes()?;
        Head::parse(&self.known, key).map_err(|fault| AuditError::damaged(HEAD, None, fault))
    }

    fn bytes(&self) -> Result<Vec<u8>, AuditError> {
        // One byte more is read, to detect a file that is too long.
        let mut bytes = vec![0; 2 * MARK + 1];
        let mut read = 0;
        while read < bytes.len() {
            match self.file.read_at(&mut bytes[read..], read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(AuditError::io("read", &self.path, error)),
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Stores the mark of the batch that is about to be written.
    pub(super) fn announce(&mut self, next: &CheckpointMark) -> Result<(), AuditError> {
        self.put(MARK, &next.to_bytes())
    }

    /// Marks the announced batch as complete.
    pub(super) fn confirm(&mut self) -> Result<(), AuditError> {
        let next = self.known[MARK..].to_vec();
        self.put(0, &next)
    }

    /// Withdraws the announced batch.
    pub(super) fn withdraw(&mut self) -> Result<(), AuditError> {
        let done = self.known[..MARK].to_vec();
        self.put(MARK, &done)
    }

    fn put(&mut self, at: usize, mark: &[u8]) -> Result<(), AuditError> {
        self.file
            .write_all_at(mark, at as u64)
            .map_err(|error| AuditError::io("write", &self.path, error))?;
        self.known[at..at + MARK].copy_from_slice(mark);
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), AuditError> {
        self.file.sync_data().map_err(|error| AuditError::io("write", &self.path, error))
    }
}
