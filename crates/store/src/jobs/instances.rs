//! Who carries out jobs: one instance for each process, which is known to live by its beat.
//!
//! A beat is a number that grows. Whoever looks after others remembers when it has last seen each of them grow, by a clock
//! that nobody can set, so that no clock that is wrong takes a job away from anybody, or leaves one with the dead.

use super::Jobs;
use super::record::{JobRecord, columns};
use crate::database::{DatabaseError, Row, Sql, values};
use jiff::Timestamp;

/// A process that carries out jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its id, which no other process ever has.
    pub id: String,
    /// The node that it is of. A node has one that lives, at most.
    pub node: String,
    /// How often it has been heard of.
    pub beat: u64,
    /// What it can run, as it has announced it; `None` for an instance that has announced nothing.
    pub abilities: Option<String>,
}

/// An instance that has jobs, or is to have some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The instance.
    pub instance: String,
    /// Its node.
    pub node: String,
}

const REGISTER: &str = "INSERT INTO instances (instance, node, beat, begun_at_ms) VALUES ($1, $2, 1, $3)";
pub(super) const BEAT: &str = "UPDATE instances SET beat = beat + 1 WHERE instance = $1";
const ALL: &str = "SELECT i.instance AS instance, node, beat, abilities FROM instances i \
    LEFT JOIN instance_abilities a ON a.instance = i.instance ORDER BY i.instance";
const ANNOUNCE: &str = "INSERT INTO instance_abilities (instance, abilities) VALUES ($1, $2) \
    ON CONFLICT (instance) DO UPDATE SET abilities = excluded.abilities";
/// Whoever forgets an instance waits for a claim of it that is under way, and sees what it took.
const LOCK: Sql = Sql::of_each(
    "SELECT instance FROM instances WHERE instance = $1",
    "SELECT instance FROM instances WHERE instance = $1 FOR UPDATE",
);
const FORGET: &str = "DELETE FROM instances WHERE instance = $1 \
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE owner = $1)";
/// Callbacks that it saw to are seen to by another.
const ORPHAN: &str = "UPDATE callbacks SET owner = NULL WHERE owner = $1";
const OWNED: &str = concat!("SELECT ", columns!(), " FROM jobs WHERE owner = $1 ORDER BY number");

// === impl Jobs ===

impl Jobs {
    /// Makes an instance known, which must be before it takes a job.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be.
    pub async fn register(&self, owner: &Owner, now: Timestamp) -> Result<(), DatabaseError> {
        let values = values![owner.instance.clone(), owner.node.clone(), now.as_millisecond()];
        self.write("register", REGISTER, values).await.map(drop)
    }

    /// Records what a registered instance can run, for others that decide whether a job waits for it.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be recorded, or the instance is not registered.
    pub async fn announce(&self, instance: &str, abilities: &str) -> Result<(), DatabaseError> {
        self.write("announce", ANNOUNCE, values![instance, abilities]).await.map(drop)
    }

    /// Says that an instance lives. Whether it is known: one that was given up is not any more, and neither are its jobs
    /// its own.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be said.
    pub async fn beat(&self, instance: &str) -> Result<bool, DatabaseError> {
        Ok(self.write("beat", BEAT, values![instance]).await? > 0)
    }

    /// All that are known.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn instances(&self) -> Result<Vec<Instance>, DatabaseError> {
        let rows = self.database.fetch(ALL, values![]).await?;
        let read = |row: &Row| {
            Ok(Instance {
                id: row.text("instance")?,
                node: row.text("node")?,
                beat: row.count("beat")?,
                abilities: row.optional_text("abilities")?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// The jobs that an instance has.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn owned_by(&self, instance: &str) -> Result<Vec<JobRecord>, DatabaseError> {
        let rows = self.database.fetch(OWNED, values![instance]).await?;
        rows.iter().map(JobRecord::read).collect()
    }

    /// Forgets an instance that has no jobs any more. Whether it did.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't.
    pub async fn forget(&self, instance: &str) -> Result<bool, DatabaseError> {
        let (database, instance) = (self.database.clone(), instance.to_owned());
        self.to_the_end(async move {
            let mut transaction = database.begin().await?;
            transaction.fetch(LOCK, values![instance.clone()]).await?;
            transaction.execute(ORPHAN, values![instance.clone()]).await?;
            let forgotten = transaction.execute(FORGET, values![instance]).await?;
            transaction.commit("forget").await?;
            Ok(forgotten > 0)
        })
        .await
    }
}
