//! Sandboxes that stay over many commands: `/v1/worker/sessions` (`REQ-WORKER-0150` to `0152`).

use super::ApiVersion;
use super::job::Truncated;
use super::sandbox_order::NetworkPolicy;
use super::traceparent::TraceParent;
use crate::decode::{At, Decode, Fields, decode_document, whole_number};
use crate::egress::WebUsage;
use crate::failure::FailureCode;
use crate::id::{AgentId, RunId, SessionId, TaskId, UserId};
use crate::image;
use crate::job::constraints::Positive;
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
    /// The session. A node has one of that id, however often it is asked.
    pub session_id: SessionId,
    /// The person that it is for, whom its calls of models are recorded for.
    #[schemars(default, with = "UserId")]
    pub user_id: Option<UserId>,
    /// The trace that it belongs to, which its calls of models are recorded under. Where it is absent the header
    /// `traceparent` of the request counts.
    #[schemars(default, with = "TraceParent")]
    pub traceparent: Option<TraceParent>,
    /// For which agent it is: by whose rules its sandbox is made, where the node has rules.
    #[schemars(default, with = "AgentId")]
    pub agent_id: Option<AgentId>,
    /// The image, as an OCI reference, or `native` for the node's own programs; the node's default if absent.
    #[schemars(default, with = "String", regex(pattern = image::PATTERN), length(max = image::LONGEST_NAME))]
    pub image: Option<String>,
    /// Variables for every program in it.
    #[schemars(default, schema_with = "env_schema")]
    pub env: BTreeMap<String, String>,
    /// How long it may last, in seconds. The node has a limit of its own, and the smaller one holds.
    #[schemars(default, with = "u32", range(min = 1, max = 4_294_967_295_u64))]
    pub max_lifetime_seconds: Option<u32>,
    /// How long nothing may be done in it, in seconds, until it is ended.
    #[schemars(default, with = "u32", range(min = 1, max = 4_294_967_295_u64))]
    pub idle_timeout_seconds: Option<u32>,
    /// Whether models may be called that the node's configuration has.
    #[schemars(default)]
    pub use_inference: bool,
    /// What may be reached of the web; nothing if absent.
    #[schemars(default, with = "NetworkPolicy")]
    pub network_policy: Option<NetworkPolicy>,
}

/// A session: the answer to what opens, shows and ends one.
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
    /// For which agent it is, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Its sandbox.
    pub run_id: RunId,
    /// How far it is.
    pub status: SessionStatus,
    /// When it was opened (UTC).
    pub created_at: Timestamp,
    /// When it will be ended, whatever is done in it (UTC).
    pub expires_at: Timestamp,
    /// How long nothing may be done in it, in seconds, until it is ended.
    pub idle_timeout_seconds: u64,
    /// How many commands run in it, terminals included.
    pub running: u64,
    /// What it has had of models, if it might call any and is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<UsageTotals>,
    /// What it has had of the web, if it might reach any and is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebUsage>,
}

/// How far a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Commands may be run in it.
    Open,
    /// It is over, and nothing of it is left.
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
    /// The task that the session is for, if that is to be checked.
    #[schemars(default, with = "TaskId")]
    pub task_id: Option<TaskId>,
    /// The session, as in the path, if that is to be checked.
    #[schemars(default, with = "SessionId")]
    pub session_id: Option<SessionId>,
    /// A program and its arguments; no shell reads them.
    #[schemars(schema_with = "argv_schema")]
    pub command: Vec<String>,
    /// Where it starts, absolute; the workspace if absent.
    #[schemars(default, with = "String", regex(pattern = DIRECTORY_PATTERN))]
    pub cwd: Option<String>,
    /// A limit in seconds. The node has one of its own, and the smaller one holds.
    #[schemars(default, with = "u32", range(min = 1, max = 4_294_967_295_u64))]
    pub timeout_seconds: Option<u32>,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionExecResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The task that the session is for.
    pub task_id: TaskId,
    /// The session.
    pub session_id: SessionId,
    /// How it ended.
    pub status: ExecStatus,
    /// Its exit code, or 128 and the signal that ended it.
    pub exit_code: i32,
    /// What it wrote to standard output, as text; what isn't UTF-8 is replaced.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// What of that was cut.
    pub truncated: Truncated,
    /// When it began (UTC).
    pub started_at: Timestamp,
    /// When it was over (UTC).
    pub ended_at: Timestamp,
    /// Why it did not complete, if its exit code doesn't say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<FailureCode>,
    /// The same for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecStatus {
    /// With exit code 0.
    Completed,
    /// Otherwise.
    Failed,
    /// Its time was over.
    Timeout,
}

/// A request to end a session: `POST /v1/worker/sessions/{session_id}/end`. It may have no body.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct EndSessionRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The task that the session is for, if that is to be checked.
    #[schemars(default, with = "TaskId")]
    pub task_id: Option<TaskId>,
    /// The session, as in the path, if that is to be checked.
    #[schemars(default, with = "SessionId")]
    pub session_id: Option<SessionId>,
}

// === impl OpenSessionRequest ===

impl OpenSessionRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Problems`]: every one that is found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }

    /// Whether the web is asked for, as far as the node's policy lets.
    pub fn wants_web(&self) -> bool {
        self.network_policy == Some(NetworkPolicy::Restricted)
    }
}

impl Decode for OpenSessionRequest {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let task_id = fields.required("task_id");
        let session_id = fields.required("session_id");
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
            user_id: user_id?,
            traceparent: traceparent?,
            agent_id: agent_id?,
            image: image?.map(|Image(image)| image),
            env: env.map(|Environment(env)| env)?,
            max_lifetime_seconds: lifetime?.map(|Positive(seconds)| seconds),
            idle_timeout_seconds: idle?.map(|Positive(seconds)| seconds),
            use_inference: use_inference?,
            network_policy: network_policy?,
        })
    }
}

// === impl SessionExecRequest ===

impl SessionExecRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Problems`]: every one that is found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for SessionExecRequest {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
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
            cwd: cwd?.map(|Absolute(path)| path),
            timeout_seconds: timeout?.map(|Positive(seconds)| seconds),
        })
    }
}

// === impl EndSessionRequest ===

impl EndSessionRequest {
    /// Reads a request. An empty one names nothing.
    ///
    /// # Errors
    /// [`Problems`]: every one that is found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        match document {
            [] => Ok(Self::default()),
            document => decode_document(&json::parse(document)?),
        }
    }
}

impl Decode for EndSessionRequest {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
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
pub(super) struct Absolute(pub(super) String);

impl Decode for Absolute {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
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
pub(super) struct Lines(pub(super) u16);

impl Decode for Lines {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        const MOST: u64 = 1_000;
        whole_number(node, at, 1..=MOST).and_then(|number| u16::try_from(number).ok()).map(Self)
    }
}
