//! The thread that commits finished turns.

use super::batch::WriteBatch;
use super::checkpoint::Checkpointer;
use rusqlite::Connection;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use tokio::sync::Mutex;

/// Handle to the committer thread. The thread ends when all handles are dropped.
#[derive(Debug, Clone)]
pub(super) struct Committer(SyncSender<()>);

// === impl Committer ===

impl Committer {
    pub(super) fn start(batch: &Arc<Mutex<WriteBatch>>, log: Connection) -> io::Result<Self> {
        // With one place in the channel, a wake-up that finds it full can be skipped: the thread is about to look
        // anyway.
        let (wake, woken) = sync_channel(1);
        let (batch, checkpointer) = (Arc::downgrade(batch), Checkpointer::start(log)?);
        thread::Builder::new()
            .name("commit".to_owned())
            .spawn(move || commit(&batch, &woken, &checkpointer))
            .map(|_| Self(wake))
    }

    /// Wakes the thread, because there is something to commit or to undo.
    pub(super) fn wake(&self) {
        // The thread was woken already, or has ended.
        let _ = self.0.try_send(());
    }
}

fn commit(batch: &Weak<Mutex<WriteBatch>>, woken: &Receiver<()>, checkpointer: &Checkpointer) {
    while woken.recv().is_ok() {
        let Some(batch) = batch.upgrade() else { return };
        // Callers that wait for a turn are served first: the lock is fair.
        let mut batch = batch.blocking_lock();
        batch.settle();
        checkpointer.consider(&batch);
    }
}
