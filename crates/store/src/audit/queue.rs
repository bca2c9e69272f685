//! Queue of events, and the thread that writes them: all waiting events become one batch with one sync.

use super::Receipt;
use super::anchor::Anchors;
use super::error::AuditError;
use super::event::Event;
use super::tail::LogTail;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Callback that receives the outcome of a record.
pub(super) type RecordCallback = Box<dyn FnOnce(Result<Receipt, AuditError>) + Send>;

/// Queue of events to be written.
pub(super) struct AuditQueue {
    waiting: Mutex<QueueState>,
    something: Condvar,
    most: usize,
    most_bytes: usize,
}

#[derive(Default)]
struct QueueState {
    submitted: Vec<QueuedEvent>,
    bytes: usize,
    is_closed: bool,
    /// Last failure and its time. Writing is retried after [`REST`].
    failure: Option<(Arc<AuditError>, Instant)>,
    /// True if a caller waits for one of these records to be on disk.
    is_urgent: bool,
    writer_sleeps: bool,
}

struct QueuedEvent {
    event: Event,
    done: RecordCallback,
}

/// Maximum size of a batch without its last record. A crash may leave that much.
const BATCH_BYTES: usize = 4 << 20;

/// Time for which events are gathered if no caller waits for one and the queue is short. Each batch costs a signature
/// and a disk sync.
const GATHERING_TIME: Duration = Duration::from_millis(4);
/// Time after a failure in which no events are accepted.
const REST: Duration = Duration::from_secs(1);

const ENOUGH: usize = 1024;
const ENOUGH_BYTES: usize = 1 << 20;

// === impl AuditQueue ===

impl AuditQueue {
    pub(super) fn new(most: usize, most_bytes: usize) -> Self {
        Self { waiting: Mutex::default(), something: Condvar::new(), most, most_bytes }
    }

    pub(super) fn submit(&self, event: Event, is_urgent: bool, done: RecordCallback) {
        let refusal = {
            let mut waiting = self.lock();
            match waiting.refusal(self) {
                None => {
                    waiting.bytes += event.body().len();
                    waiting.submitted.push(QueuedEvent { event, done });
                    waiting.is_urgent |= is_urgent;
                    if waiting.wakes_writer(self) {
                        self.something.notify_one();
                    }
                    return;
                }
                Some(refusal) => refusal,
            }
        };
        done(Err(refusal));
    }

    /// Returns the last write failure if it is no older than `within`.
    pub(super) fn failing(&self, within: Duration) -> Option<Arc<AuditError>> {
        self.failure().filter(|(_, at)| at.elapsed() <= within).map(|(error, _)| error)
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.something.notify_one();
    }

    /// Main loop of the writer thread.
    pub(super) fn write_until_closed(
        &self,
        mut tail: LogTail,
        mut anchors: Anchors,
        open_again: impl Fn() -> Result<LogTail, AuditError>,
    ) {
        let _end = WriterThreadGuard(self);
        while let Some(batch) = self.next_batch() {
            let outcome = match self.failure() {
                // The rest of an abandoned batch is cleared away, as after a crash.
                Some(failure) if failure.1.elapsed() >= REST => open_again().and_then(|opened| {
                    tail = opened;
                    self.lock().failure = None;
                    write(&mut tail, &mut anchors, &batch)
                }),
                Some((source, _)) => Err(AuditError::Failed { source }),
                None => write(&mut tail, &mut anchors, &batch),
            };
            match outcome {
                Ok(receipts) => {
                    for (QueuedEvent { done, .. }, receipt) in batch.into_iter().zip(receipts) {
                        tell(done, Ok(receipt));
                    }
                }
                Err(error) => {
                    self.fail(&error);
                    batch.into_iter().for_each(|submitted| tell(submitted.done, Err(error.clone())));
                }
            }
        }
        anchors.finish();
        let left = anchors.take_events();
        if !left.is_empty() {
            // Events that can't be written stay in the anchor's status.
            let _ = tail.write(left.iter());
        }
        // All that was acknowledged is on the disk already.
        let _ = tail.sync_head();
    }

    /// Waits for the next batch; `None` when the queue is empty and closed.
    fn next_batch(&self) -> Option<Vec<QueuedEvent>> {
        let mut waiting = self.lock();
        while waiting.submitted.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting.writer_sleeps = true;
            waiting = self.something.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        if !waiting.must_be_written(self) {
            let gathered = self.something.wait_timeout_while(waiting, GATHERING_TIME, |waiting| {
                waiting.writer_sleeps = !waiting.must_be_written(self);
                waiting.writer_sleeps
            });
            waiting = gathered.unwrap_or_else(PoisonError::into_inner).0;
        }
        waiting.writer_sleeps = false;
        let mut bytes = 0;
        let fits = |submitted: &&QueuedEvent| {
            let has_room = bytes < BATCH_BYTES;
            bytes += submitted.event.body().len();
            has_room
        };
        let many = waiting.submitted.iter().take_while(fits).count();
        let rest = waiting.submitted.split_off(many);
        waiting.is_urgent &= !rest.is_empty();
        let batch = std::mem::replace(&mut waiting.submitted, rest);
        waiting.bytes -= batch.iter().map(|submitted| submitted.event.body().len()).sum::<usize>();
        Some(batch)
    }

    fn failure(&self) -> Option<(Arc<AuditError>, Instant)> {
        self.lock().failure.clone()
    }

    fn fail(&self, error: &AuditError) {
        let mut waiting = self.lock();
        if !matches!(error, AuditError::Failed { .. }) {
            waiting.failure = Some((Arc::new(error.clone()), Instant::now()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AuditQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditQueue").field("waiting", &self.lock().submitted.len()).finish_non_exhaustive()
    }
}

// === impl QueueState ===

impl QueueState {
    /// Returns true if the batch must be written without waiting for more events.
    fn must_be_written(&self, queue: &AuditQueue) -> bool {
        let is_enough = self.submitted.len() >= ENOUGH.min(queue.most / 2) || self.bytes >= ENOUGH_BYTES;
        is_enough || self.is_urgent || self.is_closed
    }

    /// Returns true if the sleeping writer thread must be woken.
    fn wakes_writer(&mut self, queue: &AuditQueue) -> bool {
        let has_news = self.submitted.len() == 1 || self.must_be_written(queue);
        has_news && std::mem::take(&mut self.writer_sleeps)
    }

    /// Returns the reason why no more events are accepted, if there is one.
    fn refusal(&self, queue: &AuditQueue) -> Option<AuditError> {
        if let Some((source, _)) = self.failure.as_ref().filter(|(_, at)| at.elapsed() < REST) {
            return Some(AuditError::Failed { source: Arc::clone(source) });
        }
        if self.is_closed {
            return Some(AuditError::Closed);
        }
        let is_full = self.submitted.len() >= queue.most || self.bytes >= queue.most_bytes;
        is_full.then_some(AuditError::Full)
    }
}

/// Writes a batch, with the pending events of anchors, and delivers the new end to the anchors.
fn write(
    tail: &mut LogTail,
    anchors: &mut Anchors,
    batch: &[QueuedEvent],
) -> Result<Vec<Receipt>, AuditError> {
    let of_anchors = anchors.take_events();
    let receipts = tail.write(batch.iter().map(|submitted| &submitted.event).chain(&of_anchors))?;
    anchors.reach(tail.position())?;
    Ok(receipts)
}

/// Reports the outcome to the waiting caller. A panic in its callback must not keep the others from being notified.
fn tell(done: RecordCallback, outcome: Result<Receipt, AuditError>) {
    let _ = catch_unwind(AssertUnwindSafe(|| done(outcome)));
}

/// Notifies all waiting callers when the thread ends, for whatever reason.
struct WriterThreadGuard<'a>(&'a AuditQueue);

impl Drop for WriterThreadGuard<'_> {
    fn drop(&mut self) {
        let left = {
            let mut waiting = self.0.lock();
            waiting.is_closed = true;
            std::mem::take(&mut waiting.submitted)
        };
        left.into_iter().for_each(|submitted| tell(submitted.done, Err(AuditError::Closed)));
    }
}
