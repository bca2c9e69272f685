//! Carries what is in the write-ahead log over into the file, beside those who write: that takes the disk longer than a commit
//! does, and nobody waits for it.
//!
//! ```text
//! the log is long ─► a thread carries over what is in it ─► who commits carries over what has come meanwhile ─► it begins anew
//! ```

use super::batch::Batch;
use rusqlite::Connection;
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// The thread's other end. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Checkpointer {
    wake: SyncSender<()>,
    stage: Arc<AtomicU8>,
}

/// Nothing is asked of the thread; it is at it; it has done what it could.
const IDLE: u8 = 0;
const AT_WORK: u8 = 1;
const DONE: u8 = 2;

/// A log of so many pages is carried over.
const LONG: i32 = 2_000;

/// One of so many is carried over while nobody writes, or it would grow without end.
const TOO_LONG: i32 = 16_000;

const CARRY_OVER: &str = "PRAGMA wal_checkpoint(PASSIVE)";

thread_local! {
    /// The pages in the log after the last commit of this thread.
    static PAGES: Cell<i32> = const { Cell::new(0) };
}

/// Has each thread that commits know how long the log is. It replaces what SQLite does by itself.
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

    /// Has the log carried over if it is long, after a commit of this thread.
    pub(super) fn consider(&self, batch: &Batch) {
        let pages = PAGES.get();
        match self.stage.load(Ordering::Acquire) {
            IDLE if pages >= LONG => {
                self.stage.store(AT_WORK, Ordering::Release);
                // Its thread takes one word at a time, and there is none.
                let _ = self.wake.try_send(());
            }
            // What is left is little, and with it the log may begin anew.
            DONE => {
                self.stage.store(IDLE, Ordering::Release);
                finish(batch);
            }
            _ if pages >= TOO_LONG => finish(batch),
            _ => {}
        }
    }
}

fn finish(batch: &Batch) {
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

/// What could not be carried over is, the next time.
fn checkpoint(log: &Connection) {
    let _ = log.query_row(CARRY_OVER, (), |_| Ok(()));
}
