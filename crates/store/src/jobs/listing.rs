//! Looking at jobs.

use super::Jobs;
use super::record::{JobRecord, columns};
use crate::database::{DatabaseError, values};
use belljar_contract::id::{JobId, TaskId};
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::job::JobOutcome;
use belljar_contract::worker::state::JobState;

/// Which jobs.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Those of a task.
    pub task_id: Option<TaskId>,
    /// Those in a state.
    pub state: Option<JobState>,
    /// Those accepted before the one with that number.
    pub before: Option<u64>,
}

/// Some jobs, the last accepted first.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<JobRecord>,
    /// What [`Filter::before`] is for the next ones; nothing if there are none.
    pub next: Option<u64>,
}

/// One statement for each kind of filter, so that each uses the index that is made for it.
macro_rules! page {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM jobs WHERE number < $1",
            $condition,
            " ORDER BY number DESC LIMIT $2"
        )
    };
}

const ALL: &str = page!("");
const OF_TASK: &str = page!(" AND task_id = $3");
const IN_STATE: &str = page!(" AND state = $3");
const OF_TASK_IN_STATE: &str = page!(" AND task_id = $3 AND state = $4");

// === impl Jobs ===

impl Jobs {
    /// A job.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn find(&self, job_id: &JobId) -> Result<Option<JobRecord>, DatabaseError> {
        JobRecord::find(&self.database, job_id).await
    }

    /// What a job was asked to do, and what came of it.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn documents(
        &self,
        job: &JobRecord,
    ) -> Result<(Assignment, Option<JobOutcome>), DatabaseError> {
        job.documents(&self.database).await
    }

    /// Some jobs, at most so many.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn page(&self, filter: &Filter, most: u32) -> Result<Page, DatabaseError> {
        let before = filter.before.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
        // One more tells whether there are more.
        let most_and_one = most.saturating_add(1);
        let (task, state) = (filter.task_id.as_ref().map(TaskId::as_str), filter.state.map(JobState::as_str));
        let rows = match (task, state) {
            (None, None) => self.database.fetch(ALL, values![before, most_and_one]).await?,
            (Some(task), None) => self.database.fetch(OF_TASK, values![before, most_and_one, task]).await?,
            (None, Some(state)) => {
                self.database.fetch(IN_STATE, values![before, most_and_one, state]).await?
            }
            (Some(task), Some(state)) => {
                self.database.fetch(OF_TASK_IN_STATE, values![before, most_and_one, task, state]).await?
            }
        };
        let mut jobs = rows.iter().map(JobRecord::read).collect::<Result<Vec<_>, _>>()?;
        let has_more = jobs.len() > most as usize;
        jobs.truncate(most as usize);
        let next = jobs.last().filter(|_| has_more).map(|job| job.number);
        Ok(Page { jobs, next })
    }
}
