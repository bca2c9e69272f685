//! MCP over HTTP: the library makes and interprets messages, and the host's HTTP client transmits them.
//!
//! Each response is read completely, also event streams. No additional stream is opened, so messages outside of responses are not
//! received.

use super::guarded::{ConnectionState, DisconnectReason};
use super::message;
use belljar_egress::exchange::{ExchangeError, Exchanger, IncomingAnswer, OutgoingRequest};
use belljar_egress::remote::{RemoteError, RemoteService};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpClientTransport,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The HTTP client of a server.
#[derive(Clone)]
struct HttpClient {
    remote: RemoteService,
    exchanger: Arc<Exchanger>,
    watched: Arc<ConnectionState>,
    most_bytes: usize,
    patience: Duration,
}

type Headers = HashMap<HeaderName, HeaderValue>;
type HttpTransportError = StreamableHttpError<RemoteError>;

const SESSION: &str = "mcp-session-id";
const CONTENT_TYPE: &str = "content-type";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Returns a transport to that server. `patience` is the time limit of each response.
pub(in crate::bridge) fn over_http(
    (remote, exchanger): (RemoteService, Arc<Exchanger>),
    watched: Arc<ConnectionState>,
    most_bytes: usize,
    patience: Duration,
) -> impl Transport<RoleClient> + 'static {
    let asker = HttpClient { remote, exchanger, watched, most_bytes, patience };
    // The URL is unused: the HTTP client knows the address.
    let config = StreamableHttpClientTransportConfig::with_uri("");
    StreamableHttpClientTransport::with_client(asker, config)
}

// === impl HttpClient ===

impl HttpClient {
    async fn ask(
        &self,
        method: &'static str,
        body: Vec<u8>,
        (session, headers): (Option<Arc<str>>, Headers),
    ) -> Result<IncomingAnswer, HttpTransportError> {
        let mut sent = vec![(Cow::Borrowed("accept"), format!("{JSON}, {EVENTS}"))];
        if !body.is_empty() {
            sent.push((Cow::Borrowed(CONTENT_TYPE), JSON.to_owned()));
        }
        sent.extend(session.map(|session| (Cow::Borrowed(SESSION), session.to_string())));
        for (name, value) in headers.iter().filter_map(|(name, value)| Some((name, value.to_str().ok()?))) {
            sent.push((Cow::Owned(name.as_str().to_owned()), value.to_owned()));
        }
        let outgoing = OutgoingRequest {
            method,
            target: String::new(),
            headers: sent,
            body,
            largest_answer: self.most_bytes,
            patience: self.patience,
        };
        let answered = self.remote.ask(&self.exchanger, outgoing, &[CONTENT_TYPE, SESSION]).await;
        answered.map_err(|error| {
            match &error {
                RemoteError::Exchange(ExchangeError::TooLarge { .. }) => {
                    self.watched.end(DisconnectReason::TooLarge);
                }
                RemoteError::Exchange(ExchangeError::Connection { .. }) => {
                    self.watched.end(DisconnectReason::HungUp);
                }
                RemoteError::Repeats => self.watched.end(DisconnectReason::Repeats),
                _ => {}
            }
            StreamableHttpError::Client(error)
        })
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = RemoteError;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpTransportError> {
        let body = serde_json::to_vec(&message)?;
        let had_session = session.is_some();
        let incoming = self.ask("POST", body, (session, headers)).await?;
        let of =
            |wanted: &str| incoming.headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
        let session = of(SESSION).filter(|session| is_session(session)).cloned();
        let kind = of(CONTENT_TYPE).map(String::as_str).unwrap_or_default();
        let is_asked = matches!(message, ClientJsonRpcMessage::Request(_));
        match incoming.status {
            202 | 204 => Ok(StreamableHttpPostResponse::Accepted),
            200..=299 if incoming.body.is_empty() && !is_asked => Ok(StreamableHttpPostResponse::Accepted),
            200..=299 if kind.starts_with(JSON) => {
                let message = read(&incoming.body, &self.watched)?;
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            200..=299 if kind.starts_with(EVENTS) => {
                let events = events(&incoming.body, &self.watched)?;
                Ok(StreamableHttpPostResponse::Sse(stream::iter(events).boxed(), session))
            }
            200..=299 => {
                Err(StreamableHttpError::UnexpectedContentType(Some(kind.chars().take(80).collect())))
            }
            404 if had_session => Err(StreamableHttpError::SessionExpired),
            // An error response may contain an MCP error.
            status => match read(&incoming.body, &self.watched) {
                Ok(message @ ServerJsonRpcMessage::Error(_)) => {
                    Ok(StreamableHttpPostResponse::Json(message, session))
                }
                _ => Err(HttpStatusError::new(status, None).into()),
            },
        }
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpTransportError> {
        self.ask("DELETE", Vec::new(), (Some(session), headers)).await.map(drop)
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        _: Option<Arc<str>>,
        _: Option<String>,
        _: Option<String>,
        _: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpTransportError> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

/// Returns true if a session id may be sent back in a header.
fn is_session(text: &str) -> bool {
    (1..=1_024).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn read(body: &[u8], watched: &ConnectionState) -> Result<ServerJsonRpcMessage, HttpTransportError> {
    message::read(body, watched)
        .map_err(|_| StreamableHttpError::UnexpectedServerResponse("not an MCP message".into()))
}

/// Parses the messages of a complete event stream.
fn events(body: &[u8], watched: &ConnectionState) -> Result<Vec<Result<Sse, SseError>>, HttpTransportError> {
    let text = String::from_utf8_lossy(body).replace("\r\n", "\n").replace('\r', "\n");
    let data_of = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    };
    let all = text.split("\n\n").map(data_of).filter(|data| !data.trim().is_empty());
    all.map(|data| {
        let message = read(data.as_bytes(), watched)?;
        Ok(Ok(Sse { data: Some(serde_json::to_string(&message)?), ..Sse::default() }))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_stream_accepts_all_line_endings() {
        let message = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        for end in ["\n", "\r\n", "\r"] {
            let text =
                format!(": hello{end}id: 1{end}data:{end}{end}event: message{end}data: {message}{end}{end}");
            assert_eq!(events(text.as_bytes(), &ConnectionState::default()).unwrap().len(), 1, "{end:?}");
        }
        assert!(events(b"data: hello\n\n", &ConnectionState::default()).is_err());
    }
}
