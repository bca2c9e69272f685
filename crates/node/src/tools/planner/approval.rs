//! `list_approvals`, `show_approval`, `approve_call`, `deny_call`: approvals of calls by agents in sandboxes, for planners. A
//! planner that is bound to a project or a task sees and decides only approvals of that project or task. A planner can't decide
//! approvals of its own agent, also not those of jobs that it has submitted, nor those of other planners: only the operator can.

use super::endpoint_client::{EndpointClient, text};
use super::{changing, define, id, list_of, object};
use crate::api::Api;
use belljar_contract::action::BuiltInAction;
use belljar_contract::approval::{Approval, ApprovalStatus, LONGEST_REASON, Ruling};
use belljar_contract::id::{ApprovalId, TaskId, UserId};
use belljar_contract::tool::{AgentKind, DomainCode, InvalidToolNameError};
use belljar_store::approvals::{ApprovalDecision as Said, ApprovalError};
use belljar_store::page;
use belljar_tools::answer::{Answer, Failure, Page, Success};
use belljar_tools::caller::{Caller, Identity};
use belljar_tools::definition::{Definition, EXPECTED_MARK, Effect};
use belljar_tools::{Arguments, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;

/// Action types of the decisions. An approval decides for others; a denial delays them.
const APPROVES: (Ruling, BuiltInAction) = (Ruling::Approve, BuiltInAction::ArchDecide);
const DENIES: (Ruling, BuiltInAction) = (Ruling::Deny, BuiltInAction::CommsInternal);

/// Lists approvals.
struct ListApprovalsTool {
    definition: Definition,
    desk: Arc<EndpointClient>,
}

/// Shows an approval, with its complete arguments.
struct ShowApprovalTool {
    definition: Definition,
    desk: Arc<EndpointClient>,
}

/// Decides an approval.
struct DecideApprovalTool {
    definition: Definition,
    ruling: Ruling,
    desk: Arc<EndpointClient>,
}

pub(super) fn tools(desk: &Arc<EndpointClient>) -> Result<Vec<Arc<dyn Tool>>, InvalidToolNameError> {
    let statuses = ApprovalStatus::ALL.map(ApprovalStatus::as_str);
    let takes = list_of(json!({ "status": { "type": "string", "enum": statuses } }));
    const LISTS: &str = "Lists what people are asked about calls, the last asked first. Long arguments are previews (`is_preview`).";
    let list = verbatim(define("list_approvals", LISTS, takes)?);
    let list = Arc::new(ListApprovalsTool { definition: list, desk: Arc::clone(desk) });
    let takes = object(&["approval_id"], &json!({ "approval_id": id("The approval.") }));
    const SHOWS: &str = "Shows what a person is asked about a call, with the arguments whole.";
    let show = verbatim(define("show_approval", SHOWS, takes)?);
    let show = Arc::new(ShowApprovalTool { definition: show, desk: Arc::clone(desk) });
    let decide = |name, summary, (ruling, action)| {
        let definition = define(name, summary, what_an_answer_takes())?;
        let definition = changing(definition, Effect::Destructive, action);
        let definition = Definition { is_guarded: true, ..verbatim(definition) };
        Ok::<Arc<dyn Tool>, _>(Arc::new(DecideApprovalTool { definition, ruling, desk: Arc::clone(desk) }))
    };
    Ok(vec![
        list,
        show,
        decide("approve_call", "Says yes to a call with exactly its arguments, once.", APPROVES)?,
        decide("deny_call", "Says no to a call.", DENIES)?,
    ])
}

/// Exempts a tool's answer from the scan for secrets: a decision must be based on the unaltered arguments.
fn verbatim(definition: Definition) -> Definition {
    Definition { is_verbatim: true, ..definition }
}

fn what_an_answer_takes() -> Value {
    object(
        &["approval_id"],
        &json!({
            "approval_id": id("The approval."),
            "arguments_sha256": {
                "type": "string",
                "pattern": "^[0-9a-f]{64}$",
                EXPECTED_MARK: "a SHA-256 of 64 lower-case hexadecimal digits",
                "description": "The digest of the arguments that were reviewed; the answer is refused if the call has others.",
            },
            "confirm": { "type": "boolean" },
            "reason": { "type": "string", "maxLength": LONGEST_REASON },
        }),
    )
}

impl Tool for ListApprovalsTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            let api = self.desk.api()?;
            let status = ApprovalStatus::named(text(&arguments, "status"));
            let (kept, now) = (api.workplace.tools.approvals(), api.workplace.now());
            let asked = Page::asked(&arguments);
            // A bound planner sees and counts only its part of the approvals. There may be many, so only the requested page is
            // kept.
            let (mut seen, mut total, mut after) = (Vec::new(), 0, None);
            loop {
                let page = kept.list(status, (after, page::MOST), now).await;
                let page = page.map_err(|error| Failure::unreachable(&error))?;
                for one in page.entries.iter().filter(|one| is_within(caller, one)) {
                    if total >= asked.offset() && seen.len() < asked.limit() {
                        seen.push(json!(one));
                    }
                    total += 1;
                }
                after = page.next;
                if after.is_none() {
                    return Ok(Success::part(seen, total, asked));
                }
            }
        }
        .boxed()
    }
}

impl Tool for ShowApprovalTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            let (_, found) = found(&self.desk, caller, &arguments).await?;
            Ok(Success::of(json!({ "approval": found })))
        }
        .boxed()
    }
}

impl Tool for DecideApprovalTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        self.decide(caller, arguments).boxed()
    }
}

// === impl DecideApprovalTool ===

impl DecideApprovalTool {
    async fn decide(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let (api, found) = found(&self.desk, caller, &arguments).await?;
        if found.subject.subject_type != AgentKind::Sandbox {
            let message =
                "only the operator can decide this approval: the call was not made by a sandbox agent";
            return Err(Failure::new(DomainCode::PermissionDenied, message));
        }
        if is_its_own(caller, &found) {
            let message = "the operator answers this one: it is about a call of the same agent";
            return Err(Failure::new(DomainCode::PermissionDenied, message));
        }
        let by = caller.actor.as_deref().or(caller.user_id.as_deref()).unwrap_or_default();
        let by =
            UserId::parse(by).map_err(|error| Failure::internal("cannot name the deciding user", &error))?;
        let said = Said {
            ruling: self.ruling,
            by,
            reason: Some(text(&arguments, "reason").to_owned()),
            arguments_sha256: arguments.get("arguments_sha256").and_then(Value::as_str).map(str::to_owned),
        };
        let (approvals, now) = (api.workplace.tools.approvals(), api.workplace.now());
        let decided = approvals.decide(&found.id, said, now).await.map_err(|error| failure(&error))?;
        Ok(Success::of(json!({ "approval": decided })))
    }
}

/// Finds the approval that the arguments name, if it is within the caller's bounds.
async fn found(
    desk: &EndpointClient,
    caller: &Caller,
    arguments: &Arguments,
) -> Result<(Arc<Api>, Approval), Failure> {
    let unknown = || Failure::new(DomainCode::NotFound, "there is no such approval");
    let id = ApprovalId::parse(text(arguments, "approval_id")).map_err(|_| unknown())?;
    let api = desk.api()?;
    let found = api.workplace.tools.approvals().find(&id, api.workplace.now()).await;
    let found = found.map_err(|error| Failure::unreachable(&error))?;
    let found = found.filter(|found| is_within(caller, found)).ok_or_else(unknown)?;
    Ok((api, found))
}

/// Returns true if the deciding agent may be the one that asks: jobs that an agent submits are done as that agent, and those of a
/// nameless agent have no agent.
fn is_its_own(caller: &Caller, approval: &Approval) -> bool {
    match &caller.identity {
        Some(Identity::Agent(agent)) => approval.agent_id.as_ref() == Some(agent),
        Some(Identity::Level(_)) => approval.agent_id.is_none(),
        // Without access rules no approval is required, so a decision has no effect.
        None => false,
    }
}

/// Returns true if it belongs to the project and the task that the caller is bound to.
fn is_within(caller: &Caller, approval: &Approval) -> bool {
    let subject = &approval.subject;
    let key = |task: &TaskId| task.key();
    let is_of_project = caller.project_id.is_none() || caller.project_id == subject.project_id;
    let is_of_task =
        caller.task_id.is_none() || caller.task_id.as_ref().map(key) == subject.task_id.as_ref().map(key);
    is_of_project && is_of_task
}

fn failure(error: &ApprovalError) -> Failure {
    match error {
        ApprovalError::Unknown { .. } => Failure::new(DomainCode::NotFound, error.to_string()),
        ApprovalError::Decided { .. }
        | ApprovalError::Expired { .. }
        | ApprovalError::OtherArguments { .. }
        | ApprovalError::NotWhole { .. }
        | ApprovalError::Full { .. } => Failure::new(DomainCode::Conflict, error.to_string()),
        ApprovalError::Reason | ApprovalError::TooLarge { .. } => Failure::argument(error.to_string()),
        ApprovalError::Database(error) => Failure::unreachable(error),
        ApprovalError::Event(_) | ApprovalError::Audit(_) => Failure::internal("record the answer", error),
    }
}
