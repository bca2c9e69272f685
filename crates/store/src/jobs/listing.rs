//! Queries for jobs.

use super::Jobs;
use super::record::{JobRecord, columns};
use crate::database::{DatabaseError, values};
use belljar_contract::id::{JobId, ProjectId, TaskId};
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::job::JobOutcome;
use belljar_contract::worker::state::JobState;

/// Filter for jobs.
#[derive(Debug, Clone, Default)]
pub struct JobListFilter {
    /// Only jobs of this task.
    pub task_id: Option<TaskId>,
    /// Only jobs of this project.
    pub project_id: Option<ProjectId>,
    /// Only jobs in this state.
    pub state: Option<JobState>,
    /// Only jobs accepted before the one with this number.
    pub before: Option<u64>,
}

/// A page of jobs, the last accepted first.
#[derive(Debug, Clone, PartialEq)]
pub struct JobListPage {
    /// The jobs.
    pub jobs: Vec<JobRecord>,
    /// Value of [`JobListFilter::before`] for the next page; `None` on the last page.
    pub next: Option<u64>,
}

/// SQL for each kind of filter, so that each uses the index that is made for it.
macro_rules! page {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM jobs WHERE number < $1",
            $condition,
            " ORDER BY number DESC LIMIT $2 OFFSET $3"
        )
    };
}

/// SQL that counts the jobs of a filter.
macro_rules! count {
    ($condition:literal) => {
        concat!("SELECT count(*) AS jobs FROM jobs WHERE number < $1", $condition)
    };
}

const ALL: &str = page!("");
const OF_TASK: &str = page!(" AND lower(task_id) = $4");
const IN_STATE: &str = page!(" AND state = $4");
const OF_TASK_IN_STATE: &str = page!(" AND lower(task_id) = $4 AND state = $5");
const OF_PROJECT: &str = page!(
    " AND project_id = $4 AND lower(task_id) = coalesce($5, lower(task_id)) AND state = coalesce($6, state)"
);

const HOW_MANY: &str = count!("");
const HOW_MANY_OF_TASK: &str = count!(" AND lower(task_id) = $2");
const HOW_MANY_IN_STATE: &str = count!(" AND state = $2");
const HOW_MANY_OF_TASK_IN_STATE: &str = count!(" AND lower(task_id) = $2 AND state = $3");
const HOW_MANY_OF_PROJECT: &str = count!(
    " AND project_id = $2 AND lower(task_id) = coalesce($3, lower(task_id)) AND state = coalesce($4, state)"
);

// === impl JobListFilter ===

impl JobListFilter {
    /// Returns the arguments of the statements: upper bound of the number, project, task, state.
    fn values(&self) -> (i64, Option<String>, Option<String>, Option<&'static str>) {
        let before = self.before.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
        let project = self.project_id.as_ref().map(ToString::to_string);
        (before, project, self.task_id.as_ref().map(TaskId::key), self.state.map(JobState::as_str))
    }
}

// === impl Jobs ===

impl Jobs {
    /// Returns a job.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn find(&self, job_id: &JobId) -> Result<Option<JobRecord>, DatabaseError> {
        JobRecord::find(&self.database, job_id).await
    }

    /// Returns a job's assignment and outcome.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn documents(
        &self,
        job: &JobRecord,
    ) -> Result<(Assignment, Option<JobOutcome>), DatabaseError> {
        job.documents(&self.database).await
    }

    /// Returns a page of jobs.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn page(&self, filter: &JobListFilter, most: u32) -> Result<JobListPage, DatabaseError> {
        // One more row is fetched, which shows whether there are more.
        let mut jobs = self.slice(filter, 0, most.saturating_add(1)).await?;
        let has_more = jobs.len() > most as usize;
        jobs.truncate(most as usize);
        let next = jobs.last().filter(|_| has_more).map(|job| job.number);
        Ok(JobListPage { jobs, next })
    }

    /// Returns at most `most` jobs after the first `offset` ones, the last accepted first.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn slice(
        &self,
        filter: &JobListFilter,
        offset: u64,
        most: u32,
    ) -> Result<Vec<JobRecord>, DatabaseError> {
        let (before, project, task, state) = filter.values();
        let database = &self.database;
        let rows = match (task, state) {
            (task, state) if project.is_some() => {
                let of_project = values![before, most, offset, project, task, state.map(String::from)];
                database.fetch(OF_PROJECT, of_project).await?
            }
            (None, None) => database.fetch(ALL, values![before, most, offset]).await?,
            (Some(task), None) => database.fetch(OF_TASK, values![before, most, offset, task]).await?,
            (None, Some(state)) => database.fetch(IN_STATE, values![before, most, offset, state]).await?,
            (Some(task), Some(state)) => {
                database.fetch(OF_TASK_IN_STATE, values![before, most, offset, task, state]).await?
            }
        };
        rows.iter().map(JobRecord::read).collect()
    }

    /// Returns the number of jobs that match the filter.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be counted.
    pub async fn count(&self, filter: &JobListFilter) -> Result<u64, DatabaseError> {
        let (before, project, task, state) = filter.values();
        let database = &self.database;
        let rows = match (task, state) {
            (task, state) if project.is_some() => {
                database
                    .fetch(HOW_MANY_OF_PROJECT, values![before, project, task, state.map(String::from)])
                    .await?
            }
            (None, None) => database.fetch(HOW_MANY, values![before]).await?,
            (Some(task), None) => database.fetch(HOW_MANY_OF_TASK, values![before, task]).await?,
            (None, Some(state)) => database.fetch(HOW_MANY_IN_STATE, values![before, state]).await?,
            (Some(task), Some(state)) => {
                database.fetch(HOW_MANY_OF_TASK_IN_STATE, values![before, task, state]).await?
            }
        };
        rows.first().map_or(Ok(0), |row| row.count("jobs"))
    }
}
