//! `request_human_approval`: an agent requests an approval, of a refused call or of an action that it describes.

use super::{ApprovalRequests, of_approver};
use crate::access::{ExactCall, of_place};
use crate::arguments;
use crate::recording::subject;
use belljar_contract::action::{ActionType, Risk};
use belljar_contract::approval::CallScope;
use belljar_contract::category::Category;
use belljar_contract::tool::{DomainCode, ToolName};
use belljar_policy::action::ActionRegistry;
use belljar_tools::answer::{Answer, Failure, Success};
use belljar_tools::caller::{Caller, Identity};
use belljar_tools::definition::{Definition, Effect};
use belljar_tools::{Arguments, Tool, canonical};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

const NAME: &str = "request_human_approval";

const SUMMARY: &str =
    "Requests a person's approval of a refused call of yours, or of an action that you plan.";

const DESCRIPTION: &str = "Requests a person's approval. With `decision`, the id in a refusal, it is for the refused call: once it is \
    approved, make the same call with the same arguments again. With `action_type`, `title` and `description` it is for the action that \
    they describe: call this tool again with the same parameters; once it is approved, `status` is `approved`, for one call. No request \
    is approved by timeout.";

struct RequestHumanApproval {
    definition: Definition,
    asking: Arc<ApprovalRequests>,
}

/// An action type that approvals can be requested for.
struct KnownAction {
    action: ActionType,
    risk: Risk,
    /// Reason for the risk.
    why: String,
}

/// Returns true for the name of this tool.
pub(crate) fn is_asking(name: &ToolName) -> bool {
    name.as_str() == NAME
}

/// Returns the tool.
pub(crate) fn tool(asking: &Arc<ApprovalRequests>) -> Option<Arc<dyn Tool>> {
    let definition = Definition::named(NAME, Category::Communication, SUMMARY, takes()).ok()?;
    let definition =
        Definition { effect: Effect::Idempotent, description: DESCRIPTION.to_owned(), ..definition };
    Some(Arc::new(RequestHumanApproval { definition, asking: Arc::clone(asking) }))
}

fn takes() -> Value {
    const UUID: &str = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$";
    let text = |most: u32, about: &str| json!({ "type": "string", "minLength": 1, "maxLength": most, "description": about });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "decision": { "type": "string", "format": "uuid", "pattern": UUID, "description": "The decision id in a refusal. Without the other parameters." },
            "action_type": text(128, "Type of the action, as `category:action`."),
            "title": text(256, "Title of the action, in one line."),
            "description": text(4_096, "Description of the action, and its reason."),
        },
    })
}

impl Tool for RequestHumanApproval {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        self.ask(caller, arguments).boxed()
    }
}

/// Action of a call, as it was judged.
struct JudgedAction {
    action: ActionType,
    risk: Risk,
    /// Reason that the agent gave.
    reason: String,
}

// === impl RequestHumanApproval ===

impl RequestHumanApproval {
    async fn ask(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let said = |name: &str| arguments.get(name).and_then(Value::as_str);
        match (said("decision"), said("action_type"), said("title"), said("description")) {
            (Some(decision), None, None, None) => {
                let decision =
                    Uuid::parse_str(decision).map_err(|error| Failure::argument(error.to_string()))?;
                let id = self.asking.ask_about(caller, decision).await?;
                Ok(Success::of(json!({ "approval_id": id, "status": "pending", "requires_parking": true })))
            }
            (None, Some(action), Some(title), Some(_)) => {
                let known = self.known(caller, action)?;
                arguments::reviewable(self.asking.secrets.as_ref(), &arguments)
                    .map_err(|why| Failure::new(DomainCode::PermissionDenied, why.to_string()))?;
                let reason = title.to_owned();
                let scopes = self.asking.scopes.as_deref();
                let scope = of_place(scopes, caller, &self.definition).await?;
                let KnownAction { action, risk, why } = known;
                self.ask_freely(
                    self.exact(caller, JudgedAction { action, risk, reason }, arguments, scope),
                    &why,
                )
                .await
            }
            _ => Err(Failure::argument(
                "either `decision` alone, or `action_type`, `title` and `description` together".to_owned(),
            )),
        }
    }

    /// Parses an action type: approvals can be requested only for types that the rules know.
    fn known(&self, caller: &Caller, text: &str) -> Result<KnownAction, Failure> {
        let stood = self.asking.access.as_deref().and_then(|access| access.standing(caller));
        let built_in = ActionRegistry::default();
        let actions = stood.as_ref().map_or(&built_in, |stood| stood.rules.actions());
        let wrong = |why: String| Failure::argument(format!("/action_type: {why}"));
        let action = ActionType::parse(text).map_err(|error| wrong(error.to_string()))?;
        if let Err(error) = actions.expand(action.as_str()) {
            let all: Vec<&str> = actions.all().map(ActionType::as_str).collect();
            return Err(wrong(format!("{error}; there are: {}", all.join(", "))));
        }
        let (risk, why) = (actions.risk(&action), actions.why(&action).to_owned());
        Ok(KnownAction { action, risk, why })
    }

    async fn ask_freely(&self, exact: ExactCall, why: &str) -> Answer {
        let approver = &self.asking.approver;
        let failed = |error| of_approver(&error);
        let (id, is_good) = match approver.begin_use(&exact).await.map_err(failed)? {
            Some(id) => (id, true),
            None => (approver.ask(&exact).await.map_err(failed)?, false),
        };
        Ok(Success::of(json!({
            "approval_id": id,
            "status": if is_good { "approved" } else { "pending" },
            "requires_parking": !is_good,
            "action_type": exact.action,
            "risk_level": exact.risk,
            "risk_reason": why,
        })))
    }

    fn exact(
        &self,
        caller: &Caller,
        judged: JudgedAction,
        arguments: Arguments,
        scope: CallScope,
    ) -> ExactCall {
        let JudgedAction { action, risk, reason } = judged;
        let agent_id = match &caller.identity {
            Some(Identity::Agent(agent)) => Some(agent.clone()),
            Some(Identity::Level(_)) | None => None,
        };
        ExactCall {
            decision_id: Uuid::now_v7(),
            agent_id,
            subject: subject(caller),
            tool: self.definition.name.clone(),
            risk,
            action,
            arguments_sha256: canonical::digest(&arguments),
            arguments: Value::Object(arguments),
            scope,
            reason,
        }
    }
}
