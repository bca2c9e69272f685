//! Stop requests of an orchestrator: for one job (`POST /v1/worker/jobs:stop`), and for everything at once (`POST
//! /v1/worker/admin/stop-all-orchestrator-directed`).

use super::ApiVersion;
use super::state::JobState;
use crate::decode::{Decode, DecodeContext, Fields, decode_document, whole_number};
use crate::id::{JobId, TaskId};
use crate::json::{self, Node};
use crate::problem::Problems;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A request to stop a job.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StopJobRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The task that it belongs to.
    pub task_id: TaskId,
    /// The job.
    pub job_id: JobId,
    /// Grace period for ending by itself, in seconds. Default: 30.
    #[schemars(default = "usual_grace", range(max = LONGEST_GRACE_SECONDS))]
    pub grace_seconds: u64,
}

/// A request to stop everything.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StopAllRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Grace period for everything to end by itself, in seconds. Default: 30.
    #[schemars(default = "usual_grace", range(max = LONGEST_GRACE_SECONDS))]
    pub grace_seconds: u64,
}

/// Result of stopping a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopJobResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The task that was named.
    pub task_id: TaskId,
    /// The job that was named.
    pub job_id: JobId,
    /// True if there was something to stop.
    pub was_running: bool,
    /// State of the job; absent for one that this node doesn't know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<JobState>,
}

/// Result of stopping all work that orchestrators have sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopAllResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Number of stopped jobs, waiting ones included.
    pub stopped_jobs: u64,
    /// Number of ended sessions.
    pub ended_sessions: u64,
    /// Number of jobs that still run: those of other nodes are stopped by these nodes.
    pub still_running: u64,
}

/// Default grace period, in seconds.
pub const GRACE_SECONDS: u64 = 30;

/// Maximum grace period, in seconds.
pub const LONGEST_GRACE_SECONDS: u64 = 300;

fn usual_grace() -> u64 {
    GRACE_SECONDS
}

// === impl StopJobRequest ===

impl StopJobRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }

    /// Returns the grace period.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }
}

impl Decode for StopJobRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let task_id = fields.required("task_id");
        let job_id = fields.required("job_id");
        let grace = fields.or("grace_seconds", Grace(GRACE_SECONDS));
        fields.finish()?;
        let Grace(grace_seconds) = grace?;
        Some(Self { version: version?, task_id: task_id?, job_id: job_id?, grace_seconds })
    }
}

// === impl StopAllRequest ===

impl StopAllRequest {
    /// Parses a request. An empty one has the default values.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        match document {
            [] => Ok(Self { version: ApiVersion, grace_seconds: GRACE_SECONDS }),
            document => decode_document(&json::parse(document)?),
        }
    }

    /// Returns the grace period.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }
}

impl Decode for StopAllRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let grace = fields.or("grace_seconds", Grace(GRACE_SECONDS));
        fields.finish()?;
        let Grace(grace_seconds) = grace?;
        Some(Self { version: version?, grace_seconds })
    }
}

struct Grace(u64);

impl Decode for Grace {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        whole_number(node, at, 0..=LONGEST_GRACE_SECONDS).map(Self)
    }
}
