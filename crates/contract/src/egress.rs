//! Audit records of sandboxes' web access: the run, the destination, the rule that decided, and the number of bytes;
//! never the content.

use crate::id::{PassageId, RunId};
use crate::inference::{Excerpt, ReasonCode};
use core::net::IpAddr;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of the audit record that precedes an allowed request.
pub const BEGUN: &str = "egress_begun";

/// Kind of the audit record with the outcome of a request, denials included.
pub const ENDED: &str = "egress";

/// Kind of the audit record with the web usage of a job's run or a session, once all of it is recorded.
pub const RUN_ENDED: &str = "egress_run_ended";

/// An allowed request or tunnel. This record is on disk before any of its bytes are sent; its outcome follows in
/// another record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxiedRequestStartRecord {
    /// Its id.
    pub passage_id: PassageId,
    /// The run that it is of, known by the listener that it came in on.
    pub run_id: RunId,
    /// Time at which the head of the request was complete (UTC).
    pub started_at: Timestamp,
    /// Request of the client.
    pub asked: RequestedDestination,
    /// Index in the policy of the rule that allows it.
    pub rule: u64,
    /// Generation of the policy, counted from 1.
    pub generation: u64,
    /// Names of the credentials that are injected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// Connection, if the host has made the call for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
}

/// Outcome of a request or tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxiedRequestRecord {
    /// Its id.
    pub passage_id: PassageId,
    /// The run that it is of, known by the listener that it came in on.
    pub run_id: RunId,
    /// Time at which the head of the request was complete (UTC).
    pub started_at: Timestamp,
    /// Request of the client; null if it can't be parsed.
    pub asked: Option<RequestedDestination>,
    /// Outcome of the request.
    pub outcome: ProxiedRequestOutcome,
    /// Generation of the policy that decided, counted from 1.
    pub generation: u64,
    /// Index of the rule that allowed it; null if none did.
    pub rule: Option<u64>,
    /// The address that was dialed; null where none was.
    pub address: Option<IpAddr>,
    /// Name in the ClientHello (SNI); for a request within intercepted TLS, the host that has proved to be it. Null if
    /// there was no ClientHello, or no name in it.
    pub tls_name: Option<Excerpt>,
    /// Status that the client got; null if it got none.
    pub status: Option<u16>,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Bytes that were received.
    pub received_bytes: u64,
    /// Total duration, in milliseconds.
    pub total_ms: u64,
    /// Connection, if the host has made the call for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
}

/// Reasons of a [`DeniedDestination`] that the rules allow, but that was not reached. No rule would help.
pub const UNREACHED: [&str; 5] = [
    "no_such_host",
    "name_timeout",
    "unreachable",
    "refused_by_upstream_proxy",
    "upstream_proxy_unavailable",
];

/// Web usage of a run, as its proxy measured it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebUsage {
    /// Number of allowed tunnels and requests.
    pub passages: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Bytes that were received.
    pub received_bytes: u64,
    /// Destinations that were denied or not reached, each once, in the order of the first requests.
    pub denied: Vec<DeniedDestination>,
    /// Number of denials of other destinations, which are not listed.
    pub denied_unlisted: u64,
}

/// A destination that was denied, or that the rules allow and that was not reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeniedDestination {
    /// Host, in its canonical form.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Reason: a stable code.
    pub reason: String,
    /// The narrowest rule that would allow it; absent if no rule would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_needed: Option<String>,
}

// === impl DeniedDestination ===

impl DeniedDestination {
    /// Returns true if the rules allow the destination, but it was not reached.
    pub fn is_unreached(&self) -> bool {
        UNREACHED.contains(&self.reason.as_str())
    }
}

/// Request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedDestination {
    /// The method: `CONNECT` for a tunnel.
    pub method: Excerpt,
    /// Host, in its canonical form.
    pub host: Excerpt,
    /// TCP port.
    pub port: u16,
    /// The path, without its query; null for a tunnel.
    pub path: Option<Excerpt>,
}

/// Outcome of a request or tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ProxiedRequestOutcome {
    /// Either end has closed the tunnel, or the whole response was passed on.
    Completed,
    /// The proxy denied it; nothing was sent to the destination.
    Denied {
        /// Code of the reason.
        reason: ReasonCode,
    },
    /// The proxy allowed it, but it failed.
    Failed {
        /// Cause of the failure.
        code: ReasonCode,
    },
}
