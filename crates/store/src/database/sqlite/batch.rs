//! Batches of turns that are committed together.

use rusqlite::{Connection, Error};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A connection that writes, and the transaction that is open on it.
#[derive(Debug)]
pub(super) struct WriteBatch {
    /// `None` once it is closed.
    connection: Option<Connection>,
    stage: BatchStage,
    waiting: Vec<oneshot::Sender<CommitResult>>,
}

/// Result of a batch's commit.
pub(super) type CommitResult = Result<(), Arc<Error>>;

/// Stage of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchStage {
    /// There is no transaction.
    Idle,
    /// A transaction is open, and no turn is in progress.
    Open,
    /// A turn is in progress, or was dropped and must be undone.
    InTurn,
}

// === impl WriteBatch ===

impl WriteBatch {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection: Some(connection), stage: BatchStage::Idle, waiting: Vec::new() }
    }

    pub(super) fn begin_turn(&mut self) -> Result<(), Error> {
        self.undo_left_over();
        if self.stage == BatchStage::Idle {
            self.run("BEGIN IMMEDIATE")?;
            self.stage = BatchStage::Open;
        }
        self.run("SAVEPOINT turn")?;
        self.stage = BatchStage::InTurn;
        Ok(())
    }

    /// Leaves the turn's changes to the next commit, which notifies the waiting caller.
    pub(super) fn end_turn(&mut self, waiting: oneshot::Sender<CommitResult>) -> Result<(), Error> {
        self.run("RELEASE turn")?;
        self.stage = BatchStage::Open;
        self.waiting.push(waiting);
        Ok(())
    }

    /// Commits the batch, and waits for the disk.
    pub(super) fn settle(&mut self) {
        self.undo_left_over();
        if self.stage == BatchStage::Idle {
            return;
        }
        match self.run("COMMIT") {
            Ok(()) => {
                self.stage = BatchStage::Idle;
                self.tell(&Ok(()));
            }
            Err(error) => self.abandon(error),
        }
    }

    pub(super) fn close(&mut self) {
        self.settle();
        self.connection = None;
    }

    pub(super) fn connection(&self) -> Result<&Connection, Error> {
        self.connection.as_ref().ok_or_else(closed)
    }

    /// Undoes a turn that was dropped before its end. The other turns of the batch stay.
    fn undo_left_over(&mut self) {
        if self.stage == BatchStage::InTurn {
            match self.run("ROLLBACK TO turn; RELEASE turn") {
                Ok(()) => self.stage = BatchStage::Open,
                // A full disk may have ended the whole transaction.
                Err(error) => self.abandon(error),
            }
        }
    }

    /// Rolls the transaction back and reports the error to all waiting callers.
    fn abandon(&mut self, why: Error) {
        // There may be no transaction any more.
        let _ = self.run("ROLLBACK");
        self.stage = BatchStage::Idle;
        self.tell(&Err(Arc::new(why)));
    }

    fn tell(&mut self, committed: &CommitResult) {
        for waiting in self.waiting.drain(..) {
            // A caller that has stopped waiting is not notified.
            let _ = waiting.send(committed.clone());
        }
    }

    fn run(&self, sql: &'static str) -> Result<(), Error> {
        self.connection()?.execute_batch(sql)
    }
}

/// Error of a closed database.
pub(super) fn closed() -> Error {
    let misuse = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    Error::SqliteFailure(misuse, Some("the database is closed".to_owned()))
}
