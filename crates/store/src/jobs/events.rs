//! Events of jobs, in the order in which they occurred.

use super::Jobs;
use super::draft::JobDraft;
use super::error::ChangeError;
use crate::database::{DatabaseError, Row, unreadable, values};
use belljar_contract::id::{JobId, RunId};
use belljar_contract::worker::event::{JobEvent, JobEventKind};
use belljar_policy::lifecycle::{Fence, LifecycleChange, LifecycleEvent, LifecycleRefusal};
use jiff::Timestamp;

/// News about a job from its owner.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobNews {
    /// Start of the runner. Reporting the same start again changes nothing.
    pub started: Option<RunStart>,
    /// Events since the last report, in order.
    pub happenings: Vec<(Timestamp, JobEventKind)>,
}

/// Start of the runner on a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunStart {
    /// Run that was started.
    pub run_id: RunId,
    /// Time of the start.
    pub at: Timestamp,
    /// Time at which the job is ended if it still runs.
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
    /// Records the owner's news about a job.
    ///
    /// # Errors
    /// [`ChangeError`] when there is no such job, or it has another owner by now.
    pub async fn tell(&self, job_id: &JobId, fence: Fence, told: JobNews) -> Result<(), ChangeError> {
        let (jobs, job_id) = (self.clone(), job_id.clone());
        self.to_the_end(async move {
            let mut draft = JobDraft::of(&jobs.database, &job_id).await?;
            told.record(&mut draft, fence)?;
            draft.write("tell").await?;
            Ok(())
        })
        .await
    }

    /// Returns a job's events after the one with that id, up to a maximum number.
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

    /// Returns only the events that carry a job's output.
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

    /// Returns only the events that carry a job's state.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn states_after(&self, job_id: &JobId, id: u64) -> Result<Vec<JobEvent>, DatabaseError> {
        let rows = self.database.fetch(STATES_AFTER, values![job_id.key(), id]).await?;
        rows.iter().map(read).collect()
    }
}

// === impl JobNews ===

impl JobNews {
    /// Adds the news to the draft.
    pub(super) fn record(self, draft: &mut JobDraft, fence: Fence) -> Result<(), ChangeError> {
        if let Some(RunStart { run_id, at, deadline }) = self.started
            && draft.job.life.apply(LifecycleEvent::Start(fence))? == LifecycleChange::Changed
        {
            let job = &mut draft.job;
            (job.run_id, job.started_at, job.deadline) = (Some(run_id), Some(at), Some(deadline));
            draft.add_status(at, None)?;
        }
        if draft.job.life.fence != fence || !draft.job.life.is_owned {
            return Err(LifecycleRefusal::Fenced.into());
        }
        for (at, happening) in &self.happenings {
            if let JobEventKind::Extension { granted: true, deadline, .. } = happening {
                draft.job.deadline = Some(*deadline);
            }
            draft.add(*at, happening)?;
        }
        Ok(())
    }
}
