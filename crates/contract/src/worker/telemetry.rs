//! Telemetry of a node: `GET /v1/worker/telemetry/…`. It is informational only, and may lack the most recent events.

use super::ApiVersion;
use crate::id::{JobId, TaskId};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identity of a node: `GET /v1/worker/telemetry/node:info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeInfoResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The node's name.
    pub node_slug: String,
    /// Build of the node.
    pub build: Build,
    /// Platform that it runs on.
    pub platform: Platform,
}

/// Build of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// Its version.
    pub build_version: String,
}

/// Platform that a node runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Platform {
    /// The system, such as `linux`.
    pub os: String,
    /// The architecture, such as `x86_64`.
    pub arch: String,
    /// The kernel's release.
    pub kernel_version: String,
}

/// Resource usage of the machine: `GET /v1/worker/telemetry/node:stats`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeStatsResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Time of the measurement (UTC).
    pub captured_at: Timestamp,
    /// Processors.
    pub cpu: CpuStats,
    /// Memory.
    pub memory: MemoryStats,
    /// The file system of the node's state.
    pub disk: DiskStats,
    /// Runtime that sandboxes are made by.
    pub container_runtime: Runtime,
}

/// Processors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuStats {
    /// Number of processors that this node may use.
    pub cores: u32,
    /// Load average over one minute.
    pub load1: f64,
    /// Load average over five minutes.
    pub load5: f64,
    /// Load average over fifteen minutes.
    pub load15: f64,
}

/// Memory, in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryStats {
    /// Total memory.
    pub total_mb: u64,
    /// Memory that is not available.
    pub used_mb: u64,
    /// Available memory.
    pub free_mb: u64,
}

/// The file system of the node's state, in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskStats {
    /// Space that the node may still write.
    pub state_dir_free_mb: u64,
    /// Size of the file system.
    pub state_dir_total_mb: u64,
}

/// Runtime that sandboxes are made by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runtime {
    /// Its name.
    pub runtime: String,
    /// Its version.
    pub version: String,
}

/// A page of sandboxes, the last created first: `GET /v1/worker/telemetry/containers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainersResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The sandboxes.
    pub containers: Vec<Container>,
    /// Value of `page_token` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// A sandbox: `GET /v1/worker/telemetry/containers/{container_id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The sandbox.
    pub container: Container,
}

/// A sandbox, as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Container {
    /// Its id: that of its run.
    pub container_id: String,
    /// Its name.
    pub container_name: String,
    /// Purpose of the sandbox.
    pub kind: ContainerKind,
    /// Runtime that it was made by.
    pub runtime: String,
    /// The image it is made from; `native` for the node's own programs.
    pub image_ref: String,
    /// Time of creation (UTC).
    pub created_at: Timestamp,
    /// Time at which it was last seen (UTC).
    pub last_seen_at: Timestamp,
    /// Status of the sandbox.
    pub status: ContainerStatus,
    /// Exit code of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The task that it works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The job that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<JobId>,
    /// Labels of the sandbox.
    pub labels: BTreeMap<String, String>,
}

/// Purpose of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContainerKind {
    /// A managed service of the node.
    Managed,
    /// A job, or a session.
    Sandbox,
}

/// Status of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContainerStatus {
    /// The sandbox was created.
    Created,
    /// A program runs in the sandbox.
    Running,
    /// The sandbox has ended.
    Exited,
    /// All processes of the sandbox are paused.
    Paused,
    /// The node died meanwhile, so the status is unknown.
    Unknown,
}

/// Log events, in the order in which they were logged: `GET /v1/worker/telemetry/logs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogsResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The events.
    pub events: Vec<LogEvent>,
    /// Tells if there are more events, and which limit cut the answer.
    pub truncated: LogsTruncation,
    /// Value of `page_token` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// A log event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogEvent {
    /// Time of the event (UTC).
    pub occurred_at: Timestamp,
    /// Kind of the source.
    pub source_kind: SourceKind,
    /// Its name.
    pub source_name: String,
    /// Sandbox that the event is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// `stdout` or `stderr`, of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Level, of a service: `info`, `warn`, `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Message.
    pub message: String,
    /// Additional fields.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

/// Kind of a log's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A part of the node.
    Service,
    /// A sandbox.
    Container,
}

/// Limit that cut the answer, if there are more events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogsTruncation {
    /// Limit that was reached.
    pub limited_by: LimitedBy,
    /// Maximum number of bytes of logs in one answer.
    pub max_bytes: u64,
}

/// Limit that cut an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The answer holds all events.
    None,
    /// The requested number of events is reached.
    Count,
    /// The maximum size of an answer is reached.
    Bytes,
}

/// Maximum size of the logs in one answer, in bytes.
pub const LARGEST_LOGS_BYTES: u64 = 1 << 20;

// === impl ContainerKind ===

impl ContainerKind {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Sandbox => "sandbox",
        }
    }

    /// Returns the value with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Managed, Self::Sandbox].into_iter().find(|kind| kind.as_str() == name)
    }
}

// === impl ContainerStatus ===

impl ContainerStatus {
    /// All statuses.
    pub const ALL: [Self; 5] = [Self::Created, Self::Running, Self::Exited, Self::Paused, Self::Unknown];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Paused => "paused",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the value with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}
