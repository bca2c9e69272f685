//! Tools for remote agents: `/mcp` beside the Worker API, by tokens of their own. The node's token isn't accepted there.

use super::SharedApi;
use crate::denials::DenialReason;
use crate::tools::RemoteSlots;
use axum::Router;
use axum::extract::Request;
use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use belljar_contract::worker::problem::ProblemKind;
use belljar_gateway::caller_slot::{CallerSlot, TooManyRequests};

/// Denial code for requests without a token, or with a malformed one.
const NOT_SHOWN: &str = "token_not_shown";

/// Denial code for requests with another host name or origin.
const OTHER_HOST: &str = "other_host_or_origin";

pub(super) fn routes(api: &SharedApi) -> Router {
    let seats = RemoteSlots::new(std::sync::Arc::clone(&api.workplace));
    let settings = &api.workplace.settings;
    let hosts = settings.mcp.names(settings.listen.ip());
    let tools = api.workplace.tools.remote(hosts, api.stop.clone()).layer(middleware::from_fn(few_at_once));
    crate::tools::guarded(tools, seats).layer(middleware::from_fn(denied))
}

/// Limits concurrent requests per caller, so that one caller can't crowd out others.
async fn few_at_once(request: Request, next: Next) -> Response {
    // Authentication has set the slot; a request without one can't get here.
    let Some(seat) = request.extensions().get::<CallerSlot>() else {
        return StatusCode::FORBIDDEN.into_response();
    };
    match seat.enter() {
        Ok(permit) => {
            let response = next.run(request).await;
            drop(permit);
            response
        }
        Err(TooManyRequests) => {
            let headers =
                [(RETRY_AFTER, HeaderValue::from(1)), (CONNECTION, HeaderValue::from_static("close"))];
            (StatusCode::TOO_MANY_REQUESTS, headers, TooManyRequests.to_string()).into_response()
        }
    }
}

/// Marks denials without a valid token for recording. Those about a token are recorded by the code that looked it up.
async fn denied(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let is_of_token = |value: &HeaderValue| value.to_str().is_ok_and(|text| text.contains("invalid_token"));
    let denied = match response.status() {
        StatusCode::UNAUTHORIZED if !response.headers().get(WWW_AUTHENTICATE).is_some_and(is_of_token) => {
            Some((ProblemKind::Authentication, NOT_SHOWN))
        }
        StatusCode::FORBIDDEN => Some((ProblemKind::Authorization, OTHER_HOST)),
        _ => None,
    };
    if let Some((kind, code)) = denied {
        response.extensions_mut().insert(DenialReason { kind, detail: code.to_owned() });
    }
    response
}
