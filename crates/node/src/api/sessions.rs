//! Sessions: `/v1/worker/sessions`.

use super::answer::{Refusal, json};
use super::health::check_recorded;
use super::run::{check_volumes, traceparent};
use super::{SharedApi, body, endpoints};
use crate::access_rules::AccessRequest;
use crate::images::OF_SESSION;
use crate::models::CallOwner;
use crate::session::{Session, SessionError, SessionProvision};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use belljar_contract::id::{SessionId, TaskId};
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::session::{
    EndSessionRequest, OpenSessionRequest, SessionExecRequest, SessionListResponse, SessionResponse,
    SessionStatus,
};
use std::sync::Arc;

/// `POST /v1/worker/sessions`.
pub(super) async fn open(State(api): State<SharedApi>, request: Request) -> Result<Response, Refusal> {
    let said = traceparent(&request);
    let document = body::read(request, api.workplace.settings.max_request_bytes).await?;
    let wanted = OpenSessionRequest::parse(&document)?;
    check_recorded(&api)?;
    endpoints::check_session(&wanted)?;
    let image = api.workplace.images.choose(wanted.image.as_deref(), OF_SESSION)?;
    let models = api.workplace.models.allowed_in_session(&wanted)?;
    let house = api.workplace.tools.house();
    let terms =
        house.map(|house| house.terms(wanted.agent_id.as_ref(), &AccessRequest::of_session(&wanted, &image)));
    check_volumes(&api, image.clone(), OF_SESSION).await?;
    let owner = CallOwner {
        user_id: wanted.user_id.clone(),
        trace_id: wanted.traceparent.as_ref().or(said.as_ref()).map(|parent| parent.trace_id().to_owned()),
    };
    let with = SessionProvision { image, models, owner, terms: terms.transpose()? };
    let (session, is_new) = api.sessions.open(wanted, with).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(told(status, &session, SessionStatus::Open))
}

/// `GET /v1/worker/sessions`.
pub(super) async fn list(State(api): State<SharedApi>) -> Response {
    let sessions = api.sessions.all().iter().map(|session| session.told(SessionStatus::Open)).collect();
    json(StatusCode::OK, &SessionListResponse { version: ApiVersion, sessions })
}

/// `GET /v1/worker/sessions/{session_id}`.
pub(super) async fn show(State(api): State<SharedApi>, Path(id): Path<String>) -> Result<Response, Refusal> {
    let session = find(&api, &id)?;
    Ok(told(StatusCode::OK, &session, SessionStatus::Open))
}

/// `POST /v1/worker/sessions/{session_id}/exec`.
pub(super) async fn exec(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let settings = &api.workplace.settings;
    let document = body::read(request, settings.max_request_bytes).await?;
    let wanted = SessionExecRequest::parse(&document)?;
    let session = find_allowed(&api, &id)?;
    check_recorded(&api)?;
    check(&session, wanted.task_id.as_ref(), wanted.session_id.as_ref())?;
    api.workplace.metrics.command_run();
    let workplace = Arc::clone(&api.workplace);
    let answer = session.exec(wanted, settings.timeouts, Arc::new(move || workplace.now())).await?;
    Ok(json(StatusCode::OK, &answer))
}

/// `POST /v1/worker/sessions/{session_id}/end`. Returns when the session's sandbox is gone.
pub(super) async fn end(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let document = body::read_or_nothing(request, api.workplace.settings.max_request_bytes).await?;
    let wanted = EndSessionRequest::parse(&document)?;
    let session = find(&api, &id)?;
    check(&session, wanted.task_id.as_ref(), wanted.session_id.as_ref())?;
    api.sessions.end(&session).await?;
    Ok(told(StatusCode::OK, &session, SessionStatus::Ended))
}

fn find(api: &SharedApi, id: &str) -> Result<Arc<Session>, Refusal> {
    Ok(api.sessions.find(&parse(id)?)?)
}

/// Finds a session for an operation in it, which its agent's current permissions must still cover.
pub(super) fn find_allowed(api: &SharedApi, id: &str) -> Result<Arc<Session>, Refusal> {
    Ok(api.sessions.find_allowed(&parse(id)?)?)
}

fn parse(id: &str) -> Result<SessionId, Refusal> {
    let unknown = |error| Refusal::new(ProblemKind::NotFound, format!("there is no session {id}: {error}"));
    SessionId::parse(id).map_err(unknown)
}

/// Checks that the ids in a request's body match the session in its path.
pub(super) fn check(
    session: &Session,
    task_id: Option<&TaskId>,
    session_id: Option<&SessionId>,
) -> Result<(), Refusal> {
    let own = session.request();
    let is_task = task_id.is_none_or(|task_id| task_id.key() == own.task_id.key());
    let is_session = session_id.is_none_or(|session_id| session_id.key() == own.session_id.key());
    match (is_task, is_session) {
        (true, true) => Ok(()),
        (false, _) => {
            let detail = format!("$.task_id: session {} is for task {}", own.session_id, own.task_id);
            Err(Refusal::new(ProblemKind::Conflict, detail))
        }
        (_, false) => {
            let detail = format!("$.session_id: the path names session {}", own.session_id);
            Err(Refusal::new(ProblemKind::Conflict, detail))
        }
    }
}

fn told(status: StatusCode, session: &Session, how: SessionStatus) -> Response {
    json(status, &SessionResponse { version: ApiVersion, session: session.told(how) })
}

impl From<SessionError> for Refusal {
    fn from(error: SessionError) -> Self {
        let kind = match &error {
            SessionError::Unknown(_) | SessionError::UnknownTerminal(_) => ProblemKind::NotFound,
            SessionError::Demoted(_) | SessionError::TooMuch(_) => ProblemKind::Authorization,
            SessionError::Other(_) | SessionError::NotStarted(_) => ProblemKind::Conflict,
            SessionError::TooManyCommands(_) | SessionError::TooManyTerminals(_) => ProblemKind::Limit,
            SessionError::TooMany(_) | SessionError::NoRoom => ProblemKind::Overloaded,
            SessionError::Stopping | SessionError::NoModels(_) => ProblemKind::Unavailable,
            SessionError::Sandbox(_) | SessionError::Serve(_) | SessionError::Unrecorded(_) => {
                ProblemKind::Internal
            }
            SessionError::Terminal(_) => ProblemKind::Conflict,
        };
        Self::new(kind, crate::chain(&error))
    }
}
