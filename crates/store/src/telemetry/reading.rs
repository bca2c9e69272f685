//! Queries for telemetry.

use super::{Telemetry, text};
use crate::database::{DatabaseError, Row, unreadable, values};
use belljar_contract::id::{JobId, TaskId};
use belljar_contract::worker::telemetry::{Container, ContainerKind, ContainerStatus, LogEvent, SourceKind};
use jiff::Timestamp;
use std::error::Error;

/// Filter for sandboxes.
#[derive(Debug, Clone, Default)]
pub struct ContainerFilter {
    /// Only containers of this kind.
    pub kind: Option<ContainerKind>,
    /// Only containers with this status.
    pub status: Option<ContainerStatus>,
    /// Only containers of this task.
    pub task_id: Option<TaskId>,
    /// Only containers of this job.
    pub job_id: Option<JobId>,
    /// Only containers created before the one with this number.
    pub before: Option<u64>,
}

/// Filter for the log events of a service.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    /// Service that reported them.
    pub service: String,
    /// Only events at or after this time.
    pub since: Option<Timestamp>,
    /// Only events before this time.
    pub until: Option<Timestamp>,
    /// Only events after the one with this number.
    pub after: u64,
}

macro_rules! columns {
    () => {
        "SELECT number, container_id, container_name, kind, runtime, image_ref, created_at, last_seen_at, status, exit_code, \
         task_id, job_id, labels_json FROM container_inventory "
    };
}

/// SQL for each kind of filter; an empty argument matches all rows. Queries for one job use a statement of their own,
/// because a job has few rows.
const ALL: &str = concat!(
    columns!(),
    "WHERE number < $1 AND ($2 = '' OR kind = $2) AND ($3 = '' OR status = $3) ORDER BY number DESC LIMIT $4"
);
const OF_TASK: &str = concat!(
    columns!(),
    "WHERE number < $1 AND ($2 = '' OR kind = $2) AND ($3 = '' OR status = $3) AND task_id = $5 ORDER BY number DESC LIMIT $4"
);
const OF_JOB: &str = concat!(
    columns!(),
    "WHERE number < $1 AND ($2 = '' OR kind = $2) AND ($3 = '' OR status = $3) AND ($5 = '' OR task_id = $5) AND job_id = $6 \
     ORDER BY number DESC LIMIT $4"
);
const ONE: &str = concat!(columns!(), "WHERE container_id = $1");

const LOGS: &str = "SELECT log_id, occurred_at, source_name, level, message, fields_json FROM log_event \
    WHERE source_kind = 'service' AND source_name = $1 AND log_id > $2 AND occurred_at >= $3 AND occurred_at < $4 \
    ORDER BY log_id LIMIT $5";

/// Bounds before and after every stored time.
const FIRST: &str = "";
const LAST: &str = "~";

fn container(row: &Row) -> Result<Container, DatabaseError> {
    let labels = serde_json::from_str(&row.text("labels_json")?).map_err(|error| unreadable(error.into()))?;
    let exit_code = row.optional_integer("exit_code")?.and_then(|code| i32::try_from(code).ok());
    Ok(Container {
        container_id: row.text("container_id")?,
        container_name: row.text("container_name")?,
        kind: named(&row.text("kind")?, ContainerKind::from_name)?,
        runtime: row.text("runtime")?,
        image_ref: row.text("image_ref")?,
        created_at: time(&row.text("created_at")?)?,
        last_seen_at: time(&row.text("last_seen_at")?)?,
        status: named(&row.text("status")?, ContainerStatus::from_name)?,
        exit_code,
        task_id: row
            .optional_text("task_id")?
            .map(|id| TaskId::parse(&id))
            .transpose()
            .map_err(|error| unreadable(error.into()))?,
        job_id: row
            .optional_text("job_id")?
            .map(|id| JobId::parse(&id))
            .transpose()
            .map_err(|error| unreadable(error.into()))?,
        labels,
    })
}

fn log_event(row: &Row) -> Result<(u64, LogEvent), DatabaseError> {
    let fields = serde_json::from_str(&row.text("fields_json")?).map_err(|error| unreadable(error.into()))?;
    let event = LogEvent {
        occurred_at: time(&row.text("occurred_at")?)?,
        source_kind: SourceKind::Service,
        source_name: row.text("source_name")?,
        container_id: None,
        stream: None,
        level: row.optional_text("level")?,
        message: row.text("message")?,
        fields,
    };
    Ok((row.count("log_id")?, event))
}

fn time(text: &str) -> Result<Timestamp, DatabaseError> {
    text.parse().map_err(|error: jiff::Error| unreadable(error.into()))
}

fn named<T>(text: &str, of_name: impl Fn(&str) -> Option<T>) -> Result<T, DatabaseError> {
    let odd = || unreadable(Box::<dyn Error + Send + Sync>::from(format!("{text:?} is not known")));
    of_name(text).ok_or_else(odd)
}

// === impl Telemetry ===

impl Telemetry {
    /// Returns a page of sandboxes, the last created first, and the value of [`ContainerFilter::before`] for the next
    /// page.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn containers(
        &self,
        filter: &ContainerFilter,
        most: u32,
    ) -> Result<(Vec<Container>, Option<u64>), DatabaseError> {
        let before = filter.before.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
        let kind = filter.kind.map_or("", ContainerKind::as_str);
        let status = filter.status.map_or("", ContainerStatus::as_str);
        let (task, job) = (filter.task_id.as_ref().map(TaskId::key), filter.job_id.as_ref().map(JobId::key));
        let most_and_one = most.saturating_add(1);
        let rows = match (task, job) {
            (task, Some(job)) => {
                let values = values![before, kind, status, most_and_one, task.unwrap_or_default(), job];
                self.database.fetch(OF_JOB, values).await?
            }
            (Some(task), None) => {
                self.database.fetch(OF_TASK, values![before, kind, status, most_and_one, task]).await?
            }
            (None, None) => self.database.fetch(ALL, values![before, kind, status, most_and_one]).await?,
        };
        let shown = &rows[..rows.len().min(most as usize)];
        let next =
            shown.last().filter(|_| rows.len() > shown.len()).map(|row| row.count("number")).transpose()?;
        Ok((shown.iter().map(container).collect::<Result<_, _>>()?, next))
    }

    /// Returns a sandbox.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn container(&self, container_id: &str) -> Result<Option<Container>, DatabaseError> {
        let rows = self.database.fetch(ONE, values![container_id]).await?;
        rows.first().map(container).transpose()
    }

    /// Returns log events of a service with their numbers, up to a maximum number.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn logs(&self, filter: &LogFilter, most: u32) -> Result<Vec<(u64, LogEvent)>, DatabaseError> {
        let LogFilter { service, since, until, after } = filter;
        let since = since.map_or_else(|| FIRST.to_owned(), text);
        let until = until.map_or_else(|| LAST.to_owned(), text);
        let rows = self.database.fetch(LOGS, values![service.as_str(), *after, since, until, most]).await?;
        rows.iter().map(log_event).collect()
    }
}
