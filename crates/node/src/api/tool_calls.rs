//! Tool calls by the node's operator: `POST /v1/worker/tools:call`. Each is recorded, as those of agents are.

use super::answer::{Refusal, json};
use super::health::check_recorded;
use super::{SharedApi, body};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::tool_call::{CallToolRequest, CallToolResponse, ToolAttachment};
use belljar_gateway::call::{CallOutcome, Refusal as NotCalled, ToolAnswer};
use belljar_tools::answer::Attachment;

/// `POST /v1/worker/tools:call`. The call is canceled if the client hangs up.
pub(super) async fn call(State(api): State<SharedApi>, request: Request) -> Result<Response, Refusal> {
    let document = body::read(request, api.workplace.settings.max_request_bytes).await?;
    let CallToolRequest { version: _, tool, arguments, user_id } = CallToolRequest::parse(&document)?;
    check_recorded(&api)?;
    let caller = (user_id.as_ref(), api.workplace.web.lets_anybody_out());
    let stopped = api.stop.child_token();
    match api.workplace.tools.call_as_operator(caller, (&tool, arguments), stopped).await {
        CallOutcome::Answered(answered) => {
            let ToolAnswer { envelope: answer, attachments } = answered;
            let attachments = attachments.into_iter().map(attached).collect();
            Ok(json(StatusCode::OK, &CallToolResponse { version: ApiVersion, answer, attachments }))
        }
        CallOutcome::Refused(refusal) => Err(refusal.into()),
    }
}

fn attached(Attachment { mime_type, uri, base64 }: Attachment) -> ToolAttachment {
    ToolAttachment { mime_type, uri, base64 }
}

impl From<NotCalled> for Refusal {
    fn from(refusal: NotCalled) -> Self {
        let kind = match &refusal {
            NotCalled::Unknown { .. } => ProblemKind::NotFound,
            NotCalled::Denied { .. } | NotCalled::OutOfBounds { .. } => ProblemKind::Authorization,
            NotCalled::AuditQuota => ProblemKind::Limit,
            NotCalled::Over | NotCalled::Unrecorded => ProblemKind::Unavailable,
        };
        Self::new(kind, refusal.to_string())
    }
}
