//! The audit log: append-only, hash-chained, signed, and acknowledged only when it is on disk.
//!
//! ```text
//! submit ─► queue ─► one thread: lock ─► tail as others left it ─► announce ─► write, sync ─► head ─► unlock ─► done
//!  (never waits)     takes all there is                             what comes    the records, then    what is
//!                                                                                a signed checkpoint   there
//! ```
//!
//! Every batch ends in a checkpoint: a record with a signature over everything before it. Records that no checkpoint
//! follows were never acknowledged. So the rest of a crashed batch can be distinguished from records that an attacker
//! added. The format is in `docs/reference/audit.md`; [`verify`] and [`export`] read it.

pub mod anchor;
mod chain;
mod checkpoint;
mod error;
mod event;
pub mod export;
mod folder;
mod hash;
mod head;
mod key;
mod queue;
pub mod reading;
mod record;
mod segment;
mod snapshot;
mod tail;
mod torn;
pub mod verify;
mod walk;

pub use error::AuditError;
pub use event::{Event, EventError, LARGEST_EVENT_BYTES};
pub use hash::{Hash, ParseHashError};
pub use key::{ParseKeyError, PublicKey};
pub use record::Record;

use anchor::{AnchorSettings, AnchorStatus, Anchors};
use queue::AuditQueue;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tail::LogTail;

/// An audit log that is open for appending. Several processes, and several values of this type, may have the same log
/// open.
///
/// Dropping it writes what was submitted and waits for that.
#[derive(Debug)]
pub struct AuditLog {
    queue: Arc<AuditQueue>,
    public_key: PublicKey,
    folder: PathBuf,
    anchors: Vec<AnchorSettings>,
    /// Anchors whose accepted checkpoints were not in the log when it was opened.
    missing: Vec<AnchorStatus>,
    writer: Option<JoinHandle<()>>,
}

/// A record that is on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Its number, counted from 1 through the whole log.
    pub sequence: u64,
    /// Its hash, which covers it and everything before it.
    pub hash: Hash,
}

/// Returns the path of the log in a state directory.
pub fn folder_in(state: &Path) -> PathBuf {
    state.join("audit")
}

/// Settings of a log.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Size from which on a segment gets no more records, in bytes.
    pub segment_bytes: u64,
    /// Maximum number of records that wait to be written.
    pub most_waiting: usize,
    /// Anchors that checkpoints are delivered to.
    pub anchors: Vec<AnchorSettings>,
}

/// Maximum total size of the records that wait to be written, in bytes.
const MOST_WAITING_BYTES: usize = 32 << 20;

// === impl Settings ===

impl Default for Settings {
    fn default() -> Self {
        Self { segment_bytes: 64 << 20, most_waiting: 16_384, anchors: Vec::new() }
    }
}

// === impl AuditLog ===

impl AuditLog {
    /// Opens the log in `folder`, made with a new key if there is none. What a crash has left of a batch is moved aside
    /// and recorded.
    ///
    /// This starts a thread, and one for each anchor that was [installed](anchor::install) and is not required.
    ///
    /// # Errors
    /// [`AuditError`] when it can't be made or read, or when it is damaged: a damaged log takes no more records.
    pub fn open(folder: &Path) -> Result<Self, AuditError> {
        Self::open_with(folder, Settings { anchors: anchor::installed()?, ..Settings::default() })
    }

    /// Opens the log as [`AuditLog::open`] does, with other settings.
    ///
    /// # Errors
    /// As [`AuditLog::open`].
    pub fn open_with(folder: &Path, settings: Settings) -> Result<Self, AuditError> {
        // Before the log: other processes may add to it and deliver that meanwhile.
        let statuses = anchor::statuses(folder);
        let tail = LogTail::open(folder, settings.segment_bytes)?;
        let missing = missing(statuses, &tail)?;
        let public_key = tail.public_key();
        let queue = Arc::new(AuditQueue::new(settings.most_waiting, MOST_WAITING_BYTES));
        let anchors = match settings.anchors.as_slice() {
            [] => Anchors::default(),
            settings => Anchors::start(folder, settings, &tail.signer()?, tail.position())?,
        };
        let (theirs, path) = (Arc::clone(&queue), folder.to_owned());
        let open_again = move || LogTail::open(&path, settings.segment_bytes);
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || theirs.write_until_closed(tail, anchors, open_again))
            .map_err(|error| AuditError::io("start the thread that writes", folder, error))?;
        let folder = folder.to_owned();
        Ok(Self { queue, public_key, folder, anchors: settings.anchors, missing, writer: Some(writer) })
    }

    /// Returns the statuses of anchors that had accepted records which the log didn't hold when it was opened. Then the
    /// log was truncated, rolled back or replaced, or the status was changed. `verify` finds out which.
    pub fn missing_from_log(&self) -> &[AnchorStatus] {
        &self.missing
    }

    /// Returns the statuses of the anchors that the log was opened with. An anchor without a status has accepted
    /// nothing yet.
    pub fn anchor_statuses(&self) -> Vec<AnchorStatus> {
        let mut statuses = anchor::statuses(&self.folder);
        let targets: Vec<String> = self.anchors.iter().map(|anchor| anchor.target.to_string()).collect();
        statuses.retain(|status| targets.contains(&status.target));
        statuses
    }

    /// Returns the last write failure; `None` once a record was written, or if none was tried for half a minute.
    pub fn failing(&self) -> Option<Arc<AuditError>> {
        const WITHIN: Duration = Duration::from_secs(30);
        self.queue.failing(WITHIN)
    }

    /// The key that signs this log.
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// Submits an event and returns at once. The event is on disk a few milliseconds later, in a batch with others. The
    /// writer thread then calls `done`, which must not block. If the event can't be recorded, `done` gets the reason.
    ///
    /// [`AuditError::Full`], [`AuditError::Failed`] and [`AuditError::Closed`] are reported before this returns. A
    /// caller that gets any error must not perform the action that was to be recorded.
    pub fn submit(&self, event: Event, done: impl FnOnce(Result<Receipt, AuditError>) + Send + 'static) {
        self.queue.submit(event, false, Box::new(done));
    }

    /// Submits an event that a caller waits for; the batch is written without waiting for more events.
    pub fn submit_urgent(
        &self,
        event: Event,
        done: impl FnOnce(Result<Receipt, AuditError>) + Send + 'static,
    ) {
        self.queue.submit(event, true, Box::new(done));
    }

    /// Appends an event and waits until its record is on disk.
    ///
    /// # Errors
    /// [`AuditError`] when it isn't.
    pub fn append(&self, event: Event) -> Result<Receipt, AuditError> {
        let (done, outcome) = mpsc::sync_channel(1);
        let done = move |result| {
            // The receiver waits below.
            let _ = done.send(result);
        };
        self.submit_urgent(event, done);
        outcome.recv().unwrap_or(Err(AuditError::Closed))
    }

    /// Writes what was submitted, and accepts no more events.
    pub fn close(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        self.queue.close();
        let Some(writer) = self.writer.take() else { return };
        // The last owner may be a `done` callback, which the writer itself calls; it can't join itself.
        if writer.thread().id() != std::thread::current().id() {
            // All waiting callers have been notified.
            let _ = writer.join();
        }
    }
}

/// Returns the statuses that name a record which the log doesn't hold.
fn missing(mut statuses: Vec<AnchorStatus>, tail: &LogTail) -> Result<Vec<AnchorStatus>, AuditError> {
    if !statuses.is_empty() {
        let (log, end) = (tail.signer()?.log.to_string(), tail.position());
        let is_missing = |status: &AnchorStatus| {
            status.delivered.as_ref().is_some_and(|delivered| !delivered.agrees_with(&log, end))
        };
        statuses.retain(is_missing);
    }
    Ok(statuses)
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.finish();
    }
}
