//! Approvals: requests to people about tool calls, stored in a database. Each change is written to the audit log before
//! it takes effect.
//!
//! ```text
//! ask ───────► open already? ─► the same question
//!                 └─► recorded ─► pending
//! decide ────► locked, pending, in time ─► recorded ─► approved, denied
//! begin_use ─► locked, approved, in time ─► recorded ─► used, on the disk ─► the call
//! ```
//! Each operation is one transaction. It writes the audit record while it holds the row lock. A crash can leave a
//! record without its change, but never a change without its record. The expiry time is stored with the question and
//! compared with the time that the caller passes in. A question that was found expired stays expired.

mod error;
mod row;

pub use error::ApprovalError;

use crate::audit::{AuditError, AuditLog, Event};
use crate::database::{Database, DatabaseError, Sql, Transaction, to_the_end, unreadable, values};
use crate::digest::sha256;
use crate::page::{Page, PageSize};
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

/// The approvals of a database, and the audit log that records them. Clones share both.
#[derive(Debug, Clone)]
pub struct Approvals {
    database: Database,
    audit: Arc<AuditLog>,
}

/// A request for approval of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest {
    /// Id of a new question; if the call has an open question, that one's id stays.
    pub id: ApprovalId,
    /// Decision of the policy that requires the approval.
    pub decision_id: Uuid,
    /// Reason for asking a person.
    pub reason: String,
    /// All arguments. The digest of their compact JSON is the call's.
    pub arguments: Value,
    /// Type of action that the call performs.
    pub action: ActionType,
    /// Risk of the action.
    pub risk: Risk,
    /// The call.
    pub call: CallKey,
}

/// Identity of a call. The job's attempt that makes it doesn't matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallKey {
    /// The agent, if it has a name.
    pub agent_id: Option<AgentId>,
    /// Identity that makes the call.
    pub subject: ToolSubject,
    /// Tool that is called.
    pub tool: ToolName,
    /// The SHA-256 of the arguments, in lower-case hexadecimal.
    pub arguments_sha256: String,
    /// Objects that the call acts on besides its arguments.
    pub scope: CallScope,
}

/// A user's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// Approval or denial.
    pub ruling: Ruling,
    /// User who decides.
    pub by: UserId,
    /// Reason; required for a denial.
    pub reason: Option<String>,
    /// Digest of the arguments that the user reviewed, if the user names it.
    pub arguments_sha256: Option<String>,
}

/// Maximum length of the arguments of all open questions of an agent, in bytes. Questions of agents without a name share it.
pub const MOST_OPEN_BYTES: u64 = 16 << 20;

/// Maximum number of approvals deleted in one statement.
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

/// Lists approvals with previews of long arguments, so that a page stays small.
const LIST: Sql = Sql::of_each(
    listed!("length(CAST(arguments AS BLOB))"),
    listed!("CAST(octet_length(arguments) AS BIGINT)"),
);

const OPEN_BYTES: Sql =
    Sql::of_each(open_bytes!("length(CAST(arguments AS BLOB))"), open_bytes!("octet_length(arguments)"));

/// Deletes old approvals that are finished. An expired question is finished even if its status was not updated yet.
const PURGE: &str = "DELETE FROM approvals WHERE number IN (SELECT number FROM approvals \
    WHERE coalesce(used_at_ms, decided_at_ms, expires_at_ms, created_at_ms) < $1 AND (\
    status IN ('denied', 'expired', 'used') OR expires_at_ms < $1) LIMIT $2)";

// === impl Approvals ===

impl Approvals {
    /// Creates the approval store on a database; changes are recorded in that audit log.
    pub fn new(database: Database, audit: Arc<AuditLog>) -> Self {
        Self { database, audit }
    }

    /// Asks for approval of a call. Returns the existing question if the same call is pending, or approved and not used
    /// yet.
    ///
    /// # Errors
    /// [`ApprovalError`]; no question is stored then, unless the database reports that the outcome is in doubt.
    pub async fn ask(
        &self,
        question: ApprovalRequest,
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

    /// Decides a question. Repeating the same decision changes nothing.
    ///
    /// # Errors
    /// [`ApprovalError`]; nothing is decided then, unless the database reports that the outcome is in doubt.
    pub async fn decide(
        &self,
        id: &ApprovalId,
        answer: ApprovalDecision,
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
                    // An expired question stays expired, even if the clock is set back later.
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

    /// Consumes the approval of exactly that call, if there is one. The use is on disk before this returns, so no other
    /// caller gets the approval, even after a crash.
    ///
    /// # Errors
    /// [`ApprovalError`]; the call must not be made then.
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

    /// Returns an approval with its status at that time.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn find(&self, id: &ApprovalId, now: Timestamp) -> Result<Option<Approval>, DatabaseError> {
        row::first(&self.database.fetch(FIND, values![now, id.key()]).await?)
    }

    /// Lists the approvals that have that status at that time, or all; those after the given place, the last asked
    /// first. Long arguments are previews; [`Self::find`] returns the whole.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be read.
    pub async fn list(
        &self,
        status: Option<ApprovalStatus>,
        (before, most): (Option<u64>, u32),
        now: Timestamp,
    ) -> Result<Page<Approval, u64>, DatabaseError> {
        let size = PageSize::of(most);
        let status = status.map_or("", ApprovalStatus::as_str);
        let before = before.unwrap_or(u64::MAX);
        let rows = self.database.fetch(LIST, values![now, before, status, size.to_fetch]).await?;
        let entries = rows.iter().map(row::numbered).collect::<Result<Vec<_>, _>>()?;
        let Page { entries, next } = Page::cut(entries, size, |(number, _)| *number);
        Ok(Page { entries: entries.into_iter().map(|(_, approval)| approval).collect(), next })
    }

    /// Deletes some approvals that were finished before that time; returns their number, and 0 when there are no more.
    ///
    /// # Errors
    /// [`DatabaseError`] when they can't be removed.
    pub async fn purge(&self, over_before: Timestamp) -> Result<u64, DatabaseError> {
        let database = self.database.clone();
        let values = values![over_before, MOST];
        to_the_end(async move { database.write("approvals_purge", PURGE, values).await }).await
    }

    /// Writes an audit record; returns once it is durable.
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

/// Locks the approval. No other transaction changes it until this one is over.
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

// === impl ApprovalRequest ===

impl ApprovalRequest {
    /// Checks that the arguments have the digest that was reported and are short enough to be shown whole.
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
            // Same key as before scopes existed: an approval without a scope is used only by calls without one.
            true => json!([agent_id, subject, tool, arguments_sha256]),
            false => json!([agent_id, subject, tool, arguments_sha256, scope]),
        };
        sha256(key.to_string().as_bytes())
    }
}

// === impl ApprovalDecision ===

impl ApprovalDecision {
    fn check(&self) -> Result<(), ApprovalError> {
        let is_good = match (&self.reason, self.ruling) {
            (Some(reason), _) => is_reason(reason),
            (None, Ruling::Approve) => true,
            (None, Ruling::Deny) => false,
        };
        if is_good { Ok(()) } else { Err(ApprovalError::Reason) }
    }

    /// Checks that the decision is about the reviewed arguments. Arguments that can't be shown whole can't be approved.
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
