//! Tokens with which remote agents call the node's tools: `POST /v1/worker/mcp/tokens`, and their revocation.

use super::ApiVersion;
use crate::decode::{Decode, DecodeContext, Fields, decode_document, whole_number};
use crate::id::{AgentId, JobId, ProjectId, TaskId, UserId};
use crate::json::{self, Node};
use crate::problem::Problems;
use crate::tool::AgentKind;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// A request for a token.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields, extend("oneOf" = of_each_kind(), "dependentRequired" = json!({ "job_id": ["task_id"] })))]
pub struct IssueTokenRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Kind of caller.
    pub kind: RemoteAgent,
    /// Task that the token is bound to. Required for a sandbox.
    #[schemars(default, with = "TaskId")]
    pub task_id: Option<TaskId>,
    /// Job of that task; the token ends with the job. Required for a sandbox.
    #[schemars(default, with = "JobId")]
    pub job_id: Option<JobId>,
    /// Project that the token is bound to.
    #[schemars(default, with = "ProjectId")]
    pub project_id: Option<ProjectId>,
    /// User that it acts for. Required for an analyst, and not allowed for a manager; an operator's is its own name.
    #[schemars(default, with = "UserId")]
    pub user_id: Option<UserId>,
    /// Agent identity of its calls, if the node has rules for agents. Not allowed for a sandbox, which uses its job's.
    #[schemars(default, with = "AgentId")]
    pub agent_id: Option<AgentId>,
    /// Lifetime, in seconds, if its job doesn't end before.
    #[schemars(default = "usual_life", range(min = 1, max = LONGEST_LIFE_SECONDS))]
    pub expires_in_seconds: u64,
}

/// Kind of a remote caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RemoteAgent {
    /// An agent that works on a job, as the one in its sandbox does.
    Sandbox,
    /// An agent that plans tasks and dispatches jobs.
    ProjectManager,
    /// An agent that analyses completed work for a user.
    ProjectAnalyst,
    /// The node's operator, through a client. Rules for agents don't apply to it, and it may write entries for groups
    /// and for the whole system.
    Operator,
}

/// A new token. It is returned here, and never again, so the type has no form in which it could be printed by accident.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct IssueTokenResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Token, for `Authorization: Bearer`.
    pub token: String,
    /// Id of the token in records.
    pub token_id: String,
    /// Time from which on it is not valid any more (UTC).
    pub expires_at: Timestamp,
}

/// A request to take one back.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RevokeTokenRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The token.
    pub token: String,
}

/// The token is no longer accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevokeTokenResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// True if it was not revoked before.
    pub revoked: bool,
}

/// Default lifetime, in seconds.
pub const LIFE_SECONDS: u64 = 3_600;

/// Maximum lifetime, in seconds.
pub const LONGEST_LIFE_SECONDS: u64 = 86_400;

fn usual_life() -> u64 {
    LIFE_SECONDS
}

/// Schema of the bindings that each kind requires or excludes.
fn of_each_kind() -> Value {
    let of = |kind: RemoteAgent, rest: (&str, Value)| json!({ "properties": { "kind": { "const": kind } }, rest.0: rest.1 });
    let mut sandbox = of(RemoteAgent::Sandbox, ("required", json!(["task_id", "job_id"])));
    sandbox["not"] = json!({ "required": ["agent_id"] });
    let bound = ["task_id", "job_id", "project_id", "agent_id"].map(|name| json!({ "required": [name] }));
    json!([
        sandbox,
        of(RemoteAgent::Operator, ("not", json!({ "anyOf": bound }))),
        of(RemoteAgent::ProjectManager, ("not", json!({ "required": ["user_id"] }))),
        of(RemoteAgent::ProjectAnalyst, ("required", json!(["user_id"]))),
    ])
}

// === impl IssueTokenRequest ===

impl IssueTokenRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }

    /// Returns the lifetime of the token.
    pub fn life(&self) -> Duration {
        Duration::from_secs(self.expires_in_seconds)
    }
}

impl Decode for IssueTokenRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let kind = fields.required("kind");
        let task_id: Option<Option<TaskId>> = fields.optional("task_id");
        let job_id: Option<Option<JobId>> = fields.optional("job_id");
        let project_id = fields.optional("project_id");
        let user_id = fields.optional("user_id");
        let agent_id = fields.optional("agent_id");
        let life = fields.or("expires_in_seconds", TokenLifetime(LIFE_SECONDS));
        if let Some(must) = kind.and_then(|kind| missing(&fields, kind)) {
            fields.refuse(must, "the bindings that an agent of that kind requires");
        }
        fields.finish()?;
        let TokenLifetime(expires_in_seconds) = life?;
        Some(Self {
            version: version?,
            kind: kind?,
            task_id: task_id?,
            job_id: job_id?,
            project_id: project_id?,
            user_id: user_id?,
            agent_id: agent_id?,
            expires_in_seconds,
        })
    }
}

/// Returns the problem of the members for that kind, if there is one.
fn missing(fields: &Fields<'_, '_>, kind: RemoteAgent) -> Option<&'static str> {
    let [has_task, has_job, has_project, has_user, has_agent] =
        ["task_id", "job_id", "project_id", "user_id", "agent_id"].map(|name| fields.has(name));
    match kind {
        _ if has_job && !has_task => Some("a job without its task"),
        RemoteAgent::Sandbox if !has_job => Some("a sandbox without a task and a job"),
        RemoteAgent::Sandbox if has_agent => Some("a sandbox with an agent_id besides that of its job"),
        RemoteAgent::ProjectManager if has_user => Some("a project manager with a user"),
        RemoteAgent::ProjectAnalyst if !has_user => Some("a project analyst without a user"),
        RemoteAgent::Operator if has_task || has_job || has_project || has_agent => {
            Some("an operator with a task, a job, a project or an agent_id")
        }
        _ => None,
    }
}

struct TokenLifetime(u64);

impl Decode for TokenLifetime {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        whole_number(node, at, 1..=LONGEST_LIFE_SECONDS).map(Self)
    }
}

// === impl RemoteAgent ===

impl RemoteAgent {
    const ALL: [Self; 4] = [Self::Sandbox, Self::ProjectManager, Self::ProjectAnalyst, Self::Operator];

    /// Returns the kind for authorisation.
    pub const fn agent(self) -> AgentKind {
        match self {
            Self::Sandbox => AgentKind::Sandbox,
            Self::ProjectManager => AgentKind::ProjectManager,
            Self::ProjectAnalyst => AgentKind::ProjectAnalyst,
            Self::Operator => AgentKind::Operator,
        }
    }
}

impl Decode for RemoteAgent {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|kind| node.as_str() == Some(kind.agent().as_str()));
        found.or_else(|| at.mistyped(node, "one of sandbox, project_manager, project_analyst and operator"))
    }
}

// === impl RevokeTokenRequest ===

impl RevokeTokenRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for RevokeTokenRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let token = fields.required("token");
        fields.finish()?;
        Some(Self { version: version?, token: token? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

    fn parse(mut document: Value) -> Result<IssueTokenRequest, String> {
        document["version"] = json!(1);
        IssueTokenRequest::parse(document.to_string().as_bytes()).map_err(|problems| problems.to_string())
    }

    #[test]
    fn token_request_requires_bindings_of_its_agent_kind() {
        let sandbox = json!({ "kind": "sandbox", "task_id": TASK, "job_id": TASK });
        assert_eq!(parse(sandbox).unwrap().expires_in_seconds, LIFE_SECONDS);
        assert!(parse(json!({ "kind": "project_manager", "task_id": TASK, "project_id": "p-1" })).is_ok());
        assert!(parse(json!({ "kind": "project_analyst", "user_id": "ada@example" })).is_ok());
        assert!(parse(json!({ "kind": "operator", "user_id": "ada@example" })).is_ok());
        let named = parse(json!({ "kind": "project_manager", "agent_id": "lead" })).unwrap();
        assert_eq!(named.agent_id.map(String::from).as_deref(), Some("lead"));
        for refused in [
            json!({ "kind": "sandbox" }),
            json!({ "kind": "sandbox", "task_id": TASK }),
            json!({ "kind": "sandbox", "job_id": TASK }),
            json!({ "kind": "project_manager", "job_id": TASK }),
            json!({ "kind": "project_manager", "user_id": "ada" }),
            json!({ "kind": "project_manager", "agent_id": "" }),
            json!({ "kind": "sandbox", "task_id": TASK, "job_id": TASK, "agent_id": "boss" }),
            json!({ "kind": "project_analyst" }),
            json!({ "kind": "operator", "project_id": "p-1" }),
            json!({ "kind": "operator", "task_id": TASK }),
            json!({ "kind": "operator", "agent_id": "lead" }),
            json!({ "kind": "project_manager", "expires_in_seconds": 0 }),
            json!({ "kind": "project_manager", "expires_in_seconds": 86_401 }),
            json!({ "kind": "project_manager", "project_id": "" }),
            json!({ "kind": "project_manager", "tools": ["*"] }),
        ] {
            assert!(parse(refused.clone()).is_err(), "{refused}");
        }
    }

    #[test]
    fn revocation_problems_do_not_repeat_the_token() {
        for document in [r#"{"version":2,"token":"bjt_hunter2"}"#, r#"{"version":1,"token":["bjt_hunter2"]}"#]
        {
            let Err(problems) = RevokeTokenRequest::parse(document.as_bytes()) else { panic!("{document}") };
            assert!(!problems.to_string().contains("hunter2"), "{problems}");
        }
    }
}
