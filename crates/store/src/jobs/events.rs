//! What happens to jobs, in the order in which it did.

use super::Jobs;
use super::draft::Draft;
use super::error::ChangeError;
use crate::database::{DatabaseError, Row, unreadable, values};
use belljar_contract::id::{JobId, RunId};
use belljar_contract::worker::event::{Happening, JobEvent};
use belljar_policy::lifecycle::{Change, Fence, Input, Refused};
use jiff::Timestamp;

/// What the owner of a job tells of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Told {
    /// That the runner works on it. To say so once more changes nothing.
    pub started: Option<Started>,
    /// What has happened since, in that order.
    pub happenings: Vec<(Timestamp, Happening)>,
}

/// The runner works on a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// In which run.
    pub run_id: RunId,
    /// Since when.
    pub at: Timestamp,
    /// When it will be ended, if it goes on for so long.
    pub deadline: Timestamp,
}

const AFTER: &str = "SELECT id, at_ms, event FROM job_events \
    WHERE job = (SELECT number FROM jobs WHERE job_key = $1) AND id > $2 ORDER BY id LIMIT $3";

const PRINTED_AFTER: &str = "SELECT id, at_ms, event FROM job_events \
    WHERE job = (SELECT number FROM jobs WHERE job_key = $1) AND kind = 'log' AND id > $2 ORDER BY id LIMIT $3";

const STATES_AFTER: &str = "SELECT id, at_ms, event FROM job_events \
    WHERE job = (SELECT number FROM jobs WHERE job_key = $1) AND kind = 'status' AND id > $2 ORDER BY id";

fn read(row: &Row) -> Result<JobEvent, DatabaseError> {
    let happening = serde_json::from_str(&row.text("event")?).map_err(|error| unreadable(error.into()))?;
    Ok(JobEvent { id: row.count("id")?, at: row.time("at_ms")?, happening })
}

// === impl Jobs ===

impl Jobs {
    /// Records what the owner of a job tells of it.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such job, or it isn't theirs any more.
    pub async fn tell(&self, job_id: &JobId, fence: Fence, told: Told) -> Result<(), ChangeError> {
        let (jobs, job_id) = (self.clone(), job_id.clone());
        self.to_the_end(async move {
            let mut draft = Draft::of(&jobs.database, &job_id).await?;
            told.record(&mut draft, fence)?;
            draft.write("tell").await?;
            Ok(())
        })
        .await
    }

    /// A job's events after the one with that id, at most so many.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn events_after(
        &self,
        job_id: &JobId,
        id: u64,
        most: u32,
    ) -> Result<Vec<JobEvent>, DatabaseError> {
        let rows = self.database.fetch(AFTER, values![job_id.key(), id, most]).await?;
        rows.iter().map(read).collect()
    }

    /// The same of those alone that tell of what a job has printed.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn printed_after(
        &self,
        job_id: &JobId,
        id: u64,
        most: u32,
    ) -> Result<Vec<JobEvent>, DatabaseError> {
        let rows = self.database.fetch(PRINTED_AFTER, values![job_id.key(), id, most]).await?;
        rows.iter().map(read).collect()
    }

    /// The same of those alone that tell of a job's state.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn states_after(&self, job_id: &JobId, id: u64) -> Result<Vec<JobEvent>, DatabaseError> {
        let rows = self.database.fetch(STATES_AFTER, values![job_id.key(), id]).await?;
        rows.iter().map(read).collect()
    }
}

// === impl Told ===

impl Told {
    /// Has it happen.
    pub(super) fn record(self, draft: &mut Draft, fence: Fence) -> Result<(), ChangeError> {
        if let Some(Started { run_id, at, deadline }) = self.started
            && draft.job.life.apply(Input::Start(fence))? == Change::Changed
        {
            let job = &mut draft.job;
            (job.run_id, job.started_at, job.deadline) = (Some(run_id), Some(at), Some(deadline));
            draft.add_status(at, None)?;
        }
        if draft.job.life.fence != fence || !draft.job.life.is_owned {
            return Err(Refused::Fenced.into());
        }
        for (at, happening) in &self.happenings {
            if let Happening::Extension { granted: true, deadline, .. } = happening {
                draft.job.deadline = Some(*deadline);
            }
            draft.add(*at, happening)?;
        }
        Ok(())
    }
}
