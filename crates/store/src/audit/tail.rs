//! The end of a log, where it grows. Several processes may each have one of these; the holder of the lock may write.

use super::AuditError;
use super::Receipt;
use super::anchor::Signer;
use super::chain::Position;
use super::checkpoint;
use super::event::Event;
use super::folder::LogFolder;
use super::head::{CheckpointMark, Head, HeadFile};
use super::key::{PublicKey, SecretKey};
use super::record;
use super::segment;
use super::torn;
use super::walk::{CheckpointEnd, walk};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The end of a log.
pub(super) struct LogTail {
    folder: LogFolder,
    lock: Arc<File>,
    key: Arc<SecretKey>,
    public_key: PublicKey,
    head: HeadFile,
    end: AppendPosition,
    segment_bytes: u64,
    /// The batch that is being written.
    text: Vec<u8>,
    /// True if a part of the batch may be on disk, but not all.
    is_storing: bool,
}

/// Position of the next batch.
struct AppendPosition {
    /// The last checkpoint. All before it is there for good.
    place: CheckpointEnd,
    /// The segment with it, or an empty one after that.
    file: File,
    segment: u64,
    begin: u64,
    /// True if a crash has left a rest there, which the next batch overwrites.
    is_torn: bool,
}

// === impl LogTail ===

impl LogTail {
    /// Opens a log, which is created if it doesn't exist, and clears up after a crash.
    pub(super) fn open(path: &Path, segment_bytes: u64) -> Result<Self, AuditError> {
        let folder = LogFolder::open_or_create(path)?;
        let key = Arc::new(folder.secret_key()?);
        let public_key = key.public();
        let lock = folder.lock_file()?;
        let mut head = HeadFile::open(&folder)?;
        let locked = folder.lock(&lock)?;
        let found = find_end(&folder, public_key, &head.read(&public_key)?)?;
        let mut tail = Self {
            folder,
            lock,
            key,
            public_key,
            head,
            end: found.end,
            segment_bytes,
            text: Vec::new(),
            is_storing: false,
        };
        tail.clear_up(found.rest_begins_at)?;
        drop(locked);
        Ok(tail)
    }

    pub(super) fn public_key(&self) -> PublicKey {
        self.public_key
    }

    /// Returns the end of the log.
    pub(super) fn position(&self) -> Position {
        self.end.place.position
    }

    /// Returns a signer of checkpoints for anchors.
    pub(super) fn signer(&self) -> Result<Signer, AuditError> {
        let name = segment::name(1);
        let mut lines = segment::Lines::of(self.folder.open_to_read(&name)?, u64::MAX);
        let line = lines
            .next_line()
            .map_err(|error| AuditError::io("read", &self.folder.path().join(&name), error))?;
        let first = line.and_then(|line| Some(record::Record::parse(line.bytes).ok()?.hash));
        let log = first.ok_or_else(|| AuditError::damaged(name, Some(1), super::error::Fault::Malformed))?;
        Ok(Signer { log, key: Arc::clone(&self.key) })
    }

    /// Writes events, all or none of them, and returns a receipt for each once they are on disk.
    pub(super) fn write<'e>(
        &mut self,
        events: impl Iterator<Item = &'e Event>,
    ) -> Result<Vec<Receipt>, AuditError> {
        let locked = self.folder.lock(&self.lock)?;
        self.catch_up()?;
        let receipts = self.write_batch(events);
        if self.is_storing {
            self.take_back();
        }
        drop(locked);
        receipts
    }

    /// Syncs the head, too. Without this the log is whole, but a power failure may lose its recorded length.
    pub(super) fn sync_head(&self) -> Result<(), AuditError> {
        self.head.sync()
    }

    /// Moves to the present end of the log: other processes may have written since.
    fn catch_up(&mut self) -> Result<(), AuditError> {
        let path = || self.folder.path().join(segment::name(self.end.segment));
        let metadata = self.end.file.metadata().map_err(|error| AuditError::io("read", &path(), error))?;
        if !self.head.has_changed()? && metadata.len() == self.end.begin {
            return Ok(());
        }
        let found = find_end(&self.folder, self.public_key, &self.head.read(&self.public_key)?)?;
        self.end = found.end;
        self.clear_up(found.rest_begins_at)
    }

    /// Moves the rest of a crashed batch aside and records that. If this process is killed meanwhile, the next one goes
    /// on.
    fn clear_up(&mut self, rest_begins_at: Option<u64>) -> Result<(), AuditError> {
        let head = self.head.read(&self.public_key)?;
        let is_clear = head.next == head.done && head.done.position == self.end.place.position;
        if is_clear && rest_begins_at.is_none() {
            return Ok(());
        }
        let sequence = self.end.place.position.sequence + 1;
        torn::clear(&self.folder)?;
        if let Some(begin) = rest_begins_at {
            torn::move_aside(&self.folder, (&mut self.end.file, begin), sequence)?;
        }
        let untold = torn::untold(&self.folder, sequence)?;
        if !untold.is_empty() {
            return self.write_batch(untold.iter()).map(drop);
        }
        self.head.announce(&self.last_mark()?)?;
        self.head.confirm()
    }

    fn write_batch<'e>(
        &mut self,
        events: impl Iterator<Item = &'e Event>,
    ) -> Result<Vec<Receipt>, AuditError> {
        let mut position = self.end.place.position;
        let mut receipts = Vec::with_capacity(events.size_hint().0);
        self.text.clear();
        for event in events {
            let sequence = position.sequence + 1;
            position.hash = record::push(&mut self.text, sequence, event.body(), &position.hash);
            position.sequence = sequence;
            receipts.push(Receipt { sequence, hash: position.hash });
        }
        let checkpoint_at = self.text.len();
        position = checkpoint::push(&mut self.text, &self.key, position);
        let (is_new, segment, begin) = self.next_place();
        let line = self.text[checkpoint_at..self.text.len() - 1].to_vec();
        let next = CheckpointMark { segment, end: begin + self.text.len() as u64, line, position };
        self.head.announce(&next)?;
        belljar_failpoint::reached("audit.announced");
        self.is_storing = true;
        self.store(is_new, segment, begin)?;
        self.is_storing = false;
        belljar_failpoint::reached("audit.stored");
        self.head.confirm()?;
        belljar_failpoint::reached("audit.confirmed");
        let place = CheckpointEnd { segment, end: next.end, position };
        (self.end.place, self.end.segment, self.end.begin) = (place, segment, next.end);
        self.end.is_torn = false;
        Ok(receipts)
    }

    /// Returns the position of the next batch: whether it begins a new segment, the segment's number, and the offset in
    /// it.
    fn next_place(&self) -> (bool, u64, u64) {
        match self.end.begin >= self.segment_bytes && !self.end.is_torn {
            true => (true, self.end.segment + 1, 0),
            false => (false, self.end.segment, self.end.begin),
        }
    }

    /// Writes the batch to disk.
    fn store(&mut self, is_new: bool, segment: u64, begin: u64) -> Result<(), AuditError> {
        let name = segment::name(segment);
        let failed = |error| AuditError::io("write", &self.folder.path().join(&name), error);
        if is_new {
            self.end.file = self.folder.create(&name)?;
            self.folder.sync()?;
            // Syncing the head now and then is enough.
            self.head.sync()?;
        }
        let file = &self.end.file;
        // The rest of a crashed batch may be longer than the new batch.
        if file.metadata().map_err(failed)?.len() > begin {
            file.set_len(begin).map_err(failed)?;
        }
        file.write_all_at(&self.text, begin).map_err(failed)?;
        belljar_failpoint::reached("audit.written");
        file.sync_data().map_err(failed)
    }

    /// Removes what is on disk of a batch that failed. If it can't be removed, the next process that opens the log
    /// finds and records it.
    fn take_back(&mut self) {
        let (is_new, segment, begin) = self.next_place();
        let is_gone = match is_new {
            true => std::fs::remove_file(self.folder.path().join(segment::name(segment))),
            false => self.end.file.set_len(begin).and_then(|()| self.end.file.sync_data()),
        };
        if is_gone.is_ok() {
            // An announcement that can't be withdrawn does no harm.
            let _ = self.head.withdraw();
        }
    }

    /// The mark for the last checkpoint.
    fn last_mark(&self) -> Result<CheckpointMark, AuditError> {
        let CheckpointEnd { segment, end, position } = self.end.place;
        let line = line_before(&self.folder, segment, end)?;
        Ok(CheckpointMark { segment, end, line, position })
    }
}

/// The end that was found, and the offset in its segment at which the rest of a crashed batch begins.
struct FoundTail {
    end: AppendPosition,
    rest_begins_at: Option<u64>,
}

/// Finds the end from the head, and from what was written since.
fn find_end(folder: &LogFolder, key: PublicKey, head: &Head) -> Result<FoundTail, AuditError> {
    let CheckpointMark { segment, end, ref line, position } = head.done;
    let last = folder.last_segment()?;
    let cut = |segment| {
        let fault = super::error::Fault::Cut { signed: position.sequence };
        AuditError::damaged(segment::name(segment), None, fault)
    };
    if last < segment || line_before(folder, segment, end)? != *line {
        return Err(cut(segment.min(last)));
    }
    let mut sizes = Vec::new();
    for number in segment..=last {
        sizes.push(size_of(folder, number)?);
    }
    let from = CheckpointEnd { segment, end, position };
    let (place, rest) = walk(folder, key, from, &sizes, &mut |_, _| Ok(()))?.judged(head)?;
    let mut segment = last;
    if place.segment < last && rest.is_none() {
        // The crash came while this segment was begun. It is created again when it is needed.
        let path = folder.path().join(segment::name(last));
        std::fs::remove_file(&path).map_err(|error| AuditError::io("remove", &path, error))?;
        segment = place.segment;
    }
    let file = folder.open_to_write(&segment::name(segment))?;
    let begin = if place.segment == segment { place.end } else { 0 };
    let end = AppendPosition { place, file, segment, begin, is_torn: rest.is_some() };
    Ok(FoundTail { end, rest_begins_at: rest.map(|rest| rest.begin) })
}

fn size_of(folder: &LogFolder, segment: u64) -> Result<u64, AuditError> {
    let name = segment::name(segment);
    let metadata = folder.open_to_read(&name)?.metadata();
    metadata
        .map(|metadata| metadata.len())
        .map_err(|error| AuditError::io("read", &folder.path().join(&name), error))
}

/// Returns the line that ends there, without its newline; empty when no line ends there.
fn line_before(folder: &LogFolder, segment: u64, end: u64) -> Result<Vec<u8>, AuditError> {
    // Longer than a checkpoint.
    const WINDOW: u64 = 1024;
    let name = segment::name(segment);
    let file = folder.open_to_read(&name)?;
    let mut bytes = vec![0; usize::try_from(end.min(WINDOW)).unwrap_or_default()];
    let begin = end - bytes.len() as u64;
    match file.read_exact_at(&mut bytes, begin) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(Vec::new()),
        Err(error) => return Err(AuditError::io("read", &folder.path().join(&name), error)),
    }
    let Some(text) = bytes.strip_suffix(b"\n") else { return Ok(Vec::new()) };
    Ok(text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default().to_vec())
}
