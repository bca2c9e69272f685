//! Assignments of jobs to a node: `POST /v1/worker/jobs:run`.

pub use super::sandbox_order::{JobSpec, NATIVE_IMAGE, NetworkPolicy, SandboxRequest};

use super::ApiVersion;
use super::traceparent::TraceParent;
use crate::category::Category;
use crate::decode::{Decode, DecodeContext, Fields, decode_document, whole_number};
use crate::id::{AgentId, GroupId, JobId, ProjectId, TaskId, UserId};
use crate::json::{self, Node, quoted};
use crate::problem::Problems;
use crate::scope::{MOST_GROUPS, Scopes};
use schemars::JsonSchema;
use serde::Serialize;

/// A request to run a job.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunJobRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Wait until the job is over before answering. Default: true. If false, the answer comes when the job is accepted.
    #[schemars(default = "yes")]
    pub wait: bool,
    /// Assignment to carry out.
    #[schemars(flatten)]
    pub assignment: Assignment,
}

/// Assignment of a job to a node. Requests with equal assignments are the same request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Assignment {
    /// The task the job belongs to.
    pub task_id: TaskId,
    /// Id of the job. A node carries out one job of that id, however often the request is repeated.
    pub job_id: JobId,
    /// The project that the task belongs to.
    #[schemars(default, with = "ProjectId")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    /// User that the job is for; this user's preferences and skills apply.
    #[schemars(default, with = "UserId")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// Groups of that user, whose preferences and skills apply, too.
    #[schemars(default, length(max = MOST_GROUPS))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_ids: Vec<GroupId>,
    /// Agent identity of the job. If the node has rules for agents, they apply to its calls and its sandbox.
    #[schemars(default, with = "AgentId")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Agent that submitted the job, if one did: such a job earns no trust. The node sets it for jobs that its tools
    /// submit.
    #[schemars(default, with = "AgentId")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<AgentId>,
    /// Category of the job, in which its end counts for its agent's trust.
    #[schemars(default, with = "Category")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_category: Option<Category>,
    /// Maximum number of attempts if the node dies during one. Default: 1. More than 1 declares that the steps may be
    /// repeated.
    #[schemars(default = "one", range(min = 1, max = 10))]
    pub max_attempts: u32,
    /// Trace that the job belongs to, and that its calls of models are recorded under. Default: the request's header
    /// `traceparent`.
    #[schemars(default, with = "TraceParent")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<TraceParent>,
    /// URL that status and result are sent to. Default: the one of the node's configuration.
    #[schemars(default, with = "String", regex(pattern = URL_PATTERN))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// Sandbox of the job, and what runs in it.
    pub sandbox: SandboxRequest,
}

/// A job may be begun as often as this.
pub const MOST_ATTEMPTS: u32 = 10;

/// Visible ASCII characters after a known scheme.
const URL_PATTERN: &str = "^https?://[!-~]{0,2040}$";

const LONGEST_URL: usize = 2_048;

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

// === impl RunJobRequest ===

impl RunJobRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: every one that is found, those of a `job_spec` among them.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for RunJobRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let wait = fields.or("wait", true);
        let assignment = assignment(node, &mut fields);
        fields.finish()?;
        Some(Self { version: version?, wait: wait?, assignment: assignment? })
    }
}

// === impl Assignment ===

impl Assignment {
    /// Parses an assignment that was written with [`serde::Serialize`].
    ///
    /// # Errors
    /// [`Problems`] when this program did not write it.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Assignment {
    /// Returns true if completion implies that commands have verified the work: the job has acceptance criteria with a
    /// command, and a model that works until they are met.
    pub fn is_checked(&self) -> bool {
        let Some(JobSpec { job, .. }) = &self.sandbox.job_spec else { return false };
        let mut criteria = job.context.iter().flat_map(|context| &context.acceptance_criteria);
        job.inference.is_some() && criteria.any(|criterion| criterion.check.is_some())
    }

    /// Returns the assignment with its ids in lower case; `None` if they are. Requests that differ only in that are the
    /// same request.
    pub fn with_canonical_ids(&self) -> Option<Self> {
        let (task_id, job_id) = (self.task_id.canonical(), self.job_id.canonical());
        let job_spec = self.sandbox.job_spec.as_ref().map(JobSpec::with_canonical_ids);
        let is_canonical =
            task_id == self.task_id && job_id == self.job_id && job_spec == self.sandbox.job_spec;
        (!is_canonical).then(|| {
            let sandbox = SandboxRequest { job_spec, ..self.sandbox.clone() };
            Self { task_id, job_id, sandbox, ..self.clone() }
        })
    }

    /// Returns the scopes whose preferences and skills apply to the job.
    pub fn scopes(&self) -> Scopes {
        Scopes {
            groups: self.group_ids.iter().cloned().collect(),
            user: self.user_id.clone(),
            project: self.project_id.clone(),
            task: Some(self.task_id.clone()),
        }
    }
}

/// Group ids, limited to the maximum number.
struct Groups(Vec<GroupId>);

impl Decode for Groups {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let ids = Vec::<GroupId>::decode(node, at)?;
        match ids.len() <= MOST_GROUPS {
            true => Some(Self(ids)),
            false => {
                at.refuse(format!("{} groups", ids.len()), format!("{MOST_GROUPS} at most"));
                None
            }
        }
    }
}

impl Decode for Assignment {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let assignment = assignment(node, &mut fields);
        fields.finish()?;
        assignment
    }
}

fn assignment(node: &Node, fields: &mut Fields<'_, '_>) -> Option<Assignment> {
    let task_id = fields.required("task_id");
    let job_id = fields.required("job_id");
    let project_id = fields.optional("project_id");
    let user_id = fields.optional("user_id");
    let group_ids = fields.optional("group_ids");
    let agent_id = fields.optional("agent_id");
    let submitted_by = fields.optional("submitted_by");
    let task_category = fields.optional("task_category");
    let max_attempts = fields.or("max_attempts", Attempts(1)).map(|Attempts(number)| number);
    let traceparent = fields.optional("traceparent");
    let callback_url = fields.optional("callback_url");
    let sandbox = fields.required("sandbox");
    fields.check(|at| ids_are_the_same(node, at));
    Some(Assignment {
        task_id: task_id?,
        job_id: job_id?,
        project_id: project_id?,
        user_id: user_id?,
        group_ids: group_ids?.map(|Groups(ids)| ids).unwrap_or_default(),
        agent_id: agent_id?,
        submitted_by: submitted_by?,
        task_category: task_category?,
        max_attempts: max_attempts?,
        traceparent: traceparent?,
        callback_url: callback_url?.map(|CallbackUrl(url)| url),
        sandbox: sandbox?,
    })
}

/// Checks that the job specification has the assignment's ids. Results are stored by these; with other ids, a result
/// would go to another job.
fn ids_are_the_same(node: &Node, at: &mut DecodeContext<'_, '_>) -> bool {
    let Some(job) = node.member("sandbox").and_then(|sandbox| sandbox.member("job_spec")) else {
        return true;
    };
    let mut same = true;
    for name in ["job_id", "task_id"] {
        let (outer, inner) = (node.member(name), job.member(name));
        let texts = (outer.and_then(Node::as_str), inner.and_then(Node::as_str));
        if let (Some(outer), Some(inner)) = texts
            && !outer.eq_ignore_ascii_case(inner)
        {
            same = false;
            let expected = format!("the request's own {name}, {}", quoted(outer));
            at.member("sandbox").member("job_spec").member(name).refuse(quoted(inner), expected);
        }
    }
    same
}

struct Attempts(u32);
struct CallbackUrl(String);

impl Decode for Attempts {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let number = whole_number(node, at, 1..=MOST_ATTEMPTS.into())?;
        u32::try_from(number).ok().map(Self)
    }
}

impl Decode for CallbackUrl {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let is_url = |text: &str| {
            let has_scheme = text.starts_with("http://") || text.starts_with("https://");
            has_scheme && text.len() <= LONGEST_URL && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        match node.as_str().filter(|text| is_url(text)) {
            Some(text) => Some(Self(text.to_owned())),
            None => at.mistyped(node, "a URL of http or https"),
        }
    }
}
