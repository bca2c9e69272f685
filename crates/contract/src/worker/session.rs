//! Sandboxes that persist over many commands: `/v1/worker/sessions` (`docs/contracts/job.md#j4.8`).

use super::ApiVersion;
use super::job::JobOutputTruncation;
use super::sandbox_order::NetworkPolicy;
use super::traceparent::TraceParent;
use crate::decode::{Decode, DecodeContext, Fields, decode_document, whole_number};
use crate::egress::WebUsage;
use crate::failure::FailureCode;
use crate::id::{AgentId, ProjectId, RunId, SessionId, TaskId, UserId};
use crate::image;
use crate::job::constraints::PositiveInteger;
use crate::job::step::run_command::{Argv, Environment};
use crate::json::{self, Node};
use crate::problem::Problems;
use crate::usage::UsageTotals;
use crate::worker::sandbox_order::{Image, argv_schema, env_schema};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request for a session: `POST /v1/worker/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OpenSessionRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The task that it is for.
    pub task_id: TaskId,
    /// Id of the session. A node has one session of that id, however often the request is repeated.
    pub session_id: SessionId,
    /// The project that the task belongs to.
    #[schemars(default, with = "ProjectId")]
    pub project_id: Option<ProjectId>,
    /// User that the session is for; its calls of models are recorded for this user.
    #[schemars(default, with = "UserId")]
    pub user_id: Option<UserId>,
    /// Trace that the session belongs to, and that its calls of models are recorded under. Default: the request's
    /// header `traceparent`.
    #[schemars(default, with = "TraceParent")]
    pub traceparent: Option<TraceParent>,
    /// Agent that the session is for. If the node has rules for agents, they apply to its sandbox.
    #[schemars(default, with = "AgentId")]
    pub agent_id: Option<AgentId>,
    /// The image, as an OCI reference, or `native` for the node's own programs; the node's default if absent.
    #[schemars(default, with = "String", regex(pattern = image::PATTERN), length(max = image::LONGEST_NAME))]
    pub image: Option<String>,
    /// Variables for every program in it.
    #[schemars(default, schema_with = "env_schema")]
    pub env: BTreeMap<String, String>,
    /// Maximum lifetime, in seconds. The node's own limit applies if it is smaller.
    #[schemars(default, with = "u32", range(min = 1, max = 4_294_967_295_u64))]
    pub max_lifetime_seconds: Option<u32>,
    /// Idle time after which the session is ended, in seconds.
    #[schemars(default, with = "u32", range(min = 1, max = 4_294_967_295_u64))]
    pub idle_timeout_seconds: Option<u32>,
    /// Allow calls of the models in the node's configuration. Default: false.
    #[schemars(default)]
    pub use_inference: bool,
    /// Network access. Default: none.
    #[schemars(default, with = "NetworkPolicy")]
    pub network_policy: Option<NetworkPolicy>,
}

/// A session: the answer to opening, showing and ending one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The session.
    #[serde(flatten)]
    pub session: Session,
}

/// A session, as the node has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The task that it is for.
    pub task_id: TaskId,
    /// The session.
    pub session_id: SessionId,
    /// The project that the task belongs to, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    /// Agent that the session is for, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Its sandbox.
    pub run_id: RunId,
    /// Status of the session.
    pub status: SessionStatus,
    /// Time of opening (UTC).
    pub created_at: Timestamp,
    /// Time at which it is ended, even if it is in use (UTC).
    pub expires_at: Timestamp,
    /// Idle time after which it is ended, in seconds.
    pub idle_timeout_seconds: u64,
    /// Number of commands that run in it, terminals included.
    pub running: u64,
    /// Model usage, once it is over; absent if it had no access to models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<UsageTotals>,
    /// Web usage, once it is over; absent if it had no network access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebUsage>,
}

/// Status of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Commands may be run in it.
    Open,
    /// The session is over, and nothing of it is left.
    Ended,
}

/// The sessions of a node, the last opened first: `GET /v1/worker/sessions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionListResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The sessions.
    pub sessions: Vec<Session>,
}

/// A command for a session: `POST /v1/worker/sessions/{session_id}/exec`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SessionExecRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Task of the session, if it is to be checked.
    #[schemars(default, with = "TaskId")]
    pub task_id: Option<TaskId>,
    /// Session, as in the path, if it is to be checked.
    #[schemars(default, with = "SessionId")]
    pub session_id: Option<SessionId>,
    /// Program and arguments, started without a shell.
    #[schemars(schema_with = "argv_schema")]
    pub command: Vec<String>,
    /// Absolute working directory. Default: the workspace.
    #[schemars(default, with = "String", regex(pattern = DIRECTORY_PATTERN))]
    pub cwd: Option<String>,
    /// Time limit, in seconds. The node's own limit applies if it is smaller.
    #[schemars(default, with = "u32", range(min = 1, max = 4_294_967_295_u64))]
    pub timeout_seconds: Option<u32>,
}

/// Result of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionExecResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The task that the session is for.
    pub task_id: TaskId,
    /// The session.
    pub session_id: SessionId,
    /// Outcome of the command.
    pub status: ExecStatus,
    /// Exit code, or 128 plus the signal that ended it.
    pub exit_code: i32,
    /// Standard output as text; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Standard error as text; bytes that are not UTF-8 are replaced.
    pub stderr: String,
    /// Outputs that were truncated.
    pub truncated: JobOutputTruncation,
    /// Start time (UTC).
    pub started_at: Timestamp,
    /// End time (UTC).
    pub ended_at: Timestamp,
    /// Failure code, if the exit code doesn't show the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<FailureCode>,
    /// Failure message for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
}

/// Outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecStatus {
    /// The exit code is 0.
    Completed,
    /// The command failed.
    Failed,
    /// The command exceeded its time limit.
    Timeout,
}

/// A request to end a session: `POST /v1/worker/sessions/{session_id}/end`. It may have no body.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EndSessionRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Task of the session, if it is to be checked.
    #[schemars(default, with = "TaskId")]
    pub task_id: Option<TaskId>,
    /// Session, as in the path, if it is to be checked.
    #[schemars(default, with = "SessionId")]
    pub session_id: Option<SessionId>,
}

// === impl OpenSessionRequest ===

impl OpenSessionRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }

    /// Returns true if network access is requested, within the node's policy.
    pub fn wants_web(&self) -> bool {
        self.network_policy == Some(NetworkPolicy::Restricted)
    }
}

impl Decode for OpenSessionRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let task_id = fields.required("task_id");
        let session_id = fields.required("session_id");
        let project_id = fields.optional("project_id");
        let user_id = fields.optional("user_id");
        let traceparent = fields.optional("traceparent");
        let agent_id = fields.optional("agent_id");
        let image = fields.optional("image");
        let env = fields.or("env", Environment(BTreeMap::new()));
        let lifetime = fields.optional("max_lifetime_seconds");
        let idle = fields.optional("idle_timeout_seconds");
        let use_inference = fields.or("use_inference", false);
        let network_policy = fields.optional("network_policy");
        fields.finish()?;
        Some(Self {
            version: version?,
            task_id: task_id?,
            session_id: session_id?,
            project_id: project_id?,
            user_id: user_id?,
            traceparent: traceparent?,
            agent_id: agent_id?,
            image: image?.map(|Image(image)| image),
            env: env.map(|Environment(env)| env)?,
            max_lifetime_seconds: lifetime?.map(|PositiveInteger(seconds)| seconds),
            idle_timeout_seconds: idle?.map(|PositiveInteger(seconds)| seconds),
            use_inference: use_inference?,
            network_policy: network_policy?,
        })
    }
}

// === impl SessionExecRequest ===

impl SessionExecRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for SessionExecRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let task_id = fields.optional("task_id");
        let session_id = fields.optional("session_id");
        let command = fields.required("command");
        let cwd = fields.optional("cwd");
        let timeout = fields.optional("timeout_seconds");
        fields.finish()?;
        Some(Self {
            version: version?,
            task_id: task_id?,
            session_id: session_id?,
            command: command.map(|Argv(argv)| argv)?,
            cwd: cwd?.map(|AbsoluteDirectory(path)| path),
            timeout_seconds: timeout?.map(|PositiveInteger(seconds)| seconds),
        })
    }
}

// === impl EndSessionRequest ===

impl EndSessionRequest {
    /// Parses a request. An empty one names nothing.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        match document {
            [] => Ok(Self::default()),
            document => decode_document(&json::parse(document)?),
        }
    }
}

impl Decode for EndSessionRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let task_id = fields.optional("task_id");
        let session_id = fields.optional("session_id");
        fields.finish()?;
        Some(Self { version: version?, task_id: task_id?, session_id: session_id? })
    }
}

/// Absolute, and short enough for the kernel.
pub(super) const DIRECTORY_PATTERN: &str = "^/[^\\u0000]{0,1000}$";

/// The path of a directory inside.
pub(super) struct AbsoluteDirectory(pub(super) String);

impl Decode for AbsoluteDirectory {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        const LONGEST: usize = 1_001;
        let is_path =
            |text: &&str| text.starts_with('/') && text.chars().count() <= LONGEST && !text.contains('\0');
        match node.as_str().filter(is_path) {
            Some(text) => Some(Self(text.to_owned())),
            None => at.mistyped(node, "an absolute path such as /workspace"),
        }
    }
}

/// Lines, or characters in one.
pub(super) struct TerminalDimension(pub(super) u16);

impl Decode for TerminalDimension {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        const MOST: u64 = 1_000;
        whole_number(node, at, 1..=MOST).and_then(|number| u16::try_from(number).ok()).map(Self)
    }
}
