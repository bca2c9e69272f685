//! Taking jobs, to carry them out: each by one owner at a time.

use super::draft::Draft;
use super::error::ClaimError;
use super::instances::BEAT;
use super::record::{JobRecord, assignment, columns};
use super::{Jobs, ending};
use crate::database::{Sql, unreadable, values};
use belljar_contract::worker::assignment::Assignment;
use belljar_policy::lifecycle::{Fence, Input};
use jiff::Timestamp;

/// A job that is somebody's to carry out.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// The job.
    pub job: JobRecord,
    /// What is to be done.
    pub assignment: Assignment,
}

/// Whoever comes at the same time gets the next one. SQLite would sort all that wait.
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

/// The turn that is on is this one, unless it was past already. A task whose last turn is past needs no row: its next is the one
/// after that which is on.
const TURN_IS_ON: &str = "INSERT INTO turns (task_id, turn) VALUES ('', $1) ON CONFLICT (task_id) DO UPDATE SET turn = \
    CASE WHEN turns.turn >= excluded.turn THEN turns.turn ELSE excluded.turn END";
const FORGET_PAST: &str = "DELETE FROM turns WHERE task_id <> '' AND turn < $1";

// === impl Claimed ===

impl Claimed {
    /// The number of the claim.
    pub fn fence(&self) -> Fence {
        self.job.life.fence
    }
}

// === impl Jobs ===

impl Jobs {
    /// Takes the job whose turn it is, for that instance. One that can't be read is over with that.
    ///
    /// # Errors
    /// [`ClaimError`]; nothing was taken, unless that is in doubt: what an instance has is told by [`Jobs::owned_by`].
    pub async fn claim(&self, instance: &str, now: Timestamp) -> Result<Option<Claimed>, ClaimError> {
        let (jobs, instance) = (self.clone(), instance.to_owned());
        self.to_the_end(async move {
            let mut transaction = jobs.database.begin().await?;
            if transaction.execute(BEAT, values![instance.clone()]).await? == 0 {
                return Err(ClaimError::GivenUp { instance });
            }
            let Some(row) = transaction.fetch(NEXT, values![]).await?.into_iter().next() else {
                return Ok(None);
            };
            let mut draft = Draft::within(transaction, JobRecord::read(&row)?);
            draft.job.life.apply(Input::Claim).map_err(|refused| unreadable(refused.into()))?;
            draft.job.owner = Some(instance);
            let turn = draft.job.turn;
            draft.also(TURN_IS_ON, values![turn]).await?;
            draft.also(FORGET_PAST, values![turn]).await?;
            let assignment = assignment(&row.text("assignment")?);
            if let Err(error) = &assignment {
                // Others wait behind it.
                ending::refuse(&mut draft, &error.source.to_string(), now)?;
            }
            let job = draft.write("claim").await?;
            Ok(Some(Claimed { job, assignment: assignment? }))
        })
        .await
    }
}
