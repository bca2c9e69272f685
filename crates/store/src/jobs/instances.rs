//! Instances that carry out jobs: one for each process, with a heartbeat that shows that it is alive.
//!
//! A heartbeat is a counter. A process that watches others remembers when it last saw each counter grow. It uses a
//! monotonic clock that can't be set, so a wrong clock neither takes a job from a live instance nor leaves one with a
//! dead instance.

use super::Jobs;
use super::record::{JobRecord, columns};
use crate::database::{DatabaseError, Row, Sql, values};
use jiff::Timestamp;

/// A process that carries out jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its id, which is never reused.
    pub id: String,
    /// Its node. A node has one live instance at most.
    pub node: String,
    /// Heartbeat counter.
    pub beat: u64,
    /// Capabilities that it has announced; `None` if it has announced none.
    pub abilities: Option<String>,
}

/// An instance as the owner of jobs.
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
/// Locks an instance. A process that removes the instance waits for a claim in progress, and then sees the claimed job.
const LOCK: Sql = Sql::of_each(
    "SELECT instance FROM instances WHERE instance = $1",
    "SELECT instance FROM instances WHERE instance = $1 FOR UPDATE",
);
const FORGET: &str = "DELETE FROM instances WHERE instance = $1 \
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE owner = $1)";
/// Releases the instance's callbacks for other instances.
const ORPHAN: &str = "UPDATE callbacks SET owner = NULL WHERE owner = $1";
const OWNED: &str = concat!("SELECT ", columns!(), " FROM jobs WHERE owner = $1 ORDER BY number");

// === impl Jobs ===

impl Jobs {
    /// Registers an instance, which is required before it claims a job.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be registered.
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

    /// Sends an instance's heartbeat; returns true if the instance is registered. One that was given up is not any
    /// more, and has lost its jobs.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be recorded.
    pub async fn beat(&self, instance: &str) -> Result<bool, DatabaseError> {
        Ok(self.write("beat", BEAT, values![instance]).await? > 0)
    }

    /// Returns all registered instances.
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

    /// Returns the jobs that an instance owns.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn owned_by(&self, instance: &str) -> Result<Vec<JobRecord>, DatabaseError> {
        let rows = self.database.fetch(OWNED, values![instance]).await?;
        rows.iter().map(JobRecord::read).collect()
    }

    /// Deletes an instance that has no jobs any more; returns true if it was deleted.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be deleted.
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
