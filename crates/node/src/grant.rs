//! Leave to run something once. There is none without a record of it, and a refusal is recorded before it is told.

use crate::book::{Book, BookError};
use belljar_contract::grant::{ExecutionGrant, Scope, Subject};
use belljar_contract::id::{GrantId, RunId, UserId};
use belljar_policy::grant::{Entitled, GrantRefusal, entitle};
use belljar_store::audit::Receipt;
use jiff::Timestamp;
use serde_json::json;

/// Leave to execute one graph in the sandbox of one run.
#[derive(Debug)]
pub struct Granted {
    entitled: Entitled,
    run_id: RunId,
    receipt: Receipt,
}

/// What somebody brings along.
#[derive(Debug)]
pub struct Presented {
    /// The grant, or why there is none that counts.
    pub grant: Result<ExecutionGrant, GrantRefusal>,
    /// What is to be executed.
    pub graph_id: String,
    /// In which run.
    pub run_id: RunId,
    /// When.
    pub now: Timestamp,
}

/// Why nothing is executed.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The grant doesn't cover it. That stands in the audit.
    #[error("{}: {refusal}", refusal.code())]
    Refused {
        /// Why not.
        refusal: GrantRefusal,
    },
    /// It can't be recorded, and so it can't be granted either.
    #[error(transparent)]
    Book(#[from] BookError),
}

/// The kinds under which they stand in the audit.
const USED: &str = "grant_used";
const DENIED: &str = "grant_denied";

/// The kinds under which the issue and the revocation of a grant stand in the audit.
pub const GRANT_ISSUED: &str = "grant_issued";
/// See [`GRANT_ISSUED`].
pub const GRANT_REVOKED: &str = "grant_revoked";

/// The service that whoever may write the state directory is.
const OPERATOR: &str = "operator";

// === impl Granted ===

impl Granted {
    /// Decides, and records what was decided.
    ///
    /// # Errors
    /// [`GrantError`].
    pub fn of(presented: Presented, book: &Book) -> Result<Self, GrantError> {
        let Presented { grant, graph_id, run_id, now } = presented;
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

    /// What may be executed.
    pub fn graph_id(&self) -> &str {
        self.entitled.graph_id()
    }

    /// In which run.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Who pays.
    pub fn billing_account_id(&self) -> &str {
        &self.entitled.grant().billing_account_id
    }

    /// The person that the grant was given for, if it names one.
    pub fn user_id(&self) -> Option<&str> {
        self.entitled.grant().user_id.as_ref().map(UserId::as_str)
    }

    /// Where that is recorded.
    pub fn receipt(&self) -> &Receipt {
        &self.receipt
    }
}

/// What whoever may write the state directory grants to itself: all of this happens in its name anyway.
pub fn of_operator(billing_account_id: &str) -> ExecutionGrant {
    ExecutionGrant {
        id: GrantId::from_uuid(uuid::Uuid::now_v7()),
        subject: Subject::Service(OPERATOR.to_owned()),
        billing_account_id: billing_account_id.to_owned(),
        user_id: None,
        scopes: vec![Scope::AnyGraph],
        allow_sandbox: true,
        expires_at: None,
        revoked_at: None,
    }
}
