//! What a node tells of itself: `GET /v1/worker/telemetry/…`. It orders nothing and decides nothing, and may lack what
//! happened last.

use super::ApiVersion;
use crate::id::{JobId, TaskId};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which node it is: `GET /v1/worker/telemetry/node:info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeInfoResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The node's name.
    pub node_slug: String,
    /// What it is built from.
    pub build: Build,
    /// What it runs on.
    pub platform: Platform,
}

/// What a node is built from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Build {
    /// Its version.
    pub build_version: String,
}

/// What a node runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Platform {
    /// The system, such as `linux`.
    pub os: String,
    /// The architecture, such as `x86_64`.
    pub arch: String,
    /// The kernel's release.
    pub kernel_version: String,
}

/// How much of the machine is used: `GET /v1/worker/telemetry/node:stats`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeStatsResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// When it was measured (UTC).
    pub captured_at: Timestamp,
    /// Processors.
    pub cpu: CpuStats,
    /// Memory.
    pub memory: MemoryStats,
    /// The file system of the node's state.
    pub disk: DiskStats,
    /// What sandboxes are made by.
    pub container_runtime: Runtime,
}

/// Processors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuStats {
    /// How many this node may use.
    pub cores: u32,
    /// Programs that ran or waited to, over a minute.
    pub load1: f64,
    /// Over five minutes.
    pub load5: f64,
    /// Over fifteen.
    pub load15: f64,
}

/// Memory, in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryStats {
    /// All of it.
    pub total_mb: u64,
    /// What can't be had.
    pub used_mb: u64,
    /// What can.
    pub free_mb: u64,
}

/// The file system of the node's state, in MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiskStats {
    /// What the node may still write.
    pub state_dir_free_mb: u64,
    /// All of it.
    pub state_dir_total_mb: u64,
}

/// What sandboxes are made by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runtime {
    /// Its name.
    pub runtime: String,
    /// Its version.
    pub version: String,
}

/// Sandboxes, the last made first: `GET /v1/worker/telemetry/containers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainersResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The sandboxes.
    pub containers: Vec<Container>,
    /// What `page_token` is for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// One sandbox: `GET /v1/worker/telemetry/containers/{container_id}`.
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
    /// What it is for.
    pub kind: ContainerKind,
    /// What it is made by.
    pub runtime: String,
    /// The image it is made from; `native` for the node's own programs.
    pub image_ref: String,
    /// When it was made (UTC).
    pub created_at: Timestamp,
    /// When it was last seen (UTC).
    pub last_seen_at: Timestamp,
    /// How far it is.
    pub status: ContainerStatus,
    /// What its program ended with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The task that it works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The job that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<JobId>,
    /// What it is marked with.
    pub labels: BTreeMap<String, String>,
}

/// What a sandbox is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContainerKind {
    /// A service of the node's.
    Managed,
    /// A job, or a session.
    Sandbox,
}

/// How far a sandbox is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContainerStatus {
    /// It stands.
    Created,
    /// Something runs in it.
    Running,
    /// It is over.
    Exited,
    /// Everything in it stands still.
    Paused,
    /// The node died meanwhile.
    Unknown,
}

/// What was logged, in the order in which it was: `GET /v1/worker/telemetry/logs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogsResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The events.
    pub events: Vec<LogEvent>,
    /// Whether there is more, and why it isn't here.
    pub truncated: LogsTruncated,
    /// What `page_token` is for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// One thing that was logged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogEvent {
    /// When (UTC).
    pub occurred_at: Timestamp,
    /// By what.
    pub source_kind: SourceKind,
    /// Its name.
    pub source_name: String,
    /// The sandbox that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// `stdout` or `stderr`, of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// How much it matters, of a service: `info`, `warn`, `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// What.
    pub message: String,
    /// What there is besides.
    pub fields: serde_json::Map<String, serde_json::Value>,
}

/// What logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A part of the node.
    Service,
    /// A sandbox.
    Container,
}

/// Whether there is more, and why it isn't here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogsTruncated {
    /// Why.
    pub limited_by: LimitedBy,
    /// The bytes that one answer holds of them at most.
    pub max_bytes: u64,
}

/// Why an answer doesn't hold all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// It holds all.
    None,
    /// As many as were asked for.
    Count,
    /// As much as an answer may hold.
    Bytes,
}

/// As much of logs is in one answer, in bytes.
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

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Managed, Self::Sandbox].into_iter().find(|kind| kind.as_str() == name)
    }
}

// === impl ContainerStatus ===

impl ContainerStatus {
    /// Every one.
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

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}
