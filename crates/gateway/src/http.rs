//! MCP over HTTP: one path, one message per request.

use crate::Gateway;
use crate::caller_slot::CallerSlot;
use crate::long_messages::{LARGEST_SHORT_BYTES, LONG_MESSAGES};
use crate::mcp::Server;
use crate::strict_messages;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use belljar_tools::turn_queue::Turn;
use futures_util::StreamExt;
use rmcp::model::{ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Kind of endpoint.
#[derive(Debug, Clone)]
pub enum EndpointKind {
    /// Sockets that only one caller has.
    Hatch(CallerSlot),
    /// An endpoint that several callers can reach: authentication has put the [`CallerSlot`] into the request's extensions. Contains
    /// the endpoint's host names.
    Remote(Vec<String>),
}

/// Headers of MCP.
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Origins of pages that this machine itself serves.
const SAME_MACHINE: [&str; 3] = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];

/// Maximum size of a message, in bytes.
const LARGEST_MESSAGE_BYTES: usize = 4 << 20;

/// Maximum time for receiving a long message, from its turn on.
const LONG_WITHIN: Duration = Duration::from_secs(60);

/// Maximum size of a too large message that is read before the refusal, and maximum time for it.
const LARGEST_DISCARD_BYTES: usize = 64 << 20;
const LONGEST_DISCARD: Duration = Duration::from_secs(5);

/// `POST /mcp`, for the callers of that endpoint.
pub fn routes(gateway: Arc<Gateway>, door: EndpointKind, stopped: CancellationToken) -> Router {
    let config = StreamableHttpServerConfig::default()
        // No session state is kept between requests.
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(LARGEST_MESSAGE_BYTES)
        .with_cancellation_token(stopped)
        // Requests from web pages have an origin; a malicious page's is rejected. Other clients send none.
        .enforce_origin_validation();
    let (seat, config) = match door {
        // A page may be served by a tool in the same sandbox.
        EndpointKind::Hatch(seat) => (Some(seat), config.with_allowed_origins(SAME_MACHINE)),
        // An empty list would accept any host name, so the default loopback names stay.
        EndpointKind::Remote(hosts) if hosts.is_empty() => (None, config),
        EndpointKind::Remote(hosts) => (None, config.with_allowed_hosts(hosts)),
    };
    let of_hatch = seat.clone();
    let server = Server { gateway, seat };
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let service = Router::new().route_service("/mcp", service);
    let read = middleware::from_fn(move |request, next| read_whole(of_hatch.clone(), request, next));
    service.layer(read).layer(middleware::from_fn(said_once))
}

/// Reads the message before anything is answered: closing a connection while the client still sends would lose the response.
///
/// Long messages of one caller are handled one at a time, from the first bytes beyond a short message until the response
/// ([`LONG_MESSAGES`]).
async fn read_whole(seat: Option<CallerSlot>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let seat = seat.or_else(|| parts.extensions.get::<CallerSlot>().cloned());
    let (message, turn) = match collect(body.into_data_stream(), seat.as_ref()).await {
        Ok(collected) => collected,
        Err((status, reason)) => return (status, reason).into_response(),
    };
    if parts.method == Method::POST
        && let Err(error) = checked(message.clone(), turn.as_ref()).await
    {
        let answer: ServerJsonRpcMessage = JsonRpcMessage::error(error, None);
        return (StatusCode::BAD_REQUEST, Json(answer)).into_response();
    }
    if let Some(turn) = turn {
        // The turn is held until the call ends, even if the client doesn't wait for it.
        parts.extensions.insert(turn);
    }
    next.run(Request::from_parts(parts, Body::from(message))).await
}

/// Reads a message to its end; waits for a turn if it is long.
async fn collect(
    mut chunks: BodyDataStream,
    seat: Option<&CallerSlot>,
) -> Result<(Bytes, Option<Turn>), (StatusCode, String)> {
    let mut message = Vec::new();
    let mut turn: Option<(Turn, Instant)> = None;
    loop {
        let chunk = match &turn {
            None => chunks.next().await,
            Some((_, until)) => {
                let late = |_| {
                    (StatusCode::REQUEST_TIMEOUT, "the message did not arrive completely in time".to_owned())
                };
                tokio::time::timeout_at(*until, chunks.next()).await.map_err(late)?
            }
        };
        let Some(chunk) = chunk else { break };
        let chunk = chunk.map_err(|_| (StatusCode::BAD_REQUEST, "the message is incomplete".to_owned()))?;
        let bytes = message.len() + chunk.len();
        if bytes > LARGEST_MESSAGE_BYTES {
            drop(message);
            // If the rest can't be read in that time, the connection is closed.
            let _ = tokio::time::timeout(LONGEST_DISCARD, discard(chunks)).await;
            let reason = format!("the message is larger than {LARGEST_MESSAGE_BYTES} bytes");
            return Err((StatusCode::PAYLOAD_TOO_LARGE, reason));
        }
        if bytes > LARGEST_SHORT_BYTES && turn.is_none() {
            turn = Some((long_turn(seat).await?, Instant::now() + LONG_WITHIN));
        }
        message.extend_from_slice(&chunk);
    }
    Ok((message.into(), turn.map(|(turn, _)| turn)))
}

async fn long_turn(seat: Option<&CallerSlot>) -> Result<Turn, (StatusCode, String)> {
    let caller = seat.map(|seat| seat.caller().queue()).unwrap_or_default();
    let turn = LONG_MESSAGES.enter(&format!("call {caller}")).await;
    turn.map_err(|error| (StatusCode::TOO_MANY_REQUESTS, error.to_string()))
}

/// Parses a message strictly; a long one on another thread.
async fn checked(message: Bytes, turn: Option<&Turn>) -> Result<(), ErrorData> {
    match turn {
        None => strict_messages::read(&message).map(drop),
        Some(turn) => {
            let read = turn.work(move || strict_messages::read(&message).map(drop)).await;
            read.unwrap_or_else(|_| Err(ErrorData::internal_error("the message can't be read", None)))
        }
    }
}

/// Reads and drops the rest of a too large body, up to a limit.
async fn discard(mut chunks: BodyDataStream) {
    let mut left = LARGEST_DISCARD_BYTES;
    while let Some(Ok(chunk)) = chunks.next().await {
        match left.checked_sub(chunk.len()) {
            Some(less) => left = less,
            None => return,
        }
    }
}

/// Refuses a request with a duplicate of a header that decisions depend on, or with an ambiguous host: another program on the way
/// could interpret it differently.
async fn said_once(request: Request, next: Next) -> Response {
    let refuse = |reason: String| (StatusCode::BAD_REQUEST, reason).into_response();
    if let Some(name) = said_twice(request.headers()) {
        return refuse(format!("duplicate header {name}"));
    }
    match is_of_one_host(&request) {
        false => refuse("the Host header is malformed, or differs from the request's target".to_owned()),
        true => next.run(request).await,
    }
}

/// Returns true if `Host` is a host with or without a port, and a target with a host names the same one.
fn is_of_one_host(request: &Request) -> bool {
    let named = match request.headers().get(HOST).map(HeaderValue::to_str) {
        Some(Ok(named)) => named,
        Some(Err(_)) => return false,
        // The MCP library decides whether a `Host` is required.
        None => return request.uri().authority().is_none_or(|target| is_host(target.as_str())),
    };
    is_host(named)
        && request.uri().authority().is_none_or(|target| target.as_str().eq_ignore_ascii_case(named))
}

/// Returns true if a text is a host, optionally with a port: some parsers of `127.0.0.1:80.other.example` ignore the text behind
/// the digits.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        // A colon within brackets belongs to an address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_port = |port: &str| {
        let is_number = (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
        is_number && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let is_good = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_name),
    };
    is_good && port.is_none_or(is_port)
}

fn said_twice(headers: &HeaderMap) -> Option<HeaderName> {
    let judged_by = [HOST, ORIGIN, AUTHORIZATION, CONTENT_TYPE, VERSION, METHOD, NAME, SESSION];
    judged_by.into_iter().find(|name| headers.get_all(name).iter().nth(1).is_some())
}
