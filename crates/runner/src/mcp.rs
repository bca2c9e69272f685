//! Client of the host's MCP gateway (`docs/contracts/job.md#j14.1`): Streamable HTTP, of revision 2026-07-28, in which
//! every request is self-contained and has its metadata in `_meta`, or of an older one, with a handshake and a session
//! ([`family`]).
//!
//! Belljar's own gateway identifies its caller by the socket. To another gateway the runner presents the token that the
//! node names for this sandbox; programs of steps don't get it. Answers are parsed strictly, and limited in size and
//! time, because third-party servers are behind the gateway.

mod content;
mod events;
mod family;
mod message;
mod tool;

pub(crate) use content::ToolCallResult;
pub(crate) use tool::{Tool, ToolList};

use crate::deadline::{Deadline, Interruption};
use crate::http_client::{HttpClient, HttpError, HttpRequest, HttpResponse, ServerAddress, ServerUrlError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use events::Events;
use family::Family;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Duration;

/// A gateway.
pub(crate) struct Gateway {
    peer: HttpClient,
    family: Family,
    /// Value of `Authorization`, if there is one.
    authorization: Option<String>,
    /// Session that the last answer has named.
    named_session: Option<String>,
    last_id: u64,
    /// Timeout of a tool call.
    patience: Duration,
}

/// Capabilities of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GatewayCapabilities {
    pub(crate) tools: bool,
    pub(crate) resources: bool,
}

/// Reason why a gateway's answer can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum McpError {
    #[error(transparent)]
    Interrupted(#[from] Interruption),
    #[error("the hatch has no MCP gateway")]
    Absent,
    #[error("cannot reach the gateway")]
    Unsent(#[source] HttpError),
    #[error("the gateway has not answered; it may have executed the call")]
    NoAnswer(#[source] HttpError),
    #[error("the gateway returned status {0}")]
    Status(u16),
    #[error(
        "the gateway refused the token with status {0}: the node must set the sandbox's token in MCP_GATEWAY_TOKEN"
    )]
    Unauthorized(u16),
    #[error("{message} ({code})")]
    Refused { code: i64, message: String },
    #[error("the gateway's response is malformed: {0}")]
    Malformed(&'static str),
    #[error("the gateway's response is malformed")]
    Unreadable(#[source] serde_json::Error),
    #[error("the tool requests additional input, which the runner does not support")]
    InputRequired,
    #[error("the gateway speaks neither revision {REVISION} nor one of {}", family::WITH_SESSION.join(", "))]
    Revision,
    #[error("a header value has characters other than visible ASCII: {name}")]
    Header { name: &'static str },
}

/// The variables that name the gateway; the first that is set counts.
const URLS: [&str; 2] = ["SBA_MCP_GATEWAY_URL", "MCP_GATEWAY_URL"];
/// The variables with the token that a gateway takes; the first that is set counts.
pub(crate) const TOKENS: [&str; 2] = ["SBA_MCP_GATEWAY_TOKEN", "MCP_GATEWAY_TOKEN"];
const REVISION: &str = "2026-07-28";

const OF_LISTS: Duration = Duration::from_secs(15);
const OF_CALLS: Duration = Duration::from_secs(300);
/// Pause before the only retry of a request that could not be sent.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
const MOST_PAGES: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoverResult {
    supported_versions: Vec<String>,
    capabilities: Capabilities,
}

#[derive(Deserialize)]
struct Capabilities {
    #[serde(default)]
    tools: Option<Value>,
    #[serde(default)]
    resources: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolListPage {
    tools: Vec<Value>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// A request before it is serialised.
struct McpRequest<'a> {
    method: &'static str,
    /// Name that the header repeats, if the request has one.
    name: Option<&'a str>,
    params: Value,
    /// True if it may be repeated when it is unknown whether the gateway received it.
    is_idempotent: bool,
    patience: Duration,
}

// === impl Gateway ===

impl Gateway {
    /// The one that the environment names, if it names one.
    pub(crate) fn of_environment() -> Option<Result<Self, ServerUrlError>> {
        let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = URLS.iter().find_map(set)?;
        let token = TOKENS.iter().find_map(set);
        Some(ServerAddress::of_endpoint(&url).map(|place| Self::at(place, token.as_deref())))
    }

    fn at(place: ServerAddress, token: Option<&str>) -> Self {
        Self {
            peer: HttpClient::at(place),
            family: Family::Stateless,
            authorization: token.map(|token| format!("Bearer {}", token.trim())),
            named_session: None,
            last_id: 0,
            patience: OF_CALLS,
        }
    }

    /// Determines the gateway's capabilities, and the protocol family for all further requests.
    pub(crate) fn discover(&mut self, deadline: &Deadline<'_>) -> Result<GatewayCapabilities, McpError> {
        self.family = Family::Stateless;
        let discovered: Result<DiscoverResult, _> =
            self.ask(&McpRequest::list("server/discover", json!({})), deadline);
        match discovered {
            Ok(discovered) if discovered.supported_versions.iter().any(|version| version == REVISION) => {
                Ok(discovered.capabilities.offer())
            }
            Ok(_) => self.begin_session(deadline),
            Err(error) if family::may_be_older(&error) => self.begin_session(deadline),
            Err(error) => Err(error),
        }
    }

    /// Returns its tools, without those that can't be offered to a model.
    pub(crate) fn tools(&mut self, deadline: &Deadline<'_>) -> Result<ToolList, McpError> {
        let (mut listed, mut cursor): (_, Option<String>) = (ToolList::default(), None);
        for _ in 0..MOST_PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let page: ToolListPage = self.ask(&McpRequest::list("tools/list", params), deadline)?;
            page.tools.into_iter().for_each(|tool| listed.take(tool));
            match page.next_cursor {
                None => return Ok(listed),
                Some(next) if cursor.as_ref() == Some(&next) => {
                    return Err(McpError::Malformed("the tool list repeats a page cursor"));
                }
                next => cursor = next,
            }
        }
        Err(McpError::Malformed("the tool list has too many pages"))
    }

    /// Calls a tool.
    pub(crate) fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
        deadline: &Deadline<'_>,
    ) -> Result<ToolCallResult, McpError> {
        let asked = McpRequest {
            method: "tools/call",
            name: Some(tool),
            params: json!({ "name": tool, "arguments": arguments }),
            is_idempotent: false,
            patience: self.patience,
        };
        self.ask(&asked, deadline)
    }

    /// Reads a resource, as text.
    pub(crate) fn read_resource(
        &mut self,
        uri: &str,
        deadline: &Deadline<'_>,
    ) -> Result<content::Resource, McpError> {
        let params = json!({ "uri": uri });
        let asked = McpRequest { name: Some(uri), ..McpRequest::list("resources/read", params) };
        self.ask(&asked, deadline)
    }

    fn ask<T: DeserializeOwned>(
        &mut self,
        asked: &McpRequest<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<T, McpError> {
        let result = match self.ask_once(asked, deadline) {
            Err(McpError::Unsent(_)) => self.ask_again(asked, deadline),
            Err(McpError::NoAnswer(_)) if asked.is_idempotent => self.ask_again(asked, deadline),
            // The session has ended; the request had no effect in it.
            Err(McpError::Absent) if self.family.has_session() => {
                self.begin_session(deadline)?;
                self.ask_once(asked, deadline)
            }
            result => result,
        }?;
        serde_json::from_value(result).map_err(McpError::Unreadable)
    }

    fn ask_again(&mut self, asked: &McpRequest<'_>, deadline: &Deadline<'_>) -> Result<Value, McpError> {
        std::thread::sleep(AGAIN_AFTER);
        deadline.check()?;
        self.ask_once(asked, deadline)
    }

    fn ask_once(&mut self, asked: &McpRequest<'_>, deadline: &Deadline<'_>) -> Result<Value, McpError> {
        self.last_id += 1;
        let id = self.last_id;
        let mut params = asked.params.clone();
        if self.family == Family::Stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientInfo": family::client(),
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": asked.method, "params": params });
        let mut heard = ReceivedMessages {
            id,
            is_session: self.family != Family::Stateless,
            events: Events::default(),
            answers: Vec::new(),
        };
        let answer = self.post(asked, &body, &mut |body| heard.listen(body), deadline)?;
        self.named_session.clone_from(&answer.session_id);
        heard.conclude(&answer)
    }

    /// Posts a message of JSON-RPC.
    fn post(
        &mut self,
        asked: &McpRequest<'_>,
        body: &Value,
        is_enough: &mut dyn FnMut(&[u8]) -> bool,
        deadline: &Deadline<'_>,
    ) -> Result<HttpResponse, McpError> {
        let name = asked.name.map(header_value);
        let mut headers = self.family.headers(asked.method, name.as_deref());
        if let Some(authorization) = &self.authorization {
            if !authorization.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                return Err(McpError::Header { name: "the gateway's token" });
            }
            headers.push(("Authorization", authorization.as_str()));
        }
        let body = body.to_string();
        let question = HttpRequest {
            method: "POST",
            path: "",
            headers: &headers,
            body: Some(body.as_bytes()),
            accept: "application/json, text/event-stream",
            is_idempotent: asked.is_idempotent,
            patience: asked.patience,
        };
        self.peer.ask_until(question, deadline, is_enough).map_err(|why| match why {
            HttpError::Interrupted(interrupted) => interrupted.into(),
            why @ HttpError::Connect(_) => McpError::Unsent(why),
            why => McpError::NoAnswer(why),
        })
    }
}

impl Capabilities {
    fn offer(&self) -> GatewayCapabilities {
        GatewayCapabilities { tools: self.tools.is_some(), resources: self.resources.is_some() }
    }
}

impl<'a> McpRequest<'a> {
    fn list(method: &'static str, params: Value) -> Self {
        Self { method, name: None, params, is_idempotent: true, patience: OF_LISTS }
    }
}

/// Messages that have arrived in answer to one request.
struct ReceivedMessages {
    id: u64,
    /// True if the gateway may send requests itself meanwhile. The runner has declared no capabilities, and answers
    /// none.
    is_session: bool,
    events: Events,
    answers: Vec<Result<Value, McpError>>,
}

// === impl ReceivedMessages ===

impl ReceivedMessages {
    /// Reads the new part of a body of events; returns true if that is enough.
    fn listen(&mut self, body: &[u8]) -> bool {
        while let Some(event) = self.events.next(body) {
            if self.is_session && message::asks(event.as_bytes()) {
                continue;
            }
            self.answers.extend(message::read(event.as_bytes(), self.id).transpose());
        }
        !self.answers.is_empty()
    }

    fn conclude(mut self, answer: &HttpResponse) -> Result<Value, McpError> {
        let HttpResponse { status, is_stream, body, .. } = answer;
        match (status, is_stream) {
            (200, true) => {
                self.listen(body);
                let mut answers = self.answers.into_iter();
                match (answers.next(), answers.next()) {
                    (None, _) => Err(McpError::Malformed("the event stream ended without a response")),
                    (Some(answer), None) => answer,
                    (Some(_), Some(_)) => Err(McpError::Malformed("the event stream has two responses")),
                }
            }
            (200, false) => match message::read(body, self.id)? {
                Some(result) => Ok(result),
                None => Err(McpError::Malformed("it is a notification, not a response")),
            },
            // A refusal may have an HTTP status of its own.
            (status, _) => match (message::read(body, self.id), status) {
                (Err(refused @ McpError::Refused { .. }), _) => Err(refused),
                (_, 404) => Err(McpError::Absent),
                (_, &status @ (401 | 403)) => Err(McpError::Unauthorized(status)),
                (_, &status) => Err(McpError::Status(status)),
            },
        }
    }
}

/// Returns a name in a form for a header: names with special characters are encoded, as the revision requires.
fn header_value(name: &str) -> Cow<'_, str> {
    let is_plain = name.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && name.trim() == name
        && !name.starts_with("=?base64?");
    match is_plain {
        true => name.into(),
        false => format!("=?base64?{}?=", STANDARD.encode(name)).into(),
    }
}

#[cfg(test)]
mod tests;
