//! Calls that are not simply made: refused with what would help, or put before a person; and the yes of one, used once.

mod tool;

pub(crate) use tool::{is_asking, tool};

use crate::Gateway;
use crate::access::{Approver, ApproverError, Case, ExactCall};
use crate::call::{Answered, Refusal, unrecorded};
use crate::recording::Recording;
use belljar_contract::tool::DomainCode;
use belljar_policy::verdict::Rule;
use belljar_tools::answer::{Failure, envelope};
use belljar_tools::caller::Caller;
use belljar_tools::registry::Entry;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// Who is asked, and what they could be asked about.
#[derive(Debug)]
pub(crate) struct Asking {
    approver: Arc<dyn Approver>,
    refused: Refused,
}

/// Calls that were refused lately, and that a person could say yes to.
#[derive(Debug, Default)]
struct Refused {
    calls: Mutex<VecDeque<ExactCall>>,
}

/// As many of them are kept in mind.
const MOST_KEPT: usize = 1_024;

// === impl Gateway ===

impl Gateway {
    /// Looks for a person's yes to that call, and uses it up. Without one the call is refused, or a person is asked, and either is recorded.
    pub(crate) async fn approved(
        &self,
        entry: &Entry,
        case: &Case,
        mut recording: Recording,
    ) -> Result<Result<Recording, Answered>, Refusal> {
        let exact = recording.exact(entry.name(), case).filter(|_| case.can_be_approved());
        let asking = self.asking.as_deref();
        if let (Some(asking), Some(exact)) = (asking, &exact) {
            match asking.approver.begin_use(exact).await {
                Ok(Some(id)) => {
                    recording.approval(id, Some(&Rule::Approved));
                    return Ok(Ok(recording));
                }
                Ok(None) => {}
                Err(error) => return unasked(recording, &error).await.map(Err),
            }
        }
        match (asking, exact) {
            (Some(asking), Some(exact)) if case.escalates() => match asking.approver.ask(&exact).await {
                Ok(id) => {
                    recording.approval(id, None);
                    recording.escalate().await.map_err(unrecorded)?;
                    Ok(Err(refused(DomainCode::ApprovalRequired, &waiting(case, &id))))
                }
                Err(error) => unasked(recording, &error).await.map(Err),
            },
            (None, _) if case.escalates() => {
                let message = format!("{}: {}", case.judged.rule, Rule::NoApprover);
                recording.ruled(&Rule::NoApprover);
                recording.deny(&Rule::NoApprover.code()).await.map_err(unrecorded)?;
                Ok(Err(refused(DomainCode::PermissionDenied, &message)))
            }
            (asking, exact) => {
                let message = case.explained(&recording.id(), asking.is_some());
                if let (Some(asking), Some(exact)) = (asking, exact) {
                    asking.refused.keep(exact);
                }
                recording.deny(&case.judged.rule.code()).await.map_err(unrecorded)?;
                Ok(Err(refused(DomainCode::PermissionDenied, &message)))
            }
        }
    }

    /// Asks for a yes to a call that was refused lately, for whoever made it. The question's id.
    ///
    /// # Errors
    /// [`Failure`] when there was no such call of theirs, or nobody can be asked.
    pub async fn ask_about(&self, caller: &Caller, decision: Uuid) -> Result<Uuid, Failure> {
        match &self.asking {
            Some(asking) => asking.ask_about(caller, decision).await,
            None => Err(Failure::new(DomainCode::NotSupported, Rule::NoApprover.to_string())),
        }
    }
}

// === impl Asking ===

impl Asking {
    pub(crate) fn new(approver: Arc<dyn Approver>) -> Self {
        Self { approver, refused: Refused::default() }
    }

    async fn ask_about(&self, caller: &Caller, decision: Uuid) -> Result<Uuid, Failure> {
        let is_theirs = |exact: &ExactCall| exact.subject == crate::recording::subject(caller);
        let exact = self.refused.find(decision).filter(is_theirs).ok_or_else(|| {
            let message = "there is no such decision of yours that a person could be asked about";
            Failure::new(DomainCode::NotFound, message)
        })?;
        self.approver.ask(&exact).await.map_err(|error| of_approver(&error))
    }
}

fn waiting(case: &Case, id: &Uuid) -> String {
    format!(
        "{}. Approval {id} is asked for; once a person has said yes (`belljar approval approve {id}`), the same call with the \
         same arguments is made, once",
        case.judged.rule
    )
}

async fn unasked(recording: Recording, error: &ApproverError) -> Result<Answered, Refusal> {
    let failure = of_approver(error);
    recording.deny("approvals_unreachable").await.map_err(unrecorded)?;
    Ok(Answered { envelope: envelope(Err(failure)), attachments: Vec::new() })
}

fn of_approver(error: &ApproverError) -> Failure {
    match error {
        ApproverError::Database(error) => Failure::unreachable(error),
        ApproverError::Record(_) => Failure::internal("ask a person", error),
    }
}

fn refused(code: DomainCode, message: &str) -> Answered {
    Answered { envelope: envelope(Err(Failure::new(code, message))), attachments: Vec::new() }
}

// === impl Refused ===

impl Refused {
    fn calls(&self) -> MutexGuard<'_, VecDeque<ExactCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, call: ExactCall) {
        let mut calls = self.calls();
        if calls.len() >= MOST_KEPT {
            calls.pop_front();
        }
        calls.push_back(call);
    }

    fn find(&self, decision: Uuid) -> Option<ExactCall> {
        self.calls().iter().find(|call| call.decision_id == decision).cloned()
    }
}
