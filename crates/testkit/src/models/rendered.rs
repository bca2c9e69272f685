//! An answer in the form that the request asks for: a status, header lines, and a body, whole or in events.

use super::answer::{Content, Reply, ToolCall, Usage};
use super::operation::{Dialect, Operation};
use super::request::Request;
use super::{anthropic, listing, ollama, openai, responses};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) struct RenderedAnswer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
}

pub(super) enum Body {
    Whole(Vec<u8>),
    Events(Events),
}

/// Made one by one, when each is sent.
pub(super) type Events = Box<dyn Iterator<Item = Vec<u8>>>;

/// Fields that all parts of one answer have.
#[derive(Clone)]
pub(super) struct Frame {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) created: u64,
    /// True if the client requests usage in a streamed answer; the cost is sent with it.
    pub(super) tells_usage: bool,
    pub(super) usage: Usage,
    pub(super) cost: Option<f64>,
}

// === impl RenderedAnswer ===

impl RenderedAnswer {
    /// Renders a scripted answer in the form that this request asks for.
    pub(super) fn new(request: &Request, content: &Content) -> Option<Self> {
        let mut rendered = match content {
            Content::Reply(reply) => Self::reply(request, reply),
            Content::Error { status, message, retry_after } => {
                let mut rendered = Self::error(request, *status, message);
                rendered
                    .headers
                    .extend(retry_after.map(|after| ("retry-after".to_owned(), after.to_string())));
                rendered
            }
            Content::Echo { status } => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let message = format!("you sent {}{}", text(&request.head), text(&request.body));
                Self::error(request, *status, &message)
            }
            Content::Own { status, headers, body } => {
                return Some(Self {
                    status: *status,
                    headers: headers.clone(),
                    body: Body::Whole(body.clone()),
                });
            }
            Content::Raw(_) | Content::HangUp => return None,
        };
        rendered.identify(request);
        Some(rendered)
    }

    /// Renders an answer without a script.
    pub(super) fn unscripted(request: &Request, models: &[String]) -> Self {
        let listed = listing::answer(request, models);
        let mut rendered = listed.unwrap_or_else(|| match request.operation() {
            Operation::Unknown => {
                Self::error(request, 404, &format!("there is no {} {}", request.method, request.target))
            }
            _ => Self::error(request, 500, "the script has no answer to this"),
        });
        rendered.identify(request);
        rendered
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: content_type("application/json"),
            body: Body::Whole(body.to_string().into_bytes()),
        }
    }

    /// Creates an answer of server-sent events.
    pub(super) fn server_sent(events: Events) -> Self {
        Self {
            status: 200,
            headers: content_type("text/event-stream; charset=utf-8"),
            body: Body::Events(events),
        }
    }

    /// Creates an answer of JSON lines.
    pub(super) fn lines(events: Events) -> Self {
        Self { status: 200, headers: content_type("application/x-ndjson"), body: Body::Events(events) }
    }

    fn reply(request: &Request, reply: &Reply) -> Self {
        let frame = Frame::new(request, reply);
        let mut rendered = match request.operation() {
            Operation::Responses => responses::answer(request, reply, &frame),
            Operation::Completions => openai::completion(request, reply, frame),
            Operation::Messages => anthropic::answer(request, reply, &frame),
            Operation::OllamaChat | Operation::OllamaGenerate => ollama::answer(request, reply, frame),
            _ => openai::chat(request, reply, frame),
        };
        // As LiteLLM does: in a stream the cost is in the last chunk, if anywhere.
        if let (Body::Whole(_), Some(cost), Dialect::OpenAi) = (&rendered.body, reply.cost, request.dialect())
        {
            rendered.headers.push(("x-litellm-response-cost".to_owned(), cost.to_string()));
        }
        rendered
    }

    fn error(request: &Request, status: u16, message: &str) -> Self {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        let body = match request.dialect() {
            Dialect::OpenAi => {
                let code = if status == 401 { json!("invalid_api_key") } else { Value::Null };
                json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
            }
            Dialect::Anthropic => json!({ "type": "error", "error": { "type": kind, "message": message } }),
            Dialect::Ollama => json!({ "error": message }),
        };
        Self::json(status, &body)
    }

    /// Names the request as its provider does, and echoes the call's id as LiteLLM does.
    fn identify(&mut self, request: &Request) {
        let name = match request.dialect() {
            Dialect::Anthropic => "request-id",
            Dialect::OpenAi | Dialect::Ollama => "x-request-id",
        };
        self.headers.push((name.to_owned(), format!("req_{}", uuid::Uuid::new_v4().simple())));
        let echoed = request.header("x-litellm-call-id").map(str::to_owned);
        self.headers.extend(echoed.map(|id| ("x-litellm-call-id".to_owned(), id)));
    }
}

fn content_type(kind: &str) -> Vec<(String, String)> {
    vec![("content-type".to_owned(), kind.to_owned())]
}

// === impl Frame ===

impl Frame {
    fn new(request: &Request, reply: &Reply) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            id: uuid::Uuid::new_v4().simple().to_string(),
            model: request.model(),
            created: since.as_secs(),
            tells_usage: request.json()["stream_options"]["include_usage"] == true,
            usage: reply.usage,
            cost: reply.cost,
        }
    }

    /// An id for one of the calls of tools.
    pub(super) fn call_id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}_{}{index}", &self.id[..20])
    }
}

/// Returns a server-sent event without a name.
pub(super) fn data(event: &Value) -> Vec<u8> {
    format!("data: {event}\n\n").into_bytes()
}

/// Returns a server-sent event whose name is its member `type`.
pub(super) fn named(event: &Value) -> Vec<u8> {
    let name = event["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {event}\n\n").into_bytes()
}

/// The arguments of a call in the pieces in which they are streamed.
pub(super) fn fragments(call: &ToolCall) -> Vec<String> {
    let text: Vec<char> = call.arguments_as_text().chars().collect();
    text.chunks(24).map(|chunk| chunk.iter().collect()).collect()
}
