//! Permission to run something once. Each use of a grant is recorded; a denial is recorded before it is returned.

use belljar_contract::grant::{ExecutionGrant, GrantScope, GrantSubject};
use belljar_contract::id::{GrantId, RunId, UserId};
use belljar_journal::{RunJournal, RunJournalError};
use belljar_policy::grant::{GrantRefusal, GrantedExecution, entitle};
use belljar_store::audit::Receipt;
use jiff::Timestamp;
use serde_json::json;

/// Permission to execute one graph in the sandbox of one run.
#[derive(Debug)]
pub struct ExecutionPermit {
    entitled: GrantedExecution,
    run_id: RunId,
    receipt: Receipt,
}

/// A request to use a grant.
#[derive(Debug)]
pub struct GrantPresentation {
    /// The grant, or the reason why it is not valid.
    pub grant: Result<ExecutionGrant, GrantRefusal>,
    /// The graph to execute.
    pub graph_id: String,
    /// The run to execute it in.
    pub run_id: RunId,
    /// The time of the request.
    pub now: Timestamp,
}

/// Reasons why nothing is executed.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The grant doesn't cover the graph. The denial is in the audit log.
    #[error("{}: {refusal}", refusal.code())]
    Refused {
        /// The reason.
        refusal: GrantRefusal,
    },
    /// The use can't be recorded, and so it is not permitted.
    #[error(transparent)]
    Book(#[from] RunJournalError),
}

/// Kinds of the audit records about a grant's use.
const USED: &str = "grant_used";
const DENIED: &str = "grant_denied";

/// Kinds of the audit records about the issue and the revocation of a grant.
pub const GRANT_ISSUED: &str = "grant_issued";
/// See [`GRANT_ISSUED`].
pub const GRANT_REVOKED: &str = "grant_revoked";

/// Service name of the operator, who may write the state directory.
const OPERATOR: &str = "operator";

// === impl ExecutionPermit ===

impl ExecutionPermit {
    /// Decides, and records the decision.
    ///
    /// # Errors
    /// [`GrantError`].
    pub fn of(presented: GrantPresentation, book: &RunJournal) -> Result<Self, GrantError> {
        let GrantPresentation { grant, graph_id, run_id, now } = presented;
        let of_grant = grant.as_ref().ok().map(|grant| {
            let ExecutionGrant { id, subject, billing_account_id, .. } = grant;
            json!({ "grant_id": id, "subject": subject.to_string(), "billing_account_id": billing_account_id })
        });
        let event = |code: Option<&str>| json!({ "graph_id": graph_id, "grant": of_grant, "code": code });
        let decided = grant.and_then(|grant| entitle(grant, &graph_id, now));
        match decided {
            Ok(entitled) => {
                let receipt = book.enter(USED, Some(&run_id), &event(None))?;
                Ok(Self { entitled, run_id, receipt })
            }
            Err(refusal) => {
                book.enter(DENIED, Some(&run_id), &event(Some(refusal.code())))?;
                Err(GrantError::Refused { refusal })
            }
        }
    }

    /// Returns the graph that may be executed.
    pub fn graph_id(&self) -> &str {
        self.entitled.graph_id()
    }

    /// Returns the run that it may be executed in.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Returns the billing account.
    pub fn billing_account_id(&self) -> &str {
        &self.entitled.grant().billing_account_id
    }

    /// Returns the user that the grant was issued for, if it names one.
    pub fn user_id(&self) -> Option<&str> {
        self.entitled.grant().user_id.as_ref().map(UserId::as_str)
    }

    /// Returns the receipt of the audit record.
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }
}

/// Returns the grant of the operator, who may write the state directory and so run any graph anyway.
pub fn of_operator(billing_account_id: &str) -> ExecutionGrant {
    ExecutionGrant {
        id: GrantId::from_uuid(uuid::Uuid::now_v7()),
        subject: GrantSubject::Service(OPERATOR.to_owned()),
        billing_account_id: billing_account_id.to_owned(),
        user_id: None,
        scopes: vec![GrantScope::AnyGraph],
        allow_sandbox: true,
        expires_at: None,
        revoked_at: None,
    }
}
