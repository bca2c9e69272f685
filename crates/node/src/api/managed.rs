//! Proxying requests to managed services: `POST /v1/worker/managed-services/{service_id}/proxy:http`.

use super::answer::{Refusal, json};
use super::{SharedApi, body};
use crate::managed::ManagedError;
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use belljar_contract::worker::managed::ProxyHttpRequest;
use belljar_contract::worker::problem::ProblemKind;
use std::net::SocketAddr;

pub(super) async fn proxy_http(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    ConnectInfo(caller): ConnectInfo<SocketAddr>,
    request: Request,
) -> Result<Response, Refusal> {
    let document = body::read(request, api.workplace.settings.max_request_bytes).await?;
    let wanted = ProxyHttpRequest::parse(&document)?;
    let answer = api.workplace.managed.pass_on(&id, wanted, caller).await?;
    Ok(json(StatusCode::OK, &answer))
}

impl From<ManagedError> for Refusal {
    fn from(error: ManagedError) -> Self {
        let kind = match &error {
            ManagedError::Unknown { .. } => ProblemKind::NotFound,
            ManagedError::Exchange(_) => ProblemKind::Upstream,
            // A request that can't be recorded is not sent.
            ManagedError::Audit(_) | ManagedError::Event(_) | ManagedError::Died(_) => ProblemKind::Internal,
        };
        Self::new(kind, crate::chain(&error))
    }
}
