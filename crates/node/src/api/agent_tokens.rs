//! Tokens of remote agents: `POST /v1/worker/mcp/tokens`, and their revocation. Each is recorded before it is returned.

use super::answer::{Refusal, json};
use super::{SharedApi, body, job};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use belljar_contract::id::{AgentId, JobId, ProjectId, TaskId, UserId};
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::token::{
    IssueTokenRequest, IssueTokenResponse, RemoteAgent, RevokeTokenRequest, RevokeTokenResponse,
};
use belljar_store::tokens::{HolderKind, IssueError, TokenDigest, TokenHolder};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// Audit record of an issued token.
#[derive(Serialize)]
struct TokenIssuedRecord<'a> {
    token_id: &'a str,
    agent: RemoteAgent,
    task_id: Option<&'a TaskId>,
    job_id: Option<&'a JobId>,
    project_id: Option<&'a ProjectId>,
    user_id: Option<&'a UserId>,
    agent_id: Option<&'a AgentId>,
    expires_at: Timestamp,
}

#[derive(Serialize)]
struct TokenRevokedRecord<'a> {
    token_id: &'a str,
}

/// Kinds of the audit records.
const ISSUED: &str = "mcp_token_issued";
const REVOKED: &str = "mcp_token_revoked";

const MOST_REQUEST_BYTES: usize = 64 << 10;

/// `POST /v1/worker/mcp/tokens`.
pub(super) async fn issue(State(api): State<SharedApi>, request: Request) -> Result<Response, Refusal> {
    let wanted = IssueTokenRequest::parse(&body::read(request, MOST_REQUEST_BYTES).await?)?;
    if let Some(house) = api.workplace.tools.house() {
        house.check_known(wanted.agent_id.as_ref())?;
    }
    let now = api.workplace.now();
    let life = SignedDuration::try_from(wanted.life()).unwrap_or(SignedDuration::MAX);
    let expires_at = now.checked_add(life).unwrap_or(Timestamp::MAX);
    let (secret, record) = api.workplace.tokens.issue(holder(&wanted), now, expires_at).await?;
    let digest = secret.digest();
    let issued = TokenIssuedRecord {
        token_id: digest.id(),
        agent: wanted.kind,
        task_id: wanted.task_id.as_ref(),
        job_id: wanted.job_id.as_ref(),
        project_id: wanted.project_id.as_ref(),
        user_id: wanted.user_id.as_ref(),
        agent_id: wanted.agent_id.as_ref(),
        expires_at: record.expires_at,
    };
    if !api.workplace.tools.record(ISSUED, &issued).await {
        // No client has seen the token. A token whose issue can't be recorded must not be valid.
        api.workplace.tokens.revoke(secret.reveal(), now).await?;
        return Err(unrecorded());
    }
    let answer = IssueTokenResponse {
        version: ApiVersion,
        token: secret.reveal().to_owned(),
        token_id: digest.id().to_owned(),
        expires_at: record.expires_at,
    };
    Ok(json(StatusCode::CREATED, &answer))
}

/// `POST /v1/worker/mcp/tokens:revoke`. Revoking an unknown token succeeds with `revoked: false`.
pub(super) async fn revoke(State(api): State<SharedApi>, request: Request) -> Result<Response, Refusal> {
    let wanted = RevokeTokenRequest::parse(&body::read(request, MOST_REQUEST_BYTES).await?)?;
    // The token is revoked first: a failing audit log must not keep it valid.
    let revoked = api.workplace.tokens.revoke(&wanted.token, api.workplace.now()).await?;
    if let Some(digest) = TokenDigest::of(&wanted.token).filter(|_| revoked)
        && !api.workplace.tools.record(REVOKED, &TokenRevokedRecord { token_id: digest.id() }).await
    {
        return Err(unrecorded());
    }
    Ok(json(StatusCode::OK, &RevokeTokenResponse { version: ApiVersion, revoked }))
}

fn holder(wanted: &IssueTokenRequest) -> TokenHolder {
    let kind = match wanted.kind {
        RemoteAgent::Sandbox => HolderKind::Sandbox,
        RemoteAgent::ProjectManager => HolderKind::ProjectManager,
        RemoteAgent::ProjectAnalyst => HolderKind::ProjectAnalyst,
        RemoteAgent::Operator => HolderKind::Operator,
    };
    TokenHolder {
        task_id: wanted.task_id.clone(),
        job_id: wanted.job_id.clone(),
        project_id: wanted.project_id.clone(),
        user: wanted.user_id.clone(),
        agent_id: wanted.agent_id.clone(),
        ..TokenHolder::new(kind)
    }
}

fn unrecorded() -> Refusal {
    Refusal::new(ProblemKind::Unavailable, "the node can't record this")
}

impl From<IssueError> for Refusal {
    fn from(error: IssueError) -> Self {
        match error {
            IssueError::UnknownJob { ref job_id } => {
                tracing::debug!(%error, "no token");
                job::unknown(job_id)
            }
            IssueError::Over { .. } => Self::new(ProblemKind::Conflict, error.to_string()),
            IssueError::TooMany { .. } => Self::new(ProblemKind::Limit, error.to_string()),
            IssueError::Incomplete(_) | IssueError::Lifetime => {
                Self::new(ProblemKind::Validation, error.to_string())
            }
            IssueError::Random(_) => Self::new(ProblemKind::Unavailable, error.to_string()),
            IssueError::Database(error) => error.into(),
        }
    }
}
