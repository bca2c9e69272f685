//! What is recorded of the web that sandboxes reach: who went where, by which rule, and how many bytes went; never what was
//! said.

use crate::id::{PassageId, RunId};
use crate::inference::{Excerpt, ReasonCode};
use core::net::IpAddr;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind under which it stands in the audit that somebody is about to be let through.
pub const BEGUN: &str = "egress_begun";

/// The kind under which it stands there what has become of it, denials included.
pub const ENDED: &str = "egress";

/// The kind under which it stands there what a job's run or a session has had of the web, when all of that is recorded.
pub const RUN_ENDED: &str = "egress_run_ended";

/// Somebody is let through: on the disk before anything of theirs is sent. What becomes of it follows when it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassageBegun {
    /// Its id.
    pub passage_id: PassageId,
    /// The run that it is of, known by the listener that it came in on.
    pub run_id: RunId,
    /// When the head of the request was there (UTC).
    pub started_at: Timestamp,
    /// What was asked for.
    pub asked: Asked,
    /// The rule that allows it, by its place in the policy.
    pub rule: u64,
    /// Which policy that was, counted from 1.
    pub generation: u64,
    /// The credentials that are filled in, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// The connection, of a call that the host has made of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
}

/// What has become of one who wanted to get through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassageRecord {
    /// Its id.
    pub passage_id: PassageId,
    /// The run that it is of, known by the listener that it came in on.
    pub run_id: RunId,
    /// When the head of the request was there (UTC).
    pub started_at: Timestamp,
    /// What was asked for; null where that can't be read.
    pub asked: Option<Asked>,
    /// How it ended.
    pub outcome: PassageOutcome,
    /// Which policy decided, counted from 1.
    pub generation: u64,
    /// The rule that allowed it; null where none did.
    pub rule: Option<u64>,
    /// The address that was dialed; null where none was.
    pub address: Option<IpAddr>,
    /// The name in the greeting of TLS, and of a request that came inside: the host that has shown to be it. Null where there
    /// was no such greeting, or no name in it.
    pub tls_name: Option<Excerpt>,
    /// The status that the client was told; null where it was told none.
    pub status: Option<u16>,
    /// Bytes that went out.
    pub sent_bytes: u64,
    /// Bytes that came in.
    pub received_bytes: u64,
    /// How long all of it took, in milliseconds.
    pub total_ms: u64,
    /// The connection, of a call that the host has made of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
}

/// Reasons of a [`DeniedDestination`] that the rules allow, and that was not reached all the same. No rule would help.
pub const UNREACHED: [&str; 5] = [
    "no_such_host",
    "name_timeout",
    "unreachable",
    "refused_by_upstream_proxy",
    "upstream_proxy_unavailable",
];

/// What a run has had of the web, as its proxy saw it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebUsage {
    /// Tunnels and requests that were let through.
    pub passages: u64,
    /// Bytes that went out.
    pub sent_bytes: u64,
    /// Bytes that came in.
    pub received_bytes: u64,
    /// Destinations that were denied or not reached, each once, in the order in which they were asked for.
    pub denied: Vec<DeniedDestination>,
    /// Denials of others, which are not listed.
    pub denied_unlisted: u64,
}

/// A destination that was denied, or that the rules allow and that was not reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeniedDestination {
    /// The host, in its one form.
    pub host: String,
    /// The port of TCP.
    pub port: u16,
    /// Why: a stable code.
    pub reason: String,
    /// The smallest rule that would allow it; absent where no rule would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_needed: Option<String>,
}

// === impl DeniedDestination ===

impl DeniedDestination {
    /// Whether the rules allow it, and it was not reached.
    pub fn is_unreached(&self) -> bool {
        UNREACHED.contains(&self.reason.as_str())
    }
}

/// What somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The method: `CONNECT` for a tunnel.
    pub method: Excerpt,
    /// The host, in its one form.
    pub host: Excerpt,
    /// The port of TCP.
    pub port: u16,
    /// The path, without its query; null for a tunnel.
    pub path: Option<Excerpt>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PassageOutcome {
    /// Either end has closed it, or the whole answer was passed on.
    Completed,
    /// It was refused here: nothing of it was sent anywhere.
    Denied {
        /// Why.
        reason: ReasonCode,
    },
    /// It was let through, and ended otherwise.
    Failed {
        /// How.
        code: ReasonCode,
    },
}
