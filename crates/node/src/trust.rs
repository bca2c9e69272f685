//! What agents of jobs earn at a node: the end of a job is recorded of its agent together with that end, and so once, whenever the node
//! is killed. What else is recorded over HTTP ([`entered`]) has counted when that is answered.
//!
//! ```text
//! accepted ─► hired, if new ─► … ─► ended ═► TrustEvent, in the same transaction ─► Earning ─► HouseAccess ─► calls, sandboxes
//! ```

mod entered;

pub(crate) use entered::{Entered, TrustError};

use crate::house::House;
use belljar_contract::failure::FailureCode;
use belljar_contract::id::{AgentId, JobId};
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::job::JobOutcome;
use belljar_gateway::access::{Earning, TrustBook};
use belljar_policy::lifecycle::Ending;
use belljar_policy::trust::TrustConfig;
use belljar_store::database::Database;
use belljar_store::trust::{RecordError, TrustEvents};
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use uuid::{Builder, Uuid};

/// What is recorded of a node's agents, and what they have by it.
#[derive(Debug, Clone)]
pub(crate) struct NodeTrust {
    book: TrustBook,
    /// Nothing where nobody is judged.
    earning: Option<Arc<Earning>>,
}

// === impl NodeTrust ===

impl NodeTrust {
    /// What is recorded in that database, for whom that house judges.
    pub(crate) fn new(database: &Database, config: &TrustConfig, house: Option<&House>) -> Self {
        let book = TrustBook::new(TrustEvents::new(database.clone()), config.clone());
        let earning = house.map(|house| Arc::new(Earning::new(book.clone(), Arc::clone(house.access()))));
        Self { book, earning }
    }

    /// What follows it.
    pub(crate) fn earning(&self) -> Option<&Arc<Earning>> {
        self.earning.as_ref()
    }

    /// Whether jobs count. Otherwise levels are what people say.
    pub(crate) fn is_earned(&self) -> bool {
        !self.book.config().is_disabled()
    }

    /// Has an agent be there where something is earned, unless something is recorded of it already.
    pub(crate) async fn hire(&self, agent: &AgentId, now: Timestamp) -> Result<(), RecordError> {
        if !self.is_earned() || !self.book.events().of(agent).await?.is_empty() {
            return Ok(());
        }
        let kind = TrustEventKind::AgentHired { level: None };
        // The same id at every node: of two who do this at once, one has.
        let event =
            TrustEvent { at: now, event_id: id(["hired", agent.as_str()]), agent_id: agent.clone(), kind };
        match self.book.events().record(&event).await {
            Ok(_) | Err(RecordError::Another { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What the end of a job says of its agent, if it says anything.
    pub(crate) fn ended(
        assignment: &Assignment,
        (ending, outcome): (Ending, &JobOutcome),
        at: Timestamp,
    ) -> Option<TrustEvent> {
        let (agent_id, category) = (assignment.agent_id.clone()?, assignment.task_category);
        let kind = match ending {
            // An agent gives itself no work to be trusted for.
            Ending::Completed if assignment.submitted_by.is_some() => return None,
            Ending::Completed => TrustEventKind::JobCompleted {
                category,
                task_id: assignment.task_id.clone(),
                content: content_of(assignment),
                is_checked: assignment.is_checked(),
            },
            Ending::Failed | Ending::Timeout if outcome.failure_code.is_some_and(is_of_agent) => {
                TrustEventKind::TaskFailed { category }
            }
            // It was stopped, or its node or its rules have failed it.
            _ => return None,
        };
        Some(TrustEvent { at, event_id: id_of(&assignment.job_id), agent_id, kind })
    }
}

/// What a job is to do, as a digest: its command, or its document but for the ids that tell it from others.
fn content_of(assignment: &Assignment) -> Uuid {
    const IDS: [&str; 2] = ["job_id", "task_id"];
    let sandbox = &assignment.sandbox;
    let mut document = sandbox.job_spec.as_ref().map(serde_json::to_value).and_then(Result::ok);
    if let Some(members) = document.as_mut().and_then(Value::as_object_mut) {
        members.retain(|name, _| !IDS.contains(&name.as_str()));
    }
    let text = serde_json::json!({ "command": sandbox.command, "job_spec": document }).to_string();
    id(["job_content", &text])
}

/// One job is one event, however often it is attempted and its end recorded.
fn id_of(job_id: &JobId) -> Uuid {
    id(["job_ended", &job_id.key()])
}

fn id(parts: [&str; 2]) -> Uuid {
    let digest = Sha256::digest(parts.join("\0"));
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, digit)| *byte = digit);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Whether a failure is the agent's, and not of those who run it or who have asked for what can't be.
fn is_of_agent(code: FailureCode) -> bool {
    matches!(
        code,
        FailureCode::StepFailed
            | FailureCode::Timeout
            | FailureCode::ConstraintViolation
            | FailureCode::BudgetExhausted
            | FailureCode::TurnsExhausted
            | FailureCode::NotVerified
            | FailureCode::AgentGaveUp
    )
}
