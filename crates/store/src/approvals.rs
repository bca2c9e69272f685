//! Approvals: what people are asked about calls, in a database; each change is recorded before it holds.
//!
//! ```text
//! ask ───────► open already? ─► the same question
//!                 └─► recorded ─► pending
//! decide ────► locked, pending, in time ─► recorded ─► approved, denied
//! begin_use ─► locked, approved, in time ─► recorded ─► used, on the disk ─► the call
//! ```
//! Each is one transaction, in which the record is made while nobody else can change the row: a record without its change is
//! what a crash left between the two, and there is no change without a record. When a question expires is kept with it; whether it has
//! is decided by the time that is passed in, and one that was found expired stays so.

mod error;
mod row;

pub use error::ApprovalError;

use crate::audit::{AuditError, AuditLog, Event};
use crate::database::{Database, DatabaseError, Sql, Transaction, to_the_end, unreadable, values};
use crate::digest::sha256;
use crate::page::{Page, Size};
use belljar_contract::action::{ActionType, Risk};
use belljar_contract::approval::{
    APPROVAL_ASKED, APPROVAL_DECIDED, APPROVAL_USED, Approval, ApprovalStatus, CallScope,
    LARGEST_ARGUMENTS_BYTES, Ruling, is_reason,
};
use belljar_contract::id::{AgentId, ApprovalId, UserId};
use belljar_contract::tool::{ToolName, ToolSubject};
use jiff::{SignedDuration, Timestamp};
use row::{columns, listed, open_bytes};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

/// The approvals of a database, and the audit that they are recorded in. Clones share both.
#[derive(Debug, Clone)]
pub struct Approvals {
    database: Database,
    audit: Arc<AuditLog>,
}

/// What a person is to be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Its id, if it isn't open already under another one.
    pub id: ApprovalId,
    /// The decision that it is about.
    pub decision_id: Uuid,
    /// Why a person is asked.
    pub reason: String,
    /// The arguments, whole. Their compact JSON has the digest that the call has.
    pub arguments: Value,
    /// What is done by the call.
    pub action: ActionType,
    /// How much may go wrong by that.
    pub risk: Risk,
    /// The call.
    pub call: CallKey,
}

/// A call, as one is told from another. Which attempt of a job makes it is no matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallKey {
    /// The agent, if it has a name.
    pub agent_id: Option<AgentId>,
    /// Who calls.
    pub subject: ToolSubject,
    /// Which tool.
    pub tool: ToolName,
    /// The SHA-256 of the arguments, in lower-case hexadecimal.
    pub arguments_sha256: String,
    /// What it acts on besides its arguments.
    pub scope: CallScope,
}

/// Somebody's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Yes or no.
    pub ruling: Ruling,
    /// Whose.
    pub by: UserId,
    /// Why; a no has a reason.
    pub reason: Option<String>,
    /// The digest of the arguments that were reviewed, if it is named.
    pub arguments_sha256: Option<String>,
}

/// Maximum length of the arguments of all open questions of an agent, in bytes. Questions of agents without a name share it.
pub const MOST_OPEN_BYTES: u64 = 16 << 20;

/// As many are removed at once.
const MOST: u32 = 500;

const EXPIRE: &str = "UPDATE approvals SET status = 'expired' \
    WHERE call_key = $1 AND status IN ('pending', 'approved') AND expires_at_ms <= $2";

const EXPIRE_ONE: &str = "UPDATE approvals SET status = 'expired' WHERE id = $1";

const OPEN: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM approvals WHERE call_key = $2 AND status IN ('pending', 'approved')"
);

const OPEN_LOCKED: Sql = Sql::of_each(
    OPEN,
    concat!(
        "SELECT ",
        columns!(),
        " FROM approvals WHERE call_key = $2 AND status IN ('pending', 'approved') FOR UPDATE"
    ),
);

const ADD: &str = "INSERT INTO approvals (id, call_key, decision_id, agent_id, subject, tool, action_type, risk, \
    arguments_sha256, arguments, reason, status, created_at_ms, expires_at_ms) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'pending', $12, $13)";

const ADD_SCOPE: &str = "INSERT INTO approval_scopes (approval_id, scope) VALUES ($1, $2)";

const FIND: &str = concat!("SELECT ", columns!(), " FROM approvals WHERE id = $2");

const FIND_LOCKED: Sql =
    Sql::of_each(FIND, concat!("SELECT ", columns!(), " FROM approvals WHERE id = $2 FOR UPDATE"));

const DECIDE: &str = "UPDATE approvals SET status = $2, decided_at_ms = $3, decided_by = $4, decision_reason = $5 \
    WHERE id = $1 AND status = 'pending'";

const USE: &str =
    "UPDATE approvals SET status = 'used', used_at_ms = $2 WHERE id = $1 AND status = 'approved'";

/// Only previews of long arguments: a page stays small, however long they are.
const LIST: Sql = Sql::of_each(
    listed!("length(CAST(arguments AS BLOB))"),
    listed!("CAST(octet_length(arguments) AS BIGINT)"),
);

const OPEN_BYTES: Sql =
    Sql::of_each(open_bytes!("length(CAST(arguments AS BLOB))"), open_bytes!("octet_length(arguments)"));

/// Nobody waits for what has expired, whoever has found that.
const PURGE: &str = "DELETE FROM approvals WHERE number IN (SELECT number FROM approvals \
    WHERE coalesce(used_at_ms, decided_at_ms, expires_at_ms, created_at_ms) < $1 AND (\
    status IN ('denied', 'expired', 'used') OR expires_at_ms < $1) LIMIT $2)";

// === impl Approvals ===

impl Approvals {
    /// Those of a database, recorded there.
    pub fn new(database: Database, audit: Arc<AuditLog>) -> Self {
        Self { database, audit }
    }

    /// Asks, unless that is asked already, or answered with a yes that nobody has used: the question that is open.
    ///
    /// # Errors
    /// [`ApprovalError`]; nobody is asked then, unless the database says that it is in doubt.
    pub async fn ask(
        &self,
        question: Question,
        now: Timestamp,
        within: Option<Duration>,
    ) -> Result<Approval, ApprovalError> {
        let this = self.clone();
        to_the_end(async move {
            let key = question.call.key();
            let mut transaction = this.database.begin().await?;
            transaction.alone(&format!("approvals {key}")).await?;
            transaction.execute(EXPIRE, values![key.as_str(), now]).await?;
            if let Some(open) = row::first(&transaction.fetch(OPEN, values![now, key.as_str()]).await?)? {
                transaction.commit("approval_ask").await?;
                return Ok(open);
            }
            question.check()?;
            let agent = question.call.agent_id.as_ref().map_or("", |agent| agent.as_str());
            let waiting = transaction.fetch(OPEN_BYTES, values![agent]).await?;
            let waiting = waiting.first().map(|row| row.count("open_bytes")).transpose()?.unwrap_or_default();
            if waiting.saturating_add(question.length()) > MOST_OPEN_BYTES {
                return Err(ApprovalError::Full { bytes: waiting });
            }
            let expires_at = within.map(|within| later(now, within));
            let id = question.id.clone();
            this.record(APPROVAL_ASKED, &question.recorded(expires_at)).await?;
            let scope = question.call.scope.clone();
            transaction.execute(ADD, question.values(key, now, expires_at)).await?;
            if !scope.is_empty() {
                transaction.execute(ADD_SCOPE, values![id.key(), json!(scope).to_string()]).await?;
            }
            let asked = found(&mut transaction, &id, now).await?;
            transaction.commit("approval_ask").await?;
            Ok(asked)
        })
        .await
    }

    /// Answers a question. The same answer again changes nothing.
    ///
    /// # Errors
    /// [`ApprovalError`]; nothing is answered then, unless the database says that it is in doubt.
    pub async fn decide(
        &self,
        id: &ApprovalId,
        answer: Answer,
        now: Timestamp,
    ) -> Result<Approval, ApprovalError> {
        answer.check()?;
        let (this, id) = (self.clone(), id.clone());
        to_the_end(async move {
            let mut transaction = this.database.begin().await?;
            let open = found_locked(&mut transaction, &id, now).await?;
            answer.is_about(&open)?;
            if open.is_answered_so(answer.ruling) {
                return Ok(open);
            }
            match open.status {
                ApprovalStatus::Pending => {}
                ApprovalStatus::Expired => {
                    // It stays so, whatever the next clock says.
                    transaction.execute(EXPIRE_ONE, values![id.key()]).await?;
                    transaction.commit("approval_expire").await?;
                    return Err(ApprovalError::Expired { id });
                }
                status => return Err(ApprovalError::Decided { id, status }),
            }
            this.record(APPROVAL_DECIDED, &answer.recorded(&open)).await?;
            let status = answer.ruling.status().as_str();
            let values = values![id.key(), status, now, answer.by.as_str(), answer.reason];
            transaction.execute(DECIDE, values).await?;
            let decided = found(&mut transaction, &id, now).await?;
            transaction.commit("approval_decide").await?;
            Ok(decided)
        })
        .await
    }

    /// Uses up a yes to exactly that call, if there is one: on the disk before this is back. Nobody else gets it, nor does whoever
    /// comes after a crash.
    ///
    /// # Errors
    /// [`ApprovalError`]; the call may not be made then.
    pub async fn begin_use(
        &self,
        call: &CallKey,
        now: Timestamp,
    ) -> Result<Option<ApprovalId>, ApprovalError> {
        let (this, key) = (self.clone(), call.key());
        to_the_end(async move {
            let seen = this.database.fetch(OPEN, values![now, key.as_str()]).await?;
            let is_good = |approval: &Approval| approval.status == ApprovalStatus::Approved;
            if row::first(&seen)?.filter(is_good).is_none() {
                return Ok(None);
            }
            let mut transaction = this.database.begin().await?;
            let open = transaction.fetch(OPEN_LOCKED, values![now, key.as_str()]).await?;
            let Some(open) = row::first(&open)?.filter(is_good) else { return Ok(None) };
            if !row::is_whole(&open) {
                return Err(ApprovalError::NotWhole { id: open.id });
            }
            this.record(APPROVAL_USED, &json!({ "approval_id": open.id, "tool": open.tool })).await?;
            if transaction.execute(USE, values![open.id.key(), now]).await? != 1 {
                return Ok(None);
            }
            transaction.commit("approval_use").await?;
            Ok(Some(open.id))
        })
        .await
    }

    /// An approval, as it is at that time.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn find(&self, id: &ApprovalId, now: Timestamp) -> Result<Option<Approval>, DatabaseError> {
        row::first(&self.database.fetch(FIND, values![now, id.key()]).await?)
    }

    /// Approvals of which that has become at that time, or all; those behind that place, the last asked first. Of long arguments they
    /// have a preview; [`Self::find`] gives the whole.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn list(
        &self,
        status: Option<ApprovalStatus>,
        (before, most): (Option<u64>, u32),
        now: Timestamp,
    ) -> Result<Page<Approval, u64>, DatabaseError> {
        let size = Size::of(most);
        let status = status.map_or("", ApprovalStatus::as_str);
        let before = before.unwrap_or(u64::MAX);
        let rows = self.database.fetch(LIST, values![now, before, status, size.to_fetch]).await?;
        let entries = rows.iter().map(row::numbered).collect::<Result<Vec<_>, _>>()?;
        let Page { entries, next } = Page::cut(entries, size, |(number, _)| *number);
        Ok(Page { entries: entries.into_iter().map(|(_, approval)| approval).collect(), next })
    }

    /// Removes some that were over before then; how many. None when there are no more.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be removed.
    pub async fn purge(&self, over_before: Timestamp) -> Result<u64, DatabaseError> {
        let database = self.database.clone();
        let values = values![over_before, MOST];
        to_the_end(async move { database.write("approvals_purge", PURGE, values).await }).await
    }

    /// When this is back, it stands in the audit.
    async fn record(&self, kind: &'static str, event: &impl Serialize) -> Result<(), ApprovalError> {
        let event = Event::new(kind, None, event)?;
        let (done, outcome) = oneshot::channel();
        self.audit.submit_urgent(event, move |result| drop(done.send(result)));
        outcome.await.unwrap_or(Err(AuditError::Closed))?;
        Ok(())
    }
}

async fn found(
    transaction: &mut Transaction,
    id: &ApprovalId,
    now: Timestamp,
) -> Result<Approval, DatabaseError> {
    let found = row::first(&transaction.fetch(FIND, values![now, id.key()]).await?)?;
    found.ok_or_else(|| unreadable("what was written is not there".into()))
}

/// Nobody else changes it until the transaction is over.
async fn found_locked(
    transaction: &mut Transaction,
    id: &ApprovalId,
    now: Timestamp,
) -> Result<Approval, ApprovalError> {
    let found = row::first(&transaction.fetch(FIND_LOCKED, values![now, id.key()]).await?)?;
    found.ok_or_else(|| ApprovalError::Unknown { id: id.clone() })
}

fn later(now: Timestamp, within: Duration) -> Timestamp {
    let within = SignedDuration::try_from(within).unwrap_or(SignedDuration::MAX);
    now.checked_add(within).unwrap_or(Timestamp::MAX)
}

// === impl Question ===

impl Question {
    /// What is shown is what would be called, and there is no more of it than can be shown.
    fn check(&self) -> Result<(), ApprovalError> {
        let text = self.arguments.to_string();
        match text.len() {
            bytes if bytes > LARGEST_ARGUMENTS_BYTES => Err(ApprovalError::TooLarge { bytes }),
            _ if sha256(text.as_bytes()) != self.call.arguments_sha256 => {
                Err(ApprovalError::NotWhole { id: self.id.clone() })
            }
            _ => Ok(()),
        }
    }

    fn length(&self) -> u64 {
        self.arguments.to_string().len() as u64
    }

    fn recorded(&self, expires_at: Option<Timestamp>) -> Value {
        json!({
            "approval_id": self.id,
            "decision_id": self.decision_id,
            "agent_id": self.call.agent_id,
            "subject": self.call.subject,
            "tool": self.call.tool,
            "action_type": self.action,
            "risk": self.risk,
            "arguments_sha256": self.call.arguments_sha256,
            "scope": self.call.scope,
            "expires_at": expires_at,
        })
    }
}

// === impl CallKey ===

impl CallKey {
    fn key(&self) -> String {
        let Self { agent_id, subject, tool, arguments_sha256, scope } = self;
        let subject = ToolSubject { run_id: None, ..subject.clone() };
        let key = match scope.is_empty() {
            // As approvals were kept before there were scopes: an approval without one is used only by calls without one.
            true => json!([agent_id, subject, tool, arguments_sha256]),
            false => json!([agent_id, subject, tool, arguments_sha256, scope]),
        };
        sha256(key.to_string().as_bytes())
    }
}

// === impl Answer ===

impl Answer {
    fn check(&self) -> Result<(), ApprovalError> {
        let is_good = match (&self.reason, self.ruling) {
            (Some(reason), _) => is_reason(reason),
            (None, Ruling::Approve) => true,
            (None, Ruling::Deny) => false,
        };
        if is_good { Ok(()) } else { Err(ApprovalError::Reason) }
    }

    /// The answer is about the arguments that were reviewed; and a yes to something that can't have been seen whole is none.
    fn is_about(&self, open: &Approval) -> Result<(), ApprovalError> {
        let id = || open.id.clone();
        match &self.arguments_sha256 {
            Some(named) if *named != open.arguments_sha256 => Err(ApprovalError::OtherArguments {
                id: id(),
                named: named.clone(),
                sha256: open.arguments_sha256.clone(),
            }),
            _ if self.ruling == Ruling::Approve && !row::is_whole(open) => {
                Err(ApprovalError::NotWhole { id: id() })
            }
            _ => Ok(()),
        }
    }

    fn recorded(&self, open: &Approval) -> Value {
        json!({
            "approval_id": open.id,
            "decision": self.ruling.status(),
            "decided_by": self.by,
            "decision_reason": self.reason,
            "tool": open.tool,
            "arguments_sha256": open.arguments_sha256,
        })
    }
}
