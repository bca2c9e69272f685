//! The host's MCP gateway, by a hatch of the sandbox (`spec/1 §MCP Tool Access`): Streamable HTTP of revision 2026-07-28, where
//! every request stands for itself and says so in its `_meta`.
//!
//! There is no session and no token: who asks, the gateway knows by the socket. What it answers is read strictly, and is bounded
//! in size and time: behind it stand servers of many people.

mod content;
mod events;
mod message;
mod tool;

pub(crate) use content::Called;
pub(crate) use tool::{Listed, Tool};

use crate::deadline::{Deadline, Interrupted};
use crate::local_http::{Answer, NoAnswer, NoPlace, Peer, Place, Question};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use events::Events;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Duration;

/// A gateway.
pub(crate) struct Gateway {
    peer: Peer,
    path: &'static str,
    last_id: u64,
    /// So long a tool may take.
    patience: Duration,
}

/// What there is at a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) tools: bool,
    pub(crate) resources: bool,
}

/// Why a gateway's answer is of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum McpError {
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    #[error("there is no gateway at the hatch")]
    Absent,
    #[error("the gateway can't be reached")]
    Unsent(#[source] NoAnswer),
    #[error("the gateway has not answered, and may have done what was asked")]
    NoAnswer(#[source] NoAnswer),
    #[error("the gateway has answered with the status {0}")]
    Status(u16),
    #[error("{message} ({code})")]
    Refused { code: i64, message: String },
    #[error("the gateway's answer is none: {0}")]
    Malformed(&'static str),
    #[error("the gateway's answer is none")]
    Unreadable(#[source] serde_json::Error),
    #[error("the tool asks for something more before it answers, and nobody here can give it")]
    InputRequired,
    #[error("the gateway does not speak revision {REVISION}")]
    Revision,
}

/// The variable that names the gateway.
const VARIABLE: &str = "MCP_GATEWAY_URL";
const REVISION: &str = "2026-07-28";

const OF_LISTS: Duration = Duration::from_secs(15);
const OF_CALLS: Duration = Duration::from_secs(300);
/// What couldn't be sent is tried once more after so long.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
const MOST_PAGES: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered {
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
struct Page {
    tools: Vec<Value>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// A question to it, before it is written down.
struct Asked<'a> {
    method: &'static str,
    /// What is named in it, as the header says it too.
    name: Option<&'a str>,
    params: Value,
    /// Whether it may be asked again when nobody knows whether it was heard.
    is_idempotent: bool,
    patience: Duration,
}

// === impl Gateway ===

impl Gateway {
    /// The one that the environment names, if it names one.
    pub(crate) fn of_environment() -> Option<Result<Self, NoPlace>> {
        let url = std::env::var(VARIABLE).ok().filter(|url| !url.is_empty())?;
        Some(Place::of_url(&url).map(Self::at))
    }

    fn at(place: Place) -> Self {
        let path = if place.base().is_empty() { "/" } else { "" };
        Self { peer: Peer::at(place), path, last_id: 0, patience: OF_CALLS }
    }

    /// What there is.
    pub(crate) fn discover(&mut self, deadline: &Deadline<'_>) -> Result<Offer, McpError> {
        let discovered: Discovered = self.ask(&Asked::list("server/discover", json!({})), deadline)?;
        if !discovered.supported_versions.iter().any(|version| version == REVISION) {
            return Err(McpError::Revision);
        }
        let Capabilities { tools, resources } = discovered.capabilities;
        Ok(Offer { tools: tools.is_some(), resources: resources.is_some() })
    }

    /// Its tools, those left out that can't be offered to anybody.
    pub(crate) fn tools(&mut self, deadline: &Deadline<'_>) -> Result<Listed, McpError> {
        let (mut listed, mut cursor): (_, Option<String>) = (Listed::default(), None);
        for _ in 0..MOST_PAGES {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let page: Page = self.ask(&Asked::list("tools/list", params), deadline)?;
            page.tools.into_iter().for_each(|tool| listed.take(tool));
            match page.next_cursor {
                None => return Ok(listed),
                Some(next) if cursor.as_ref() == Some(&next) => {
                    return Err(McpError::Malformed("its list begins again and again"));
                }
                next => cursor = next,
            }
        }
        Err(McpError::Malformed("its list has no end"))
    }

    /// Calls a tool.
    pub(crate) fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
        deadline: &Deadline<'_>,
    ) -> Result<Called, McpError> {
        let asked = Asked {
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
        let asked = Asked { name: Some(uri), ..Asked::list("resources/read", params) };
        self.ask(&asked, deadline)
    }

    fn ask<T: DeserializeOwned>(
        &mut self,
        asked: &Asked<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<T, McpError> {
        let result = match self.ask_once(asked, deadline) {
            Err(McpError::Unsent(_)) => self.ask_again(asked, deadline),
            Err(McpError::NoAnswer(_)) if asked.is_idempotent => self.ask_again(asked, deadline),
            result => result,
        }?;
        serde_json::from_value(result).map_err(McpError::Unreadable)
    }

    fn ask_again(&mut self, asked: &Asked<'_>, deadline: &Deadline<'_>) -> Result<Value, McpError> {
        std::thread::sleep(AGAIN_AFTER);
        deadline.check()?;
        self.ask_once(asked, deadline)
    }

    fn ask_once(&mut self, asked: &Asked<'_>, deadline: &Deadline<'_>) -> Result<Value, McpError> {
        self.last_id += 1;
        let id = self.last_id;
        let mut params = asked.params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": { "name": "cynode-sba", "version": env!("CARGO_PKG_VERSION") },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body =
            json!({ "jsonrpc": "2.0", "id": id, "method": asked.method, "params": params }).to_string();
        let name = asked.name.map(header_value);
        let mut headers = vec![("MCP-Protocol-Version", REVISION), ("Mcp-Method", asked.method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        let question = Question {
            method: "POST",
            path: self.path,
            headers: &headers,
            body: Some(body.as_bytes()),
            accept: "application/json, text/event-stream",
            is_idempotent: asked.is_idempotent,
            patience: asked.patience,
        };
        let mut heard = Heard { id, events: Events::default(), answers: Vec::new() };
        let answer = self.peer.ask_until(question, deadline, &mut |body| heard.listen(body));
        heard.conclude(&answer.map_err(|why| match why {
            NoAnswer::Interrupted(interrupted) => interrupted.into(),
            why @ NoAnswer::Connect(_) => McpError::Unsent(why),
            why => McpError::NoAnswer(why),
        })?)
    }
}

impl<'a> Asked<'a> {
    fn list(method: &'static str, params: Value) -> Self {
        Self { method, name: None, params, is_idempotent: true, patience: OF_LISTS }
    }
}

/// What has come in answer to one question.
struct Heard {
    id: u64,
    events: Events,
    answers: Vec<Result<Value, McpError>>,
}

// === impl Heard ===

impl Heard {
    /// Takes in what is new of a body of events; whether that is enough.
    fn listen(&mut self, body: &[u8]) -> bool {
        while let Some(event) = self.events.next(body) {
            self.answers.extend(message::read(event.as_bytes(), self.id).transpose());
        }
        !self.answers.is_empty()
    }

    fn conclude(mut self, answer: &Answer) -> Result<Value, McpError> {
        let Answer { status, is_stream, body, .. } = answer;
        match (status, is_stream) {
            (200, true) => {
                self.listen(body);
                let mut answers = self.answers.into_iter();
                match (answers.next(), answers.next()) {
                    (None, _) => Err(McpError::Malformed("it ends without one")),
                    (Some(answer), None) => answer,
                    (Some(_), Some(_)) => Err(McpError::Malformed("there are two")),
                }
            }
            (200, false) => match message::read(body, self.id)? {
                Some(result) => Ok(result),
                None => Err(McpError::Malformed("it is a notification")),
            },
            // What is refused comes with a status of its own.
            (status, _) => match (message::read(body, self.id), status) {
                (Err(refused @ McpError::Refused { .. }), _) => Err(refused),
                (_, 404) => Err(McpError::Absent),
                (_, &status) => Err(McpError::Status(status)),
            },
        }
    }
}

/// A name as a header can hold it: what isn't plain is encoded, as the revision says.
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
