//! Grants: `/v1/worker/grants`. Only clients with the node's token can issue, list, revoke and validate them.

use super::answer::{Refusal, json};
use super::query::Query;
use super::{SharedApi, body};
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use belljar_contract::grant::ExecutionGrant;
use belljar_contract::id::GrantId;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::grant::{
    GrantDocument, GrantListResponse, IssueGrantRequest, IssueGrantResponse, RevokeGrantResponse,
    ValidateGrantRequest, ValidateGrantResponse,
};
use belljar_contract::worker::problem::ProblemKind;
use belljar_execution::grant::{GRANT_ISSUED, GRANT_REVOKED};
use belljar_policy::grant::{GrantRefusal, entitle};
use belljar_store::grants::IssueGrantError;
use jiff::{SignedDuration, Timestamp};
use serde_json::json as object;
use uuid::Uuid;

/// Default and maximum number of grants per page.
const USUAL: u32 = 100;
const MOST: u32 = 500;

const MOST_REQUEST_BYTES: usize = 64 << 10;

/// `POST /v1/worker/grants`.
pub(super) async fn issue(State(api): State<SharedApi>, request: Request) -> Result<Response, Refusal> {
    let wanted = IssueGrantRequest::parse(&body::read(request, MOST_REQUEST_BYTES).await?)?;
    let now = api.workplace.now();
    let grant = grant(wanted, now);
    let (secret, record) = api.workplace.grants.issue(grant, now).await?;
    if !api.workplace.tools.record(GRANT_ISSUED, &object!({ "grant": record.grant })).await {
        // No client has seen the secret. A grant whose issue can't be recorded must not be valid.
        api.workplace.grants.revoke(&record.grant.id, now).await?;
        return Err(unrecorded());
    }
    let answer = IssueGrantResponse {
        version: ApiVersion,
        grant: GrantDocument::new(&record.grant, record.issued_at),
        secret: secret.reveal().to_owned(),
    };
    Ok(json(StatusCode::CREATED, &answer))
}

/// `GET /v1/worker/grants`.
pub(super) async fn list(State(api): State<SharedApi>, uri: Uri) -> Result<Response, Refusal> {
    let mut query = Query::parse(uri.query().unwrap_or_default())?;
    let read = |text: &str| GrantId::parse(text).ok();
    let after = query.optional("page_token", "a `next_page_token` of this node", read)?;
    let limit = query.limit(USUAL, MOST)?;
    query.finish()?;
    let page = api.workplace.grants.list(after.as_ref(), limit).await?;
    let grants =
        page.entries.iter().map(|record| GrantDocument::new(&record.grant, record.issued_at)).collect();
    Ok(json(StatusCode::OK, &GrantListResponse { version: ApiVersion, grants, next_page_token: page.next }))
}

/// `POST /v1/worker/grants/{grant_id}/revoke`.
pub(super) async fn revoke(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
) -> Result<Response, Refusal> {
    let id = id(&name)?;
    if api.workplace.grants.find(&id).await?.is_none() {
        return Err(unknown(id.as_str()));
    }
    // The grant is revoked first: a failing audit log must not keep it valid.
    let revoked = api.workplace.grants.revoke(&id, api.workplace.now()).await?;
    if revoked && !api.workplace.tools.record(GRANT_REVOKED, &object!({ "grant_id": id })).await {
        return Err(unrecorded());
    }
    Ok(json(StatusCode::OK, &RevokeGrantResponse { version: ApiVersion, revoked }))
}

/// `POST /v1/worker/grants/{grant_id}/validate`. A client without the secret doesn't learn which grants there are.
pub(super) async fn validate(
    State(api): State<SharedApi>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let wanted = ValidateGrantRequest::parse(&body::read(request, MOST_REQUEST_BYTES).await?)?;
    let found = api.workplace.grants.find(&id(&name)?).await?;
    let shown = found.filter(|record| record.is_shown_by(&wanted.secret)).ok_or(GrantRefusal::NotProven)?;
    let entitled = entitle(shown.grant, &wanted.graph_id, api.workplace.now())?;
    let grant = GrantDocument::new(entitled.grant(), shown.issued_at);
    Ok(json(StatusCode::OK, &ValidateGrantResponse { version: ApiVersion, grant }))
}

fn grant(wanted: IssueGrantRequest, now: Timestamp) -> ExecutionGrant {
    let end = |life| {
        let life = SignedDuration::try_from(life).unwrap_or(SignedDuration::MAX);
        now.checked_add(life).unwrap_or(Timestamp::MAX)
    };
    ExecutionGrant {
        id: GrantId::from_uuid(Uuid::now_v7()),
        expires_at: wanted.life().map(end),
        subject: wanted.subject,
        billing_account_id: wanted.billing_account_id,
        user_id: wanted.user_id,
        scopes: wanted.scopes,
        allow_sandbox: wanted.allow_sandbox,
        revoked_at: None,
    }
}

fn id(name: &str) -> Result<GrantId, Refusal> {
    GrantId::parse(name).map_err(|_| unknown(name))
}

fn unknown(name: &str) -> Refusal {
    Refusal::new(ProblemKind::NotFound, format!("there is no grant {name}"))
}

fn unrecorded() -> Refusal {
    Refusal::new(ProblemKind::Unavailable, "the node can't record this")
}

impl From<GrantRefusal> for Refusal {
    fn from(refusal: GrantRefusal) -> Self {
        Self::new(ProblemKind::Authorization, format!("{}: {refusal}", refusal.code()))
    }
}

impl From<IssueGrantError> for Refusal {
    fn from(error: IssueGrantError) -> Self {
        match error {
            IssueGrantError::TooMany => Self::new(ProblemKind::Limit, error.to_string()),
            IssueGrantError::Random(_) => Self::new(ProblemKind::Unavailable, error.to_string()),
            IssueGrantError::Unwritten(_) => Self::new(ProblemKind::Internal, error.to_string()),
            IssueGrantError::Database(error) => error.into(),
        }
    }
}
