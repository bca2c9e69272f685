//! Trust that agents of jobs earn at a node. The end of a job and its trust event are recorded in one transaction, and so
//! exactly once, whenever the node is killed. Events entered over HTTP ([`trust_requests`]) are effective when the request is answered.
//!
//! ```text
//! accepted ─► hired, if new ─► … ─► ended ═► TrustEvent, in the same transaction ─► Earning ─► HouseAccess ─► calls, sandboxes
//! ```

mod trust_requests;

pub(crate) use trust_requests::{TrustEntry, TrustError};

use crate::access_rules::NodeAccessRules;
use belljar_contract::failure::FailureCode;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::job::JobOutcome;
use belljar_gateway::access::{TrustFollower, TrustRecords};
use belljar_policy::lifecycle::ReportedEnding;
use belljar_policy::trust::{TrustConfig, end_of_job};
use belljar_store::database::{Database, DatabaseError};
use belljar_store::trust::TrustEvents;
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use uuid::{Builder, Uuid};

/// Trust records of a node's agents, and the permissions that follow from them.
#[derive(Debug, Clone)]
pub(crate) struct NodeTrust {
    book: TrustRecords,
    /// `None` without access rules.
    earning: Option<Arc<TrustFollower>>,
}

// === impl NodeTrust ===

impl NodeTrust {
    /// Returns the trust records in that database, for the agents under those access rules.
    pub(crate) fn new(database: &Database, config: &TrustConfig, house: Option<&NodeAccessRules>) -> Self {
        let book = TrustRecords::new(TrustEvents::new(database.clone()), config.clone());
        let earning =
            house.map(|house| Arc::new(TrustFollower::new(book.clone(), Arc::clone(house.access()))));
        Self { book, earning }
    }

    /// Returns the task that applies trust records to permissions.
    pub(crate) fn earning(&self) -> Option<&Arc<TrustFollower>> {
        self.earning.as_ref()
    }

    /// Returns true if jobs change trust. Otherwise only operators set levels.
    pub(crate) fn is_earned(&self) -> bool {
        !self.book.config().is_disabled()
    }

    /// Returns the event by which an agent is hired with its first job, if trust is earned; `None` if the agent has records
    /// already. It is recorded in the transaction that accepts the job, so a refused job hires no agent.
    pub(crate) async fn hiring(
        &self,
        agent: &AgentId,
        now: Timestamp,
    ) -> Result<Option<TrustEvent>, DatabaseError> {
        if !self.is_earned() || !self.book.events().of(agent).await?.is_empty() {
            return Ok(None);
        }
        let kind = TrustEventKind::AgentHired { level: None };
        // Every node makes the same id: of two that accept a first job at once, one records it.
        let event_id = id(["hired", agent.as_str()]);
        Ok(Some(TrustEvent { at: now, event_id, agent_id: agent.clone(), kind }))
    }

    /// Returns the trust event of a job's end, if there is one.
    pub(crate) fn ended(
        assignment: &Assignment,
        (ending, outcome): (ReportedEnding, &JobOutcome),
        at: Timestamp,
    ) -> Option<TrustEvent> {
        let (agent_id, category) = (assignment.agent_id.clone()?, assignment.task_category);
        let kind = match ending {
            // A job that an agent submitted itself earns no trust.
            ReportedEnding::Completed if assignment.submitted_by.is_some() => return None,
            ReportedEnding::Completed => TrustEventKind::JobCompleted {
                category,
                task_id: assignment.task_id.clone(),
                content: content_of(assignment),
                is_checked: assignment.is_checked(),
            },
            ReportedEnding::Failed | ReportedEnding::Timeout if is_of_agent(outcome) => {
                TrustEventKind::TaskFailed { category }
            }
            // It was stopped, or the node or its rules made it fail.
            _ => return None,
        };
        Some(TrustEvent { at, event_id: end_of_job(&assignment.job_id), agent_id, kind })
    }
}

/// Returns the digest of a job's content: its command and its document without the ids.
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

fn id(parts: [&str; 2]) -> Uuid {
    let digest = Sha256::digest(parts.join("\0"));
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, digit)| *byte = digit);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Returns true if a job that ran failed by its own actions. A job must not be able to choose a failure that counts for
/// nothing: a request that the proxy denies (`ext_net_required`) and a step that was refused while the job ran count, too.
fn is_of_agent(outcome: &JobOutcome) -> bool {
    match outcome.failure_code {
        Some(
            FailureCode::StepFailed
            | FailureCode::Timeout
            | FailureCode::ConstraintViolation
            | FailureCode::ExtNetRequired
            | FailureCode::BudgetExhausted
            | FailureCode::TurnsExhausted
            | FailureCode::NotVerified
            | FailureCode::AgentGaveUp,
        ) => true,
        Some(FailureCode::PolicyViolation) => was_step_refused(outcome),
        _ => false,
    }
}

/// Returns true if a step was refused after it had begun, for example because an earlier step replaced its path by a link. Steps
/// refused by admission never begin.
fn was_step_refused(outcome: &JobOutcome) -> bool {
    let steps = outcome.sba_result.iter().flat_map(|result| &result.steps);
    steps.last().is_some_and(|step| {
        let code = step.error.as_ref().map(|error| error.code);
        code == Some(FailureCode::PolicyViolation) && step.started_at.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::job::Job;
    use belljar_contract::job::step::StepType;
    use belljar_contract::result::{JobResult, StepError, StepResult, StepStatus};

    fn failed_as(code: FailureCode) -> bool {
        is_of_agent(&JobOutcome::of_failure(code, "why"))
    }

    #[test]
    fn trust_counts_failures_of_the_job_but_not_of_the_host() {
        use FailureCode as Code;
        let counts: Vec<Code> = Code::ALL.into_iter().filter(|code| failed_as(*code)).collect();
        let nothing: Vec<Code> = Code::ALL.into_iter().filter(|code| !failed_as(*code)).collect();
        assert!(counts.contains(&Code::StepFailed) && counts.contains(&Code::ExtNetRequired), "{counts:?}");
        // docs/guides/trust.md lists these.
        let documented = [
            Code::SchemaValidation,
            Code::PolicyViolation,
            Code::Canceled,
            Code::NodeFailure,
            Code::InferenceUnavailable,
            Code::InternalError,
        ];
        assert_eq!(nothing, documented);
    }

    #[test]
    fn trust_counts_a_step_denied_while_the_job_ran() {
        let outcome = |started_at: Option<Timestamp>| {
            let no_job = Job::parse(b"{}").unwrap_err();
            let mut result = JobResult::of_invalid_job(no_job, Timestamp::UNIX_EPOCH);
            result.failure_code = Some(FailureCode::PolicyViolation);
            let message = "a link leads out of the workspace".to_owned();
            result.steps.push(StepResult {
                index: 0,
                id: "write".to_owned(),
                step_type: StepType::WriteFile,
                status: StepStatus::Failure,
                started_at,
                finished_at: None,
                duration_ms: 0,
                result: None,
                error: Some(StepError { code: FailureCode::PolicyViolation, message }),
            });
            let mut outcome = JobOutcome::of_failure(FailureCode::PolicyViolation, "why");
            outcome.sba_result = Some(Box::new(result));
            outcome
        };
        assert!(is_of_agent(&outcome(Some(Timestamp::UNIX_EPOCH))));
        assert!(!is_of_agent(&outcome(None)));
    }
}
