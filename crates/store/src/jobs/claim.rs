//! Claiming jobs: each has one owner at a time.

use super::draft::JobDraft;
use super::error::ClaimError;
use super::instances::{BEAT, Instance};
use super::record::{JobRecord, assignment, columns};
use super::{Jobs, ending};
use crate::database::{Sql, Value, unreadable, values};
use belljar_contract::worker::assignment::Assignment;
use belljar_policy::lifecycle::{Fence, LifecycleEvent};
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A claimed job.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedJob {
    /// The job.
    pub job: JobRecord,
    /// Assignment to carry out.
    pub assignment: Assignment,
}

/// Decides which of the waiting jobs an instance takes, where instances that share a database can't all run the same jobs.
pub trait JobFilter: Send + Sync {
    /// Returns true if this instance can run the job.
    fn runs(&self, assignment: &Assignment) -> bool;

    /// Returns true if this instance takes a job that it can't run, to end it with the reason: no other instance can run it either.
    fn gives_up(&self, job: &JobRecord, assignment: &Assignment, others: &[Instance]) -> bool;
}

/// Result of trying to take one row.
enum ClaimResult {
    Job(Box<ClaimedJob>),
    /// No such row waits, or another instance is taking it.
    None,
    /// The job waits, and this instance can't run it.
    Unfit,
}

/// Number of waiting jobs that are read at once to look for one that fits.
const LOOKED_AT: i64 = 32;

/// Selects waiting jobs after that turn and number, in their order, without locking.
const WAITING_BEHIND: Sql = Sql::of_each(
    concat!(
        "SELECT assignment, ",
        columns!(),
        " FROM jobs INDEXED BY jobs_waiting WHERE state = 'accepted' AND owner IS NULL AND (turn, number) > ($1, $2) \
         ORDER BY turn, number LIMIT $3"
    ),
    concat!(
        "SELECT assignment, ",
        columns!(),
        " FROM jobs WHERE state = 'accepted' AND owner IS NULL AND (turn, number) > ($1, $2) \
         ORDER BY turn, number LIMIT $3"
    ),
);

/// Selects the given job if it still waits.
const THIS: Sql = Sql::of_each(
    concat!(
        "SELECT assignment, ",
        columns!(),
        " FROM jobs WHERE number = $1 AND state = 'accepted' AND owner IS NULL"
    ),
    concat!(
        "SELECT assignment, ",
        columns!(),
        " FROM jobs WHERE number = $1 AND state = 'accepted' AND owner IS NULL FOR UPDATE SKIP LOCKED"
    ),
);

/// Selects the next job. A concurrent claimer gets the one after it. SQLite would sort all waiting jobs.
const NEXT: Sql = Sql::of_each(
    concat!(
        "SELECT assignment, ",
        columns!(),
        " FROM jobs INDEXED BY jobs_waiting WHERE state = 'accepted' AND owner IS NULL ORDER BY turn, number LIMIT 1"
    ),
    concat!(
        "SELECT assignment, ",
        columns!(),
        " FROM jobs WHERE state = 'accepted' AND owner IS NULL ORDER BY turn, number LIMIT 1 FOR UPDATE SKIP LOCKED"
    ),
);

/// Stores the present turn, unless a later one is stored already. A task whose last turn is past needs no row: its next
/// turn is the one after the present turn.
const TURN_IS_ON: &str = "INSERT INTO turns (task_id, turn) VALUES ('', $1) ON CONFLICT (task_id) DO UPDATE SET turn = \
    CASE WHEN turns.turn >= excluded.turn THEN turns.turn ELSE excluded.turn END";
const FORGET_PAST: &str = "DELETE FROM turns WHERE task_id <> '' AND turn < $1";

// === impl ClaimedJob ===

impl ClaimedJob {
    /// Returns the fencing token of the claim.
    pub fn fence(&self) -> Fence {
        self.job.life.fence
    }
}

// === impl Jobs ===

impl Jobs {
    /// Claims the next job in turn for that instance. A job that can't be read is ended.
    ///
    /// # Errors
    /// [`ClaimError`]; nothing was claimed, unless that is in doubt: [`Jobs::owned_by`] returns the jobs of an
    /// instance.
    pub async fn claim(&self, instance: &str, now: Timestamp) -> Result<Option<ClaimedJob>, ClaimError> {
        let (jobs, instance) = (self.clone(), instance.to_owned());
        self.to_the_end(async move {
            match jobs.take(&instance, (NEXT, values![]), None, now).await? {
                ClaimResult::Job(claimed) => Ok(Some(*claimed)),
                ClaimResult::None | ClaimResult::Unfit => Ok(None),
            }
        })
        .await
    }

    /// Takes the first job in turn that fits that instance. Jobs that don't fit keep waiting for other instances.
    ///
    /// # Errors
    /// As [`Jobs::claim`].
    pub async fn claim_fitting(
        &self,
        instance: &str,
        fits: Arc<dyn JobFilter>,
        now: Timestamp,
    ) -> Result<Option<ClaimedJob>, ClaimError> {
        let (jobs, instance) = (self.clone(), instance.to_owned());
        self.to_the_end(async move {
            // A job that doesn't fit is locked only while that is checked, and only once.
            if !jobs.passes_over.load(Ordering::Relaxed) {
                match jobs.take(&instance, (NEXT, values![]), Some(&*fits), now).await? {
                    ClaimResult::Job(claimed) => return Ok(Some(*claimed)),
                    ClaimResult::None => return Ok(None),
                    ClaimResult::Unfit => {}
                }
            }
            jobs.take_first_fitting(&instance, &*fits, now).await
        })
        .await
    }

    async fn take_first_fitting(
        &self,
        instance: &str,
        fits: &dyn JobFilter,
        now: Timestamp,
    ) -> Result<Option<ClaimedJob>, ClaimError> {
        let mut others = self.instances().await?;
        others.retain(|other| other.id != instance);
        let (mut behind, mut passes_over) = ((i64::MIN, 0), false);
        loop {
            let after = values![behind.0, behind.1, LOOKED_AT];
            let waiting = self.database.fetch(WAITING_BEHIND, after).await?;
            if waiting.is_empty() {
                self.passes_over.store(passes_over, Ordering::Relaxed);
                return Ok(None);
            }
            for row in &waiting {
                let job = JobRecord::read(row)?;
                behind = (job.turn, job.number);
                let is_taken = match assignment(&row.text("assignment")?) {
                    Ok(assignment) => fits.runs(&assignment) || fits.gives_up(&job, &assignment, &others),
                    // A job that can't be read is ended by any instance that finds it.
                    Err(_) => true,
                };
                passes_over |= !is_taken;
                if is_taken
                    && let ClaimResult::Job(claimed) =
                        self.take(instance, (THIS, values![job.number]), None, now).await?
                {
                    self.passes_over.store(passes_over, Ordering::Relaxed);
                    return Ok(Some(*claimed));
                }
            }
        }
    }

    async fn take(
        &self,
        instance: &str,
        (which, arguments): (Sql, Vec<Value>),
        fits: Option<&dyn JobFilter>,
        now: Timestamp,
    ) -> Result<ClaimResult, ClaimError> {
        let mut transaction = self.database.begin().await?;
        if transaction.execute(BEAT, values![instance]).await? == 0 {
            return Err(ClaimError::GivenUp { instance: instance.to_owned() });
        }
        let Some(row) = transaction.fetch(which, arguments).await?.into_iter().next() else {
            return Ok(ClaimResult::None);
        };
        let assignment = assignment(&row.text("assignment")?);
        if let (Some(fits), Ok(assignment)) = (fits, &assignment)
            && !fits.runs(assignment)
        {
            return Ok(ClaimResult::Unfit);
        }
        let mut draft = JobDraft::within(transaction, JobRecord::read(&row)?);
        draft.job.life.apply(LifecycleEvent::Claim).map_err(|refused| unreadable(refused.into()))?;
        draft.job.owner = Some(instance.to_owned());
        let turn = draft.job.turn;
        draft.also(TURN_IS_ON, values![turn]).await?;
        draft.also(FORGET_PAST, values![turn]).await?;
        if let Err(error) = &assignment {
            // Ending it lets the jobs behind it be claimed.
            ending::refuse(&mut draft, &error.source.to_string(), now)?;
        }
        let job = draft.write("claim").await?;
        Ok(ClaimResult::Job(Box::new(ClaimedJob { job, assignment: assignment? })))
    }
}
