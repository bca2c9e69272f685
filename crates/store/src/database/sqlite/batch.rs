//! Turns that are committed together.

use rusqlite::{Connection, Error};
use std::sync::Arc;
use tokio::sync::oneshot;

/// A connection that writes, and the transaction that is open on it.
#[derive(Debug)]
pub(super) struct Batch {
    /// Nothing once it is closed.
    connection: Option<Connection>,
    stage: Stage,
    waiting: Vec<oneshot::Sender<Committed>>,
}

/// Whether a batch was kept.
pub(super) type Committed = Result<(), Arc<Error>>;

/// How far a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is no transaction.
    Idle,
    /// There is one, and no turn is on.
    Open,
    /// A turn is on, or was and is to be undone.
    InTurn,
}

// === impl Batch ===

impl Batch {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection: Some(connection), stage: Stage::Idle, waiting: Vec::new() }
    }

    pub(super) fn begin_turn(&mut self) -> Result<(), Error> {
        self.undo_left_over();
        if self.stage == Stage::Idle {
            self.run("BEGIN IMMEDIATE")?;
            self.stage = Stage::Open;
        }
        self.run("SAVEPOINT turn")?;
        self.stage = Stage::InTurn;
        Ok(())
    }

    /// Leaves what a turn has done to be committed, and somebody to be told of that.
    pub(super) fn end_turn(&mut self, waiting: oneshot::Sender<Committed>) -> Result<(), Error> {
        self.run("RELEASE turn")?;
        self.stage = Stage::Open;
        self.waiting.push(waiting);
        Ok(())
    }

    /// Commits what is there, and waits for the disk.
    pub(super) fn settle(&mut self) {
        self.undo_left_over();
        if self.stage == Stage::Idle {
            return;
        }
        match self.run("COMMIT") {
            Ok(()) => {
                self.stage = Stage::Idle;
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

    /// A turn that nobody has ended is undone; the others in the batch are not.
    fn undo_left_over(&mut self) {
        if self.stage == Stage::InTurn {
            match self.run("ROLLBACK TO turn; RELEASE turn") {
                Ok(()) => self.stage = Stage::Open,
                // The whole transaction may have gone with a disk that is full.
                Err(error) => self.abandon(error),
            }
        }
    }

    /// Gives the transaction up, and whoever waits for it is told.
    fn abandon(&mut self, why: Error) {
        // There may be none any more.
        let _ = self.run("ROLLBACK");
        self.stage = Stage::Idle;
        self.tell(&Err(Arc::new(why)));
    }

    fn tell(&mut self, committed: &Committed) {
        for waiting in self.waiting.drain(..) {
            // Who doesn't wait any more doesn't hear of it.
            let _ = waiting.send(committed.clone());
        }
    }

    fn run(&self, sql: &'static str) -> Result<(), Error> {
        self.connection()?.execute_batch(sql)
    }
}

/// What is said of a database that is closed.
pub(super) fn closed() -> Error {
    let misuse = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
    Error::SqliteFailure(misuse, Some("the database is closed".to_owned()))
}
