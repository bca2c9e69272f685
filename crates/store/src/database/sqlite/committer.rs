//! The thread that commits what turns have left to be committed.

use super::batch::Batch;
use super::checkpoint::Checkpointer;
use rusqlite::Connection;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread;
use tokio::sync::Mutex;

/// The thread's other end. It ends when nobody holds this any more.
#[derive(Debug, Clone)]
pub(super) struct Committer(SyncSender<()>);

// === impl Committer ===

impl Committer {
    pub(super) fn start(batch: &Arc<Mutex<Batch>>, log: Connection) -> io::Result<Self> {
        // Whoever wakes it while it is about to look need not wait: it sees what they have left.
        let (wake, woken) = sync_channel(1);
        let (batch, checkpointer) = (Arc::downgrade(batch), Checkpointer::start(log)?);
        thread::Builder::new()
            .name("commit".to_owned())
            .spawn(move || commit(&batch, &woken, &checkpointer))
            .map(|_| Self(wake))
    }

    /// Says that there is something to commit, or to undo.
    pub(super) fn wake(&self) {
        // Somebody has said so already, or it is all over.
        let _ = self.0.try_send(());
    }
}

fn commit(batch: &Weak<Mutex<Batch>>, woken: &Receiver<()>, checkpointer: &Checkpointer) {
    while woken.recv().is_ok() {
        let Some(batch) = batch.upgrade() else { return };
        // Who has asked for a turn meanwhile has it first: the lock is given out in order.
        let mut batch = batch.blocking_lock();
        batch.settle();
        checkpointer.consider(&batch);
    }
}
