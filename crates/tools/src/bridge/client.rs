//! An MCP client, by the library of MCP's authors; only this module uses it.
//!
//! ```text
//! Connection ─► the library ─► Guarded: counts unrequested messages, and ends a connection with too many ─► Lines │ HTTP
//! ```
//! A server that supports it is used without a handshake (2026-07-28), any other with one (2025-11-25 and before). Requests of a
//! server, such as for models, user input or folders, are refused.

mod guarded;
mod http;
mod lines;
mod message;

pub(super) use guarded::ConnectionState;
pub(super) use http::over_http;
pub(super) use lines::PipeTransport;

use super::error::{BridgeError, CallError};
use super::result::{Block, Outcome};
use crate::Arguments;
use guarded::GuardedTransport;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientConfig, ContentBlock, Implementation,
    PaginatedRequestParams, ProtocolVersion, ResourceContents, Tool,
};
use rmcp::service::{
    ClientLifecycleMode, RoleClient, RunningService, ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// A connection to a server.
pub(super) struct Connection {
    running: RunningService<RoleClient, Client>,
    watched: Arc<ConnectionState>,
    most_bytes: usize,
}

/// A tool, as its server describes it.
#[derive(Debug, Clone)]
pub(super) struct ToolDescription {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) input: Value,
    pub(super) hints: Hints,
}

/// Hints of a server about a tool's effects. They are untrusted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hints {
    pub(super) is_read_only: bool,
    pub(super) is_destructive: bool,
    pub(super) is_idempotent: bool,
}

/// A server's list of tools.
#[derive(Debug, Default)]
pub(super) struct ToolList {
    pub(super) tools: Vec<ToolDescription>,
    pub(super) is_cut: bool,
    /// Number of list entries that are not valid tools.
    pub(super) passed_over: usize,
}

/// Our client's identity.
struct Client;

/// Maximum number of pages of a list.
const MOST_PAGES: usize = 64;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("belljar", env!("CARGO_PKG_VERSION"));
        // No capabilities, so servers can't request anything.
        ClientConfig::new(Default::default(), name)
    }
}

// === impl Connection ===

impl Connection {
    /// Establishes a connection over that transport, within a time limit. Messages of more than `most_bytes` end the connection.
    pub(super) async fn greet<T>(
        transport: T,
        watched: Arc<ConnectionState>,
        (most_bytes, within): (usize, Duration),
    ) -> Result<Self, BridgeError>
    where
        T: Transport<RoleClient> + 'static,
    {
        let transport = GuardedTransport::new(transport, Arc::clone(&watched), within / 2);
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        };
        let running = serve_client_with_lifecycle(Client, transport, lifecycle).await;
        let running = running.map_err(|error| BridgeError::Connection(Box::new(error)))?;
        Ok(Self { running, watched, most_bytes })
    }

    /// Lists the server's tools, up to `most`.
    pub(super) async fn list(&self, most: usize) -> Result<ToolList, BridgeError> {
        let mut listed = self.pages(most).await?;
        listed.passed_over = self.watched.take_passed_over();
        Ok(listed)
    }

    async fn pages(&self, most: usize) -> Result<ToolList, BridgeError> {
        let mut listed = ToolList::default();
        let (mut cursor, mut seen) = (None, HashSet::new());
        for _ in 0..MOST_PAGES {
            let asked = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.running.list_tools(Some(asked)).await;
            let page = page.map_err(|error| BridgeError::Discovery(Box::new(error)))?;
            for tool in page.tools {
                if listed.tools.len() == most {
                    listed.is_cut = true;
                    return Ok(listed);
                }
                listed.tools.push(told(tool));
            }
            match page.next_cursor {
                Some(next) if seen.insert(next.clone()) => cursor = Some(next),
                // The cursor was seen before, so the list is endless.
                Some(_) => break,
                None => return Ok(listed),
            }
        }
        listed.is_cut = true;
        Ok(listed)
    }

    /// Calls a tool. Dropping the future sends a cancellation to the server.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Arguments,
        within: Duration,
    ) -> Result<Outcome, CallError> {
        let asked = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answered = tokio::time::timeout(within, self.running.call_tool_once(asked)).await;
        match answered.map_err(|_| CallError::OutOfTime { within })? {
            Ok(CallToolResponse::Complete(result)) => Ok(outcome(result)),
            Ok(_) => Err(CallError::Asks),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn failed(&self, error: &ServiceError) -> CallError {
        match (error, self.watched.why()) {
            (_, Some(guarded::DisconnectReason::TooLarge)) => CallError::TooLarge { most: self.most_bytes },
            (ServiceError::McpError(error), _) => {
                let message = error.message.chars().filter(|c| !c.is_control() || *c == '\n');
                CallError::Invocation { message: message.take(2_000).collect() }
            }
            (ServiceError::UnexpectedResponse, _) => {
                CallError::Invocation { message: "the response is not a tool result".to_owned() }
            }
            (_, why) => CallError::Gone {
                why: why.map_or("the server closed the connection", guarded::DisconnectReason::in_words),
            },
        }
    }

    /// Returns true if the connection has ended.
    pub(super) fn is_over(&self) -> bool {
        self.watched.why().is_some() || self.running.is_closed()
    }

    /// Returns when the connection has ended.
    pub(super) async fn over(&self) -> guarded::DisconnectReason {
        self.watched.over().await
    }

    /// Returns when the server has announced a changed tool list.
    pub(super) async fn changed(&self) {
        self.watched.changed().await;
    }

    /// Ends the connection and its calls.
    pub(super) fn end(&self) {
        self.watched.end(guarded::DisconnectReason::Closed);
        self.running.cancellation_token().cancel();
    }
}

fn told(tool: Tool) -> ToolDescription {
    let hints = tool.annotations.unwrap_or_default();
    ToolDescription {
        name: tool.name.into_owned(),
        description: tool.description.or(tool.title.map(Into::into)).unwrap_or_default().into_owned(),
        input: Value::Object((*tool.input_schema).clone()),
        hints: Hints {
            is_read_only: hints.read_only_hint == Some(true),
            is_destructive: hints.destructive_hint != Some(false),
            is_idempotent: hints.idempotent_hint == Some(true),
        },
    }
}

fn outcome(result: CallToolResult) -> Outcome {
    Outcome {
        blocks: result.content.into_iter().map(block).collect(),
        structured: result.structured_content,
        is_error: result.is_error == Some(true),
    }
}

fn block(block: ContentBlock) -> Block {
    match block {
        ContentBlock::Text(text) => Block::Text(text.text),
        ContentBlock::Image(image) => {
            Block::Media { kind: "image", mime_type: image.mime_type, base64: image.data }
        }
        ContentBlock::Audio(audio) => {
            Block::Media { kind: "audio", mime_type: audio.mime_type, base64: audio.data }
        }
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, .. }
            | ResourceContents::BlobResourceContents { uri, .. } => Block::Resource { uri },
            _ => Block::Unknown,
        },
        ContentBlock::ResourceLink(resource) => Block::Resource { uri: resource.uri.clone() },
        _ => Block::Unknown,
    }
}
