//! How an orchestrator stops what it has sent: `POST /v1/worker/jobs:stop`, and everything at once
//! (`POST /v1/worker/admin/stop-all-orchestrator-directed`).

use super::ApiVersion;
use super::state::JobState;
use crate::decode::{At, Decode, Fields, decode_document, whole_number};
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
    /// How long it may take to end by itself, in seconds, from when it is asked to.
    #[schemars(default = "usual_grace", range(max = LONGEST_GRACE_SECONDS))]
    pub grace_seconds: u64,
}

/// A request to stop everything.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StopAllRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// How long everything may take to end by itself, in seconds, from when it is asked to.
    #[schemars(default = "usual_grace", range(max = LONGEST_GRACE_SECONDS))]
    pub grace_seconds: u64,
}

/// A job does not run, or does not run any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopJobResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The task that was named.
    pub task_id: TaskId,
    /// The job that was named.
    pub job_id: JobId,
    /// Whether there was something to stop.
    pub was_running: bool,
    /// How far the job is; absent for one that this node doesn't know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<JobState>,
}

/// Nothing that an orchestrator has sent runs any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopAllResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// How many jobs were stopped, those that waited among them.
    pub stopped_jobs: u64,
    /// How many sessions were ended.
    pub ended_sessions: u64,
    /// How many jobs still run: those that another node has are stopped by it.
    pub still_running: u64,
}

/// So long it may take to end, where nothing is said, in seconds.
pub const GRACE_SECONDS: u64 = 30;

/// So long at most.
pub const LONGEST_GRACE_SECONDS: u64 = 300;

fn usual_grace() -> u64 {
    GRACE_SECONDS
}

// === impl StopJobRequest ===

impl StopJobRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Problems`]: every one that is found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }

    /// How long it may take.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }
}

impl Decode for StopJobRequest {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
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
    /// Reads a request. An empty one asks for what is usual.
    ///
    /// # Errors
    /// [`Problems`]: every one that is found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        match document {
            [] => Ok(Self { version: ApiVersion, grace_seconds: GRACE_SECONDS }),
            document => decode_document(&json::parse(document)?),
        }
    }

    /// How long it may take.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_seconds)
    }
}

impl Decode for StopAllRequest {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
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
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        whole_number(node, at, 0..=LONGEST_GRACE_SECONDS).map(Self)
    }
}
