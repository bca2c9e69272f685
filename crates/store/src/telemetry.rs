//! A node's telemetry, in a database file of its own: instances, sandboxes and log events (`docs/guides/monitor-node.md`).
//!
//! No caller waits for it. Notes go into a queue that is written a few times a second. When the queue is full, notes
//! are dropped and counted. Jobs are not stored here, and no decision depends on it.

mod reading;

pub use reading::{ContainerFilter, LogFilter};

use crate::database::{Database, DatabaseError, Transaction, values};
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::worker::telemetry::{ContainerKind, ContainerStatus};
use jiff::Timestamp;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Telemetry store of a node.
#[derive(Debug)]
pub struct Telemetry {
    database: Database,
    notes: Mutex<Option<mpsc::Sender<TelemetryEntry>>>,
    dropped: Arc<AtomicU64>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// A node that has come up.
#[derive(Debug, Clone)]
pub struct NodeBoot {
    /// Time of the start.
    pub at: Timestamp,
    /// Id of the instance.
    pub boot_id: String,
    /// The node's name.
    pub node_slug: String,
    /// The node's version.
    pub build_version: String,
    /// The kernel's release.
    pub kernel_version: String,
}

/// A sandbox that was made.
#[derive(Debug, Clone)]
pub struct SandboxRecord {
    /// Time of the creation.
    pub at: Timestamp,
    /// Its run.
    pub run_id: RunId,
    /// Its name.
    pub name: String,
    /// Purpose of the container.
    pub kind: ContainerKind,
    /// Runtime that created it.
    pub runtime: &'static str,
    /// Image that it was created from.
    pub image: String,
    /// The task that it works for.
    pub task_id: Option<TaskId>,
    /// The job that it works on.
    pub job_id: Option<JobId>,
    /// Labels of the container.
    pub labels: Vec<(&'static str, String)>,
}

/// A log event of a part of the node.
#[derive(Debug, Clone)]
pub struct ServiceLogEvent {
    /// Time of the event.
    pub at: Timestamp,
    /// Service that reports it: `node_manager` or `worker_api`.
    pub service: &'static str,
    /// Level: `info`, `warn` or `error`.
    pub level: &'static str,
    /// Message.
    pub message: String,
    /// Additional fields.
    pub fields: serde_json::Value,
}

/// An entry of the queue.
#[derive(Debug)]
enum TelemetryEntry {
    Boot(NodeBoot),
    Made(Box<SandboxRecord>),
    Ended {
        at: Timestamp,
        run_id: RunId,
        exit_code: i32,
    },
    Said(ServiceLogEvent),
    /// Notifies its sender when everything before it has been written.
    Mark(oneshot::Sender<()>),
}

/// Path of the file, relative to the node's state directory.
pub const FILE: &str = "telemetry/telemetry.db";

/// Maximum number of queued notes.
const MOST_WAITING: usize = 8_192;

/// Interval in which notes are gathered into one transaction.
const GATHERED: Duration = Duration::from_millis(250);

/// Maximum time that a reader waits for queued notes. After it, the reader gets what is written by then.
const FLUSHED_WITHIN: Duration = Duration::from_secs(2);

const DAY: i64 = 86_400;

/// Retention of log events and containers, in seconds.
const LOGS_KEPT: i64 = 7 * DAY;
const CONTAINERS_KEPT: i64 = 30 * DAY;

const INSERT_BOOT: &str = "INSERT OR REPLACE INTO node_boot \
    (boot_id, booted_at, node_slug, build_version, platform_os, platform_arch, kernel_version) \
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

/// Marks containers of a previous instance as `unknown`: they ended with the node, and their exit codes are lost.
const FORGET_RUNNING: &str = "UPDATE container_inventory SET status = 'unknown', last_seen_at = $1 \
    WHERE status IN ('created', 'running', 'paused')";

const INSERT_CONTAINER: &str = "INSERT OR IGNORE INTO container_inventory \
    (container_id, container_name, kind, runtime, image_ref, created_at, last_seen_at, status, task_id, job_id, labels_json) \
    VALUES ($1, $2, $3, $4, $5, $6, $6, 'running', $7, $8, $9)";

const UPDATE_CONTAINER: &str = "UPDATE container_inventory SET status = $2, exit_code = $3, last_seen_at = $4 \
    WHERE container_id = $1";

const INSERT_EVENT: &str = "INSERT INTO container_event \
    (occurred_at, container_id, action, status, exit_code, task_id, job_id, details_json) \
    SELECT $1, $2, $3, $4, $5, task_id, job_id, '{}' FROM container_inventory WHERE container_id = $2";

const INSERT_LOG: &str = "INSERT INTO log_event (occurred_at, source_kind, source_name, level, message, fields_json) \
    VALUES ($1, 'service', $2, $3, $4, $5)";

const EXPIRE: [(&str, i64); 3] = [
    ("DELETE FROM log_event WHERE occurred_at < $1", LOGS_KEPT),
    ("DELETE FROM container_event WHERE occurred_at < $1", CONTAINERS_KEPT),
    ("DELETE FROM container_inventory WHERE last_seen_at < $1 AND status <> 'running'", CONTAINERS_KEPT),
];

// === impl Telemetry ===

impl Telemetry {
    /// Opens the store in a node's state directory, and starts its writer.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be opened.
    pub async fn open(state: &Path) -> Result<Self, DatabaseError> {
        let path = state.join(FILE);
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|error| DatabaseError::of("make a folder", error))?;
        }
        let database = Database::open_telemetry(&path).await?;
        let (notes, taken) = mpsc::channel(MOST_WAITING);
        let dropped = Arc::<AtomicU64>::default();
        let writer = tokio::spawn(write(database.clone(), taken, Arc::clone(&dropped)));
        Ok(Self { database, notes: Mutex::new(Some(notes)), dropped, writer: Mutex::new(Some(writer)) })
    }

    /// Notes that the node has started. Containers that still ran when it ended become `unknown`.
    pub fn booted(&self, boot: NodeBoot) {
        self.note(TelemetryEntry::Boot(boot));
    }

    /// Notes that a sandbox was created, and that its program runs.
    pub fn made(&self, made: SandboxRecord) {
        self.note(TelemetryEntry::Made(Box::new(made)));
    }

    /// Notes that a sandbox's program has ended, and that the sandbox was removed.
    pub fn ended(&self, at: Timestamp, run_id: &RunId, exit_code: i32) {
        self.note(TelemetryEntry::Ended { at, run_id: run_id.clone(), exit_code });
    }

    /// Notes a log event of a part of the node.
    pub fn log(&self, said: ServiceLogEvent) {
        self.note(TelemetryEntry::Said(said));
    }

    /// Waits until everything that was noted before is written, for a limited time.
    pub async fn flush(&self) {
        let (mark, written) = oneshot::channel();
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let marked = async {
            if let Some(notes) = notes
                && notes.send(TelemetryEntry::Mark(mark)).await.is_ok()
            {
                // The writer ends only when the store is closed.
                let _ = written.await;
            }
        };
        let _ = tokio::time::timeout(FLUSHED_WITHIN, marked).await;
    }

    /// Deletes entries whose retention is over.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be written.
    pub async fn expire(&self, now: Timestamp) -> Result<(), DatabaseError> {
        let mut transaction = self.database.begin().await?;
        for (statement, kept) in EXPIRE {
            let before = now.checked_sub(jiff::SignedDuration::from_secs(kept)).unwrap_or(Timestamp::MIN);
            transaction.execute(statement, values![text(before)]).await?;
        }
        transaction.commit("telemetry.expire").await
    }

    /// Writes the queued notes, and closes the store.
    pub async fn close(&self) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            let _ = writer.await;
        }
        self.database.close().await;
    }

    fn note(&self, note: TelemetryEntry) {
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.as_ref().is_some_and(|notes| notes.try_send(note).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn write(database: Database, mut notes: mpsc::Receiver<TelemetryEntry>, dropped: Arc<AtomicU64>) {
    let mut portion = Vec::new();
    while notes.recv_many(&mut portion, MOST_WAITING).await > 0 {
        if !portion.iter().any(|note| matches!(note, TelemetryEntry::Mark(_))) {
            tokio::time::sleep(GATHERED).await;
            while let Ok(note) = notes.try_recv() {
                portion.push(note);
            }
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if write_all(&database, &portion, lost).await.is_err() {
            let lost =
                lost + portion.iter().filter(|note| !matches!(note, TelemetryEntry::Mark(_))).count() as u64;
            dropped.fetch_add(lost, Ordering::Relaxed);
        }
        for note in portion.drain(..) {
            if let TelemetryEntry::Mark(mark) = note {
                // The caller may have stopped waiting.
                let _ = mark.send(());
            }
        }
    }
}

async fn write_all(database: &Database, notes: &[TelemetryEntry], lost: u64) -> Result<(), DatabaseError> {
    let mut transaction = database.begin().await?;
    for note in notes {
        match note {
            TelemetryEntry::Boot(boot) => boot.write(&mut transaction).await?,
            TelemetryEntry::Made(made) => made.write(&mut transaction).await?,
            TelemetryEntry::Ended { at, run_id, exit_code } => {
                write_end(&mut transaction, *at, run_id, *exit_code).await?;
            }
            TelemetryEntry::Said(said) => said.write(&mut transaction).await?,
            TelemetryEntry::Mark(_) => {}
        }
    }
    if lost > 0 {
        let message = format!("{lost} notes are lost: more came than could be written");
        let (at, fields) = (Timestamp::now(), serde_json::json!({}));
        let said = ServiceLogEvent { at, service: "node_manager", level: "warn", message, fields };
        said.write(&mut transaction).await?;
    }
    transaction.commit("telemetry").await
}

async fn write_end(
    transaction: &mut Transaction,
    at: Timestamp,
    run_id: &RunId,
    exit_code: i32,
) -> Result<(), DatabaseError> {
    let (at, exited, code) = (text(at), ContainerStatus::Exited.as_str(), i64::from(exit_code));
    let values = values![run_id.as_str(), exited, code, at.as_str()];
    transaction.execute(UPDATE_CONTAINER, values).await?;
    for action in ["stop", "remove"] {
        let values = values![at.as_str(), run_id.as_str(), action, exited, code];
        transaction.execute(INSERT_EVENT, values).await?;
    }
    Ok(())
}

// === impl NodeBoot ===

impl NodeBoot {
    async fn write(&self, transaction: &mut Transaction) -> Result<(), DatabaseError> {
        let at = text(self.at);
        transaction.execute(FORGET_RUNNING, values![at.as_str()]).await?;
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        let (version, kernel) = (self.build_version.as_str(), self.kernel_version.as_str());
        let values = values![self.boot_id.as_str(), at, self.node_slug.as_str(), version, os, arch, kernel];
        transaction.execute(INSERT_BOOT, values).await.map(drop)
    }
}

// === impl SandboxRecord ===

impl SandboxRecord {
    async fn write(&self, transaction: &mut Transaction) -> Result<(), DatabaseError> {
        let at = text(self.at);
        let labels = self.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into()));
        let values = values![
            self.run_id.as_str(),
            self.name.as_str(),
            self.kind.as_str(),
            self.runtime,
            self.image.as_str(),
            at.as_str(),
            self.task_id.as_ref().map(TaskId::key),
            self.job_id.as_ref().map(JobId::key),
            serde_json::Value::Object(labels.collect()).to_string()
        ];
        transaction.execute(INSERT_CONTAINER, values).await?;
        let created = [("create", ContainerStatus::Created), ("start", ContainerStatus::Running)];
        for (action, status) in created {
            let none = Option::<i64>::None;
            let values = values![at.as_str(), self.run_id.as_str(), action, status.as_str(), none];
            transaction.execute(INSERT_EVENT, values).await?;
        }
        Ok(())
    }
}

// === impl ServiceLogEvent ===

impl ServiceLogEvent {
    async fn write(&self, transaction: &mut Transaction) -> Result<(), DatabaseError> {
        let (message, fields) = (self.message.as_str(), self.fields.to_string());
        let values = values![text(self.at), self.service, self.level, message, fields];
        transaction.execute(INSERT_LOG, values).await.map(drop)
    }
}

/// A time as it is kept.
fn text(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}
