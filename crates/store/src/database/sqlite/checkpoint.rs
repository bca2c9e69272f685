//! Copies the write-ahead log into the database file in a thread of its own. Checkpoints take the disk longer than a
//! commit, and no caller waits for them.
//!
//! ```text
//! the log is long ─► a thread copies what is in it ─► the committer copies what has come meanwhile ─► it begins anew
//! ```

use super::batch::WriteBatch;
use rusqlite::Connection;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Handle to the checkpoint thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Checkpointer {
    wake: SyncSender<()>,
    stage: Arc<AtomicU8>,
}

/// Checkpoint thread is idle, at work, or done with all that it could copy.
const IDLE: u8 = 0;
const AT_WORK: u8 = 1;
const DONE: u8 = 2;

/// Number of pages from which on the checkpoint thread is started.
const LONG: i32 = 2_000;

/// Number of pages from which a checkpoint runs while writers wait. Otherwise the log could grow without end.
const TOO_LONG: i32 = 16_000;

const CARRY_OVER: &str = "PRAGMA wal_checkpoint(PASSIVE)";

thread_local! {
    /// Number of pages in the log after the last commit of this thread.
    static PAGES: Cell<i32> = const { Cell::new(0) };
}

/// Records the log's length for each thread that commits. This hook replaces SQLite's automatic checkpoints.
pub(super) fn watch(connection: &Connection) {
    connection.wal_hook(Some(|_, pages| {
        PAGES.set(pages);
        Ok(())
    }));
}

// === impl Checkpointer ===

impl Checkpointer {
    pub(super) fn start(log: Connection) -> io::Result<Self> {
        let (wake, woken) = sync_channel(1);
        let stage = Arc::new(AtomicU8::new(IDLE));
        let theirs = Arc::clone(&stage);
        thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || carry_over(&log, &woken, &theirs))?;
        Ok(Self { wake, stage })
    }

    /// Starts a checkpoint if the log is long, after a commit of this thread.
    pub(super) fn consider(&self, batch: &WriteBatch) {
        let pages = PAGES.get();
        match self.stage.load(Ordering::Acquire) {
            IDLE if pages >= LONG => {
                self.stage.store(AT_WORK, Ordering::Release);
                // The channel has one place, and it is empty here.
                let _ = self.wake.try_send(());
            }
            // Little is left, and copying it lets the log begin anew.
            DONE => {
                self.stage.store(IDLE, Ordering::Release);
                finish(batch);
            }
            _ if pages >= TOO_LONG => finish(batch),
            _ => {}
        }
    }
}

fn finish(batch: &WriteBatch) {
    if let Ok(connection) = batch.connection() {
        checkpoint(connection);
        PAGES.set(0);
    }
}

fn carry_over(log: &Connection, woken: &Receiver<()>, stage: &AtomicU8) {
    while woken.recv().is_ok() {
        checkpoint(log);
        stage.store(DONE, Ordering::Release);
    }
}

/// Runs a checkpoint. The next one copies what this one can't.
fn checkpoint(log: &Connection) {
    let _ = log.query_row(CARRY_OVER, (), |_| Ok(()));
}
