//! The head: a small file that says how far the log goes, so that a log that was cut is known for one.
//!
//! It has two marks, each a copy of a checkpoint with its place. The first is of what is there, the second of what is
//! being written: it is set before a batch is, so only where the two differ may a batch be incomplete.

use super::chain::Position;
use super::checkpoint;
use super::error::{AuditError, Fault};
use super::folder::{Folder, HEAD};
use super::key::PublicKey;
use super::record::Record;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// A checkpoint and where its line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) segment: u64,
    pub(super) end: u64,
    /// Without the newline.
    pub(super) line: Vec<u8>,
    pub(super) position: Position,
}

/// What a head says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) done: Mark,
    pub(super) next: Mark,
}

/// The file.
#[derive(Debug)]
pub(super) struct HeadFile {
    path: PathBuf,
    file: File,
    /// What it said when it was last read or written.
    known: Vec<u8>,
}

/// The bytes of one mark, filled up with spaces.
const MARK: usize = 1024;

// === impl Mark ===

impl Mark {
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
    /// What is in the file of a log that has nothing but this.
    pub(super) fn content_of(mark: &Mark) -> Vec<u8> {
        mark.to_bytes().repeat(2)
    }

    pub(super) fn parse(bytes: &[u8], key: &PublicKey) -> Result<Self, Fault> {
        let (done, next) = bytes.split_at_checked(MARK).ok_or(Fault::Altered)?;
        let mark = |bytes| Mark::parse(bytes, key).ok_or(Fault::Altered);
        Ok(Self { done: mark(done)?, next: mark(next)? })
    }

    /// Whether what follows this checkpoint, and no other, may be what is left of a batch.
    pub(super) fn excuses_rest_after(&self, last: Position) -> bool {
        // A head that is older than the log was not on the disk when the power went.
        self.next != self.done || last.sequence > self.next.position.sequence
    }
}

// === impl HeadFile ===

impl HeadFile {
    pub(super) fn open(folder: &Folder) -> Result<Self, AuditError> {
        let path = folder.path().join(HEAD);
        let file = folder.open_to_write(HEAD)?;
        Ok(Self { path, file, known: Vec::new() })
    }

    /// Whether somebody has changed it since it was last read or written here.
    pub(super) fn has_changed(&self) -> Result<bool, AuditError> {
        Ok(self.bytes()? != self.known)
    }

    pub(super) fn read(&mut self, key: &PublicKey) -> Result<Head, AuditError> {
        self.known = self.bytes()?;
        Head::parse(&self.known, key).map_err(|fault| AuditError::damaged(HEAD, None, fault))
    }

    fn bytes(&self) -> Result<Vec<u8>, AuditError> {
        // A byte more than it has shows that there is one.
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

    /// Says what is about to be written.
    pub(super) fn announce(&mut self, next: &Mark) -> Result<(), AuditError> {
        self.put(MARK, &next.to_bytes())
    }

    /// Says that what was announced is there.
    pub(super) fn confirm(&mut self) -> Result<(), AuditError> {
        let next = self.known[MARK..].to_vec();
        self.put(0, &next)
    }

    /// Takes back what was announced.
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
