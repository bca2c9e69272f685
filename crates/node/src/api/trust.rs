//! Trust in agents: `/v1/worker/trust`. Only clients with the node's token may read and change it: an agent's token permits
//! tool calls only, and no tool changes trust.

use super::answer::{Refusal, json};
use super::query::Query;
use super::{SharedApi, approvals, body};
use crate::trust::{TrustEntry, TrustError};
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use belljar_contract::approval::Ruling;
use belljar_contract::id::{AgentId, parse_uuid};
use belljar_contract::trust::TrustEventKind;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::trust::{
    RecordEventRequest, SetLevelRequest, TrustDecisionRequest, TrustEventResponse, TrustListResponse,
    TrustResponse,
};
use belljar_store::trust::RecordError;

/// Default and maximum number of agents per page.
const USUAL: u32 = 100;
const MOST: u32 = 500;

const MOST_REQUEST_BYTES: usize = 64 << 10;

/// `GET /v1/worker/trust`.
pub(super) async fn list(State(api): State<SharedApi>, uri: Uri) -> Result<Response, Refusal> {
    let mut query = Query::parse(uri.query().unwrap_or_default())?;
    let token =
        query.optional("page_token", "a `next_page_token` of this node", |text| AgentId::parse(text).ok())?;
    let limit = query.limit(USUAL, MOST)?;
    query.finish()?;
    let page = (token.as_ref(), usize::try_from(limit).unwrap_or(usize::MAX));
    let (agents, has_more) = api.workplace.trust.states(page, api.workplace.now()).await?;
    let next_page_token = agents.last().filter(|_| has_more).map(|last| last.agent_id.to_string());
    Ok(json(StatusCode::OK, &TrustListResponse { version: ApiVersion, agents, next_page_token }))
}

/// `GET /v1/worker/trust/{agent_id}`.
pub(super) async fn show(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let trust = api.workplace.trust.told(&agent(&name)?, api.workplace.now()).await?;
    Ok(json(StatusCode::OK, &TrustResponse { version: ApiVersion, trust }))
}

/// `POST /v1/worker/trust/{agent_id}/events`.
pub(super) async fn record(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let wanted = RecordEventRequest::parse(&body::read(request, MOST_REQUEST_BYTES).await?)?;
    let kind = wanted.event.reported_by(approvals::operator()?);
    let event = (&agent(&name)?, wanted.event_id, kind);
    let entered = api.workplace.trust.report(event, wanted.at, &api.workplace.clock).await?;
    let status = if entered.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(told(status, entered))
}

/// `POST /v1/worker/trust/{agent_id}/level`.
pub(super) async fn set_level(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let wanted = SetLevelRequest::parse(&body::read(request, MOST_REQUEST_BYTES).await?)?;
    let SetLevelRequest { version: _, level, category, reason } = wanted;
    let set = TrustEventKind::LevelSet { level, category, reason, by: approvals::operator()? };
    say(&api, &name, set).await
}

/// `POST /v1/worker/trust/{agent_id}/verification`.
pub(super) async fn verify(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    TrustDecisionRequest::parse(&body::read_or_nothing(request, MOST_REQUEST_BYTES).await?)?;
    say(&api, &name, TrustEventKind::ReVerified { by: approvals::operator()? }).await
}

async fn say(api: &SharedApi, name: &str, word: TrustEventKind) -> Result<Response, Refusal> {
    let entered = api.workplace.trust.say((&agent(name)?, word), &api.workplace.clock).await?;
    Ok(told(StatusCode::OK, entered))
}

/// `POST /v1/worker/trust/{agent_id}/proposals/{proposal_id}:approve`.
pub(super) async fn approve(
    State(api): State<SharedApi>,
    Path(names): Path<(String, String)>,
    request: Request,
) -> Result<Response, Refusal> {
    answer(&api, names, (Ruling::Approve, request)).await
}

/// `POST /v1/worker/trust/{agent_id}/proposals/{proposal_id}:deny`.
pub(super) async fn deny(
    State(api): State<SharedApi>,
    Path(names): Path<(String, String)>,
    request: Request,
) -> Result<Response, Refusal> {
    answer(&api, names, (Ruling::Deny, request)).await
}

async fn answer(
    api: &SharedApi,
    (name, proposal): (String, String),
    (ruling, request): (Ruling, Request),
) -> Result<Response, Refusal> {
    TrustDecisionRequest::parse(&body::read_or_nothing(request, MOST_REQUEST_BYTES).await?)?;
    let agent = agent(&name)?;
    let id = proposal.split_once(':').map_or(proposal.as_str(), |(id, _)| id);
    let unknown = |error| Refusal::new(ProblemKind::NotFound, format!("there is no proposal {id}: {error}"));
    let proposal_id = parse_uuid(id).map_err(unknown)?;
    let entered = api.workplace.trust.answer((&agent, proposal_id), ruling, &api.workplace.clock).await?;
    Ok(told(StatusCode::OK, entered))
}

fn told(status: StatusCode, TrustEntry { event_id, ignored, state, is_new: _ }: TrustEntry) -> Response {
    let ignored = ignored.map(|why| why.to_string());
    json(status, &TrustEventResponse { version: ApiVersion, event_id, ignored, state })
}

fn agent(name: &str) -> Result<AgentId, Refusal> {
    AgentId::parse(name)
        .map_err(|error| Refusal::new(ProblemKind::NotFound, format!("there is no agent {name:?}: {error}")))
}

impl From<TrustError> for Refusal {
    fn from(error: TrustError) -> Self {
        let kind = match error {
            TrustError::UnknownAgent { .. } | TrustError::UnknownProposal { .. } => ProblemKind::NotFound,
            TrustError::Answered { .. } | TrustError::Nothing { .. } => ProblemKind::Conflict,
            TrustError::Record(error) => return error.into(),
        };
        Self::new(kind, crate::chain(&error))
    }
}

impl From<RecordError> for Refusal {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Another { .. } => Self::new(ProblemKind::Conflict, error.to_string()),
            RecordError::TooMany => Self::new(ProblemKind::Limit, error.to_string()),
            RecordError::Database(error) => error.into(),
            RecordError::Unwritten(_) => {
                tracing::error!(error = crate::chain(&error), "nothing can be recorded of an agent");
                Self::new(ProblemKind::Unavailable, "the node can't record this")
            }
        }
    }
}
