//! The two families of MCP's revisions: self-contained requests (2026-07-28), and sessions that begin with a handshake
//! (2025-11-25 and before).

use super::{Capabilities, Gateway, GatewayCapabilities, McpError, McpRequest, OF_LISTS, REVISION};
use crate::deadline::Deadline;
use serde::Deserialize;
use serde_json::{Value, json};

/// Protocol family of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Family {
    Stateless,
    /// The handshake itself.
    Greeting,
    /// A session; not every gateway gives it an id.
    Session {
        version: String,
        id: Option<String>,
    },
}

/// The revisions with a handshake, the newest first.
pub(super) const WITH_SESSION: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeResult {
    protocol_version: String,
    capabilities: Capabilities,
}

/// The runner as a client, in its own words.
pub(super) fn client() -> Value {
    json!({ "name": "cynode-sba", "version": env!("CARGO_PKG_VERSION") })
}

/// Returns true if this error to a request without a handshake may come from a gateway that requires a handshake.
pub(super) fn may_be_older(error: &McpError) -> bool {
    match error {
        McpError::Refused { .. } | McpError::Absent | McpError::Malformed(_) | McpError::Unreadable(_) => {
            true
        }
        // These statuses report another problem.
        McpError::Status(407 | 408 | 413 | 425 | 429) => false,
        McpError::Status(status) => (400..=499).contains(status) || *status == 501,
        _ => false,
    }
}

// === impl Family ===

impl Family {
    pub(super) fn has_session(&self) -> bool {
        matches!(self, Self::Session { id: Some(_), .. })
    }

    /// Returns the headers of a request for that method and name.
    pub(super) fn headers<'h>(&'h self, method: &'h str, name: Option<&'h str>) -> Vec<(&'h str, &'h str)> {
        match self {
            Self::Stateless => {
                let mut headers = vec![("MCP-Protocol-Version", REVISION), ("Mcp-Method", method)];
                headers.extend(name.map(|name| ("Mcp-Name", name)));
                headers
            }
            Self::Greeting => Vec::new(),
            Self::Session { version, id } => {
                let mut headers = vec![("MCP-Protocol-Version", version.as_str())];
                headers.extend(id.as_deref().map(|id| ("Mcp-Session-Id", id)));
                headers
            }
        }
    }
}

// === impl Gateway ===

impl Gateway {
    /// Begins a session by the handshake, in the newest revision that both sides speak.
    pub(super) fn begin_session(&mut self, deadline: &Deadline<'_>) -> Result<GatewayCapabilities, McpError> {
        self.family = Family::Greeting;
        let params =
            json!({ "protocolVersion": WITH_SESSION[0], "capabilities": {}, "clientInfo": client() });
        let result = self.ask_once(&McpRequest::list("initialize", params), deadline)?;
        let greeted: InitializeResult = serde_json::from_value(result).map_err(McpError::Unreadable)?;
        if !WITH_SESSION.contains(&greeted.protocol_version.as_str()) {
            return Err(McpError::Revision);
        }
        self.family = Family::Session { version: greeted.protocol_version, id: self.named_session.take() };
        self.notify("notifications/initialized", deadline)?;
        Ok(greeted.capabilities.offer())
    }

    /// Sends the gateway a notification, which it doesn't answer.
    fn notify(&mut self, method: &'static str, deadline: &Deadline<'_>) -> Result<(), McpError> {
        let told =
            McpRequest { method, name: None, params: Value::Null, is_idempotent: true, patience: OF_LISTS };
        let body = json!({ "jsonrpc": "2.0", "method": method });
        match self.post(&told, &body, &mut |_| false, deadline)?.status {
            200..=299 => Ok(()),
            status => Err(McpError::Status(status)),
        }
    }
}
