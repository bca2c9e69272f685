//! Calls that need an approval or are refused: requests approvals, consumes them, and explains refusals.

mod tool;

pub(crate) use tool::{is_asking, tool};

use crate::Gateway;
use crate::access::{Access, Approver, ApproverError, CallJudgement, ExactCall, ScopeSource, of_call};
use crate::arguments::{self, UnreviewableCall};
use crate::call::{Refusal, ToolAnswer, unrecorded};
use crate::caller_slot::CallerSlot;
use crate::recording::Recording;
use belljar_contract::approval::CallScope;
use belljar_contract::tool::DomainCode;
use belljar_policy::secret::KnownSecrets;
use belljar_policy::verdict::Rule;
use belljar_tools::Arguments;
use belljar_tools::answer::{Failure, envelope};
use belljar_tools::caller::Caller;
use belljar_tools::registry::Entry;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The approver, and recently refused calls that it could be asked about.
#[derive(Debug)]
pub(crate) struct ApprovalRequests {
    approver: Arc<dyn Approver>,
    /// The host's secrets, which no approver may see.
    secrets: Arc<dyn KnownSecrets>,
    /// Scope of all calls.
    scopes: Option<Arc<dyn ScopeSource>>,
    /// Access rules, for their action types.
    access: Option<Arc<dyn Access>>,
    refused: RefusedCalls,
}

/// Reasons why an approval is neither looked up nor requested.
enum ApprovalObstacle {
    /// The call can't be shown to a person.
    Unreviewable(UnreviewableCall),
    /// The call can't be made.
    Failed(Failure),
}

/// Recently refused calls that an approval would permit.
#[derive(Debug, Default)]
struct RefusedCalls {
    calls: Mutex<RefusedCallQueue>,
}

/// The calls with the lengths of their arguments, the latest last.
#[derive(Debug, Default)]
struct RefusedCallQueue {
    calls: VecDeque<(usize, ExactCall)>,
    bytes: usize,
}

/// Maximum number of refused calls that are kept in memory.
const MOST_KEPT: usize = 1_024;

/// Maximum length of all their arguments together, in bytes. The oldest are dropped.
const MOST_KEPT_BYTES: usize = 16 << 20;

// === impl Gateway ===

impl Gateway {
    /// Looks for an approval of that call, and consumes it. Without one the call is refused, or an approval is requested; either
    /// is recorded.
    pub(crate) async fn approved(
        &self,
        seat: &CallerSlot,
        (entry, arguments): (&Entry, &Arguments),
        case: &CallJudgement,
        mut recording: Recording,
    ) -> Result<Result<Recording, ToolAnswer>, Refusal> {
        let asking = self.asking.as_deref();
        let mut exact = None;
        if let Some(asking) = asking.filter(|_| case.can_be_approved()) {
            match asking.scope(seat, (entry, arguments)).await {
                Ok(scope) => exact = recording.exact(entry.name(), case, (arguments, scope)),
                Err(ApprovalObstacle::Unreviewable(why)) if case.escalates() => {
                    let message = format!("{}. This call can't be approved: {why}", case.judged.rule);
                    recording.deny("unreviewable").await.map_err(unrecorded)?;
                    return Ok(Err(refused(DomainCode::PermissionDenied, &message)));
                }
                Err(ApprovalObstacle::Failed(failure)) if case.escalates() => {
                    return self.finish(Some(Err(failure)), recording).await.map(Err);
                }
                // It is refused anyway.
                Err(_) => {}
            }
        }
        if let (Some(asking), Some(exact)) = (asking, &exact) {
            match asking.approver.begin_use(exact).await {
                Ok(Some(id)) => {
                    recording.approval(id, Some(&Rule::Approved));
                    recording.approved_in(exact.scope.clone());
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
                let can_ask = exact.is_some();
                let message = case.explained(&recording.id(), can_ask);
                if let (Some(asking), Some(exact)) = (asking, exact) {
                    asking.refused.keep(exact);
                }
                recording.deny(&case.judged.rule.code()).await.map_err(unrecorded)?;
                Ok(Err(refused(DomainCode::PermissionDenied, &message)))
            }
        }
    }

    /// Requests an approval of a recently refused call, for its caller. Returns the request's id.
    ///
    /// # Errors
    /// [`Failure`] when the caller had no such call, or there is no approver.
    pub async fn ask_about(&self, caller: &Caller, decision: Uuid) -> Result<Uuid, Failure> {
        match &self.asking {
            Some(asking) => asking.ask_about(caller, decision).await,
            None => Err(Failure::new(DomainCode::NotSupported, Rule::NoApprover.to_string())),
        }
    }
}

// === impl ApprovalRequests ===

impl ApprovalRequests {
    pub(crate) fn new(
        approver: Arc<dyn Approver>,
        secrets: Arc<dyn KnownSecrets>,
        scopes: Option<Arc<dyn ScopeSource>>,
    ) -> Self {
        Self { approver, secrets, scopes, access: None, refused: RefusedCalls::default() }
    }

    /// Sets the access rules that define the action types.
    pub(crate) fn judged_by(self, access: Option<Arc<dyn Access>>) -> Self {
        Self { access, ..self }
    }

    /// Returns the scope of a call, if a person can be shown all of it. The call's time limit applies.
    async fn scope(
        &self,
        seat: &CallerSlot,
        (entry, arguments): (&Entry, &Arguments),
    ) -> Result<CallScope, ApprovalObstacle> {
        arguments::reviewable(self.secrets.as_ref(), arguments).map_err(ApprovalObstacle::Unreviewable)?;
        let within = entry.tool.definition().within;
        let scope = of_call(self.scopes.as_deref(), seat.caller(), (entry.tool.as_ref(), arguments));
        let late = |_| {
            let message = format!("the scope of the call was not determined within {} s", within.as_secs());
            Failure::new(DomainCode::LimitExceeded, message)
        };
        let scope = tokio::select! {
            biased;
            () = seat.over() => Err(Failure::new(DomainCode::Unavailable, "the run is over")),
            scope = tokio::time::timeout(within, scope) => scope.map_err(late).and_then(|scope| scope),
        };
        let scope = scope.map_err(ApprovalObstacle::Failed)?;
        arguments::showable(self.secrets.as_ref(), &scope).map_err(ApprovalObstacle::Unreviewable)?;
        Ok(scope)
    }

    async fn ask_about(&self, caller: &Caller, decision: Uuid) -> Result<Uuid, Failure> {
        let is_theirs = |exact: &ExactCall| exact.subject == crate::recording::subject(caller);
        let exact = self.refused.find(decision).filter(is_theirs).ok_or_else(|| {
            let message = "there is no such decision about a call of yours that a person could approve";
            Failure::new(DomainCode::NotFound, message)
        })?;
        self.approver.ask(&exact).await.map_err(|error| of_approver(&error))
    }
}

fn waiting(case: &CallJudgement, id: &Uuid) -> String {
    format!(
        "{}. Approval {id} is pending; once a person has approved it (`belljar approval approve {id}`), make the same call \
         with the same arguments again, once",
        case.judged.rule
    )
}

async fn unasked(recording: Recording, error: &ApproverError) -> Result<ToolAnswer, Refusal> {
    let failure = of_approver(error);
    recording.deny("approvals_unreachable").await.map_err(unrecorded)?;
    Ok(ToolAnswer { envelope: envelope(Err(failure)), attachments: Vec::new() })
}

fn of_approver(error: &ApproverError) -> Failure {
    match error {
        ApproverError::Database(error) => Failure::unreachable(error),
        ApproverError::Record(_) => Failure::internal("ask a person", error),
        ApproverError::Full { .. } => Failure::new(DomainCode::LimitExceeded, error.to_string()),
    }
}

fn refused(code: DomainCode, message: &str) -> ToolAnswer {
    ToolAnswer { envelope: envelope(Err(Failure::new(code, message))), attachments: Vec::new() }
}

// === impl RefusedCalls ===

impl RefusedCalls {
    fn calls(&self) -> MutexGuard<'_, RefusedCallQueue> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, call: ExactCall) {
        let bytes = call.arguments.to_string().len();
        let mut kept = self.calls();
        kept.bytes += bytes;
        kept.calls.push_back((bytes, call));
        while kept.calls.len() > MOST_KEPT || kept.bytes > MOST_KEPT_BYTES {
            let Some((bytes, _)) = kept.calls.pop_front() else { break };
            kept.bytes -= bytes;
        }
    }

    fn find(&self, decision: Uuid) -> Option<ExactCall> {
        let kept = self.calls();
        kept.calls.iter().map(|(_, call)| call).find(|call| call.decision_id == decision).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::action::{ActionType, Risk};
    use belljar_contract::tool::{AgentKind, ToolName};

    fn call(bytes: usize) -> ExactCall {
        ExactCall {
            decision_id: Uuid::now_v7(),
            agent_id: None,
            subject: crate::recording::subject(&Caller::of(AgentKind::Operator)),
            tool: ToolName::parse("tell").unwrap(),
            action: ActionType::parse("docs:write").unwrap(),
            risk: Risk::Low,
            arguments_sha256: String::new(),
            arguments: "x".repeat(bytes).into(),
            scope: CallScope::new(),
            reason: String::new(),
        }
    }

    #[test]
    fn number_and_size_of_kept_refused_calls_are_limited() {
        let refused = RefusedCalls::default();
        let first = call(100);
        refused.keep(first.clone());
        assert!(refused.find(first.decision_id).is_some());
        (0..40).for_each(|_| refused.keep(call(1 << 20)));
        let kept = refused.calls();
        assert!(
            kept.bytes <= MOST_KEPT_BYTES && kept.calls.len() == 15,
            "{} {}",
            kept.bytes,
            kept.calls.len()
        );
        drop(kept);
        assert!(refused.find(first.decision_id).is_none());
        (0..2 * MOST_KEPT).for_each(|_| refused.keep(call(1)));
        assert_eq!(refused.calls().calls.len(), MOST_KEPT);
    }
}
