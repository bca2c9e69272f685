//! Information for the agent and models that it may use (`docs/contracts/job.md#j9`, `docs/contracts/job.md#j8`).

mod criterion;

pub use criterion::Criterion;

use crate::decode::{Decode, DecodeContext, Fields};
use crate::job::constraints::PositiveInteger;
use crate::json::Node;
use schemars::JsonSchema;
use serde_json::{Map, Value};

/// Models that the job may use.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Inference {
    /// Allowed models; at least one.
    #[schemars(length(min = 1))]
    pub allowed_models: Vec<String>,
    /// Maximum number of model answers for the agent. Default: 100.
    #[schemars(
        default,
        with = "u32",
        skip_serializing_if = "Option::is_none",
        range(min = 1, max = 4_294_967_295_u64)
    )]
    pub max_turns: Option<u32>,
    /// Maximum number of tokens of a request, the tools and the answer included. Default: 32,768.
    #[schemars(
        default,
        with = "u32",
        skip_serializing_if = "Option::is_none",
        range(min = 1, max = 4_294_967_295_u64)
    )]
    pub context_tokens: Option<u32>,
    /// Source of inference. Default: the host chooses.
    #[schemars(default, with = "InferenceSource", skip_serializing_if = "Option::is_none")]
    pub source: Option<InferenceSource>,
}

/// Source of inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum InferenceSource {
    /// Models on the node: no request leaves that machine.
    Worker,
    /// Models elsewhere, behind the host's egress.
    ApiEgress,
}

/// Content of every request to a model.
#[derive(Debug, Clone, PartialEq, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Context {
    /// Identity, role, responsibilities and non-goals of the agent.
    #[schemars(default, with = "String", skip_serializing_if = "Option::is_none")]
    pub baseline_context: Option<String>,
    /// The project: id, name, slug, scope.
    #[schemars(default, with = "String", skip_serializing_if = "Option::is_none")]
    pub project_context: Option<String>,
    /// The task: id, name, status, what counts as done.
    #[schemars(default, with = "String", skip_serializing_if = "Option::is_none")]
    pub task_context: Option<String>,
    /// Requirements that the work must satisfy.
    #[schemars(default)]
    pub requirements: Vec<String>,
    /// Criteria that the outcome is checked against.
    #[schemars(default)]
    pub acceptance_criteria: Vec<Criterion>,
    /// Preferences for how the work is done, by name.
    #[schemars(default)]
    pub preferences: Map<String, Value>,
    /// Text that the user adds.
    #[schemars(default, with = "String", skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// Skills to fetch.
    #[schemars(default)]
    pub skill_ids: Vec<String>,
    /// Skills given inline, in any form; `null` for none.
    #[schemars(default)]
    pub skills: Option<Value>,
}

// === Decode ===

impl Decode for Inference {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let allowed_models = fields.required("allowed_models").map(|Models(models)| models);
        let mut positive =
            |name| fields.optional(name).map(|number| number.map(|PositiveInteger(number)| number));
        let (max_turns, context_tokens) = (positive("max_turns"), positive("context_tokens"));
        let source = fields.optional("source");
        fields.finish()?;
        Some(Self {
            allowed_models: allowed_models?,
            max_turns: max_turns?,
            context_tokens: context_tokens?,
            source: source?,
        })
    }
}

/// At least one model.
struct Models(Vec<String>);

impl Decode for Models {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let models = Vec::decode(node, at)?;
        match models.is_empty() {
            true => at.mistyped(node, "at least one model"),
            false => Some(Self(models)),
        }
    }
}

impl Decode for InferenceSource {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str() {
            Some("worker") => Some(Self::Worker),
            Some("api_egress") => Some(Self::ApiEgress),
            _ => at.mistyped(node, "\"worker\" or \"api_egress\""),
        }
    }
}

impl Decode for Context {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let baseline_context = fields.optional("baseline_context");
        let project_context = fields.optional("project_context");
        let task_context = fields.optional("task_context");
        let requirements = fields.or("requirements", Vec::new());
        let acceptance_criteria = fields.or("acceptance_criteria", Vec::new());
        let preferences = fields.or("preferences", Members(Map::new()));
        let additional_context = fields.optional("additional_context");
        let skill_ids = fields.or("skill_ids", Vec::new());
        let skills: Option<Option<Value>> = fields.optional("skills");
        fields.finish()?;
        Some(Self {
            baseline_context: baseline_context?,
            project_context: project_context?,
            task_context: task_context?,
            requirements: requirements?,
            acceptance_criteria: acceptance_criteria?,
            preferences: preferences?.0,
            additional_context: additional_context?,
            skill_ids: skill_ids?,
            skills: skills?.filter(|skills| !skills.is_null()),
        })
    }
}

/// An object of anything.
struct Members(Map<String, Value>);

impl Decode for Members {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node {
            Node::Object(_) => match Value::decode(node, at)? {
                Value::Object(members) => Some(Self(members)),
                _ => None,
            },
            other => at.mistyped(other, "an object"),
        }
    }
}
