//! Approvals of calls: `/v1/worker/approvals`. Only clients with the node's token may decide them: an agent's token permits
//! tool calls only.

use super::answer::{Refusal, json};
use super::query::{Query, whole};
use super::{SharedApi, body};
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use belljar_contract::approval::{Approval, ApprovalPage, ApprovalStatus, Ruling};
use belljar_contract::id::{ApprovalId, UserId};
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::approval::{
    ApprovalListResponse, ApprovalResponse, ApproveRequest, DenyRequest,
};
use belljar_contract::worker::problem::ProblemKind;
use belljar_store::approvals::{ApprovalDecision, ApprovalError};

/// Default and maximum number of approvals per page.
const USUAL: u32 = 100;
const MOST: u32 = 500;

const MOST_REQUEST_BYTES: usize = 64 << 10;

/// Name under which clients with the node's token are recorded.
const OPERATOR: &str = "operator";

/// `GET /v1/worker/approvals`.
pub(super) async fn list(State(api): State<SharedApi>, uri: Uri) -> Result<Response, Refusal> {
    let mut query = Query::parse(uri.query().unwrap_or_default())?;
    let status = query.optional("status", &statuses(), ApprovalStatus::named)?;
    let token = query.optional("page_token", "a `next_page_token` of this node", whole)?;
    let limit = query.limit(USUAL, MOST)?;
    query.finish()?;
    let page = api.workplace.tools.approvals().list(status, (token, limit), api.workplace.now()).await?;
    let next_page_token = page.next.map(|number| number.to_string());
    let page = ApprovalPage { approvals: page.entries, next_page_token };
    Ok(json(StatusCode::OK, &ApprovalListResponse { version: ApiVersion, page }))
}

/// `GET /v1/worker/approvals/{approval_id}`.
pub(super) async fn show(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let id = id(&name)?;
    let found = api.workplace.tools.approvals().find(&id, api.workplace.now()).await?;
    found.map_or_else(|| Err(ApprovalError::Unknown { id }.into()), |approval| Ok(told(approval)))
}

/// `POST /v1/worker/approvals/{approval_id}:approve`.
pub(super) async fn approve(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let bytes = body::read_or_nothing(request, MOST_REQUEST_BYTES).await?;
    let ApproveRequest { reason, arguments_sha256, .. } = match bytes.is_empty() {
        true => ApproveRequest { version: ApiVersion, reason: None, arguments_sha256: None },
        false => ApproveRequest::parse(&bytes)?,
    };
    answer(
        &api,
        &name,
        ApprovalDecision { ruling: Ruling::Approve, by: operator()?, reason, arguments_sha256 },
    )
    .await
}

/// `POST /v1/worker/approvals/{approval_id}:deny`.
pub(super) async fn deny(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let DenyRequest { reason, arguments_sha256, .. } =
        DenyRequest::parse(&body::read(request, MOST_REQUEST_BYTES).await?)?;
    let reason = Some(reason);
    answer(&api, &name, ApprovalDecision { ruling: Ruling::Deny, by: operator()?, reason, arguments_sha256 })
        .await
}

async fn answer(api: &SharedApi, name: &str, answer: ApprovalDecision) -> Result<Response, Refusal> {
    let decided = api.workplace.tools.approvals().decide(&id(name)?, answer, api.workplace.now()).await?;
    Ok(told(decided))
}

/// The user id of clients with the node's token.
pub(super) fn operator() -> Result<UserId, Refusal> {
    UserId::parse(OPERATOR).map_err(|error| Refusal::new(ProblemKind::Internal, error.to_string()))
}

fn told(approval: Approval) -> Response {
    json(StatusCode::OK, &ApprovalResponse { version: ApiVersion, approval })
}

/// Parses the id in a path, with or without a verb behind it.
fn id(name: &str) -> Result<ApprovalId, Refusal> {
    let id = name.split_once(':').map_or(name, |(id, _)| id);
    ApprovalId::parse(id)
        .map_err(|error| Refusal::new(ProblemKind::NotFound, format!("there is no approval {id}: {error}")))
}

fn statuses() -> String {
    let names: Vec<_> = ApprovalStatus::ALL.iter().map(|status| status.as_str()).collect();
    format!("one of: {}", names.join(", "))
}

impl From<ApprovalError> for Refusal {
    fn from(error: ApprovalError) -> Self {
        match error {
            ApprovalError::Unknown { .. } => Self::new(ProblemKind::NotFound, error.to_string()),
            ApprovalError::Decided { .. }
            | ApprovalError::Expired { .. }
            | ApprovalError::OtherArguments { .. }
            | ApprovalError::NotWhole { .. }
            | ApprovalError::Full { .. } => Self::new(ProblemKind::Conflict, error.to_string()),
            ApprovalError::Reason | ApprovalError::TooLarge { .. } => {
                Self::new(ProblemKind::Validation, error.to_string())
            }
            ApprovalError::Event(_) | ApprovalError::Audit(_) => {
                tracing::error!(error = crate::chain(&error), "an approval can't be recorded");
                Self::new(ProblemKind::Unavailable, "the node can't record this")
            }
            ApprovalError::Database(error) => error.into(),
        }
    }
}
