//! Jobs: work for one sandbox (`docs/contracts/job.md#j7`; `docs/contracts/draft.md#d4` where that adds to it).
//!
//! [`Job::parse`] is the only way to get one. It rejects unknown, repeated, missing and mistyped members at any depth
//! and lists all of them.

pub mod constraints;
pub mod context;
pub mod persona;
pub mod step;

use crate::decode::{Decode, DecodeContext, Fields, decode_document};
use crate::id::{JobId, TaskId};
use crate::job::constraints::Constraints;
use crate::job::context::{Context, Inference};
use crate::job::persona::Persona;
use crate::job::step::Step;
use crate::json::{self, Node, quoted};
use crate::path::StepPath;
use crate::problem::Problems;
use crate::version::ProtocolVersion;
use schemars::JsonSchema;
use std::borrow::Cow;
use std::collections::HashMap;

/// A job: work for one sandbox, and its limits.
///
/// A value of this type has been read completely and is well-formed.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Job {
    /// The version of this contract the job is written in.
    pub protocol_version: ProtocolVersion,
    /// This job.
    pub job_id: JobId,
    /// The task it belongs to.
    pub task_id: TaskId,
    /// The skill this job was made from, for the record (`docs/contracts/draft.md#d4.1`).
    #[schemars(default, with = "String", skip_serializing_if = "Option::is_none")]
    pub skill_id: Option<String>,
    /// Persona of the agent.
    #[schemars(default, with = "Persona", skip_serializing_if = "Option::is_none")]
    pub persona: Option<Persona>,
    /// Source of the persona, for the record.
    #[schemars(default, with = "String", skip_serializing_if = "Option::is_none")]
    pub persona_id: Option<String>,
    /// Limits and permissions.
    pub constraints: Constraints,
    /// Models that may be used; without it the job may use no model.
    #[schemars(default, with = "Inference", skip_serializing_if = "Option::is_none")]
    pub inference: Option<Inference>,
    /// Information for the agent.
    #[schemars(default, with = "Context", skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// Steps, in order of execution.
    pub steps: Vec<Step>,
    /// Files of the workspace to keep after the run, besides everything under `/job/artifacts`.
    #[schemars(default)]
    pub artifacts: Vec<StepPath>,
}

/// A document that is not a valid job: all problems, and the ids that could still be read, so that the answer can be
/// matched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a valid job: {problems}")]
pub struct InvalidJob {
    /// `job_id`, if it was a string.
    pub job_id: Option<String>,
    /// `task_id`, if it was a string.
    pub task_id: Option<String>,
    /// Problems that were found.
    pub problems: Problems,
}

// === impl Job ===

impl Job {
    /// Parses a job from a JSON document.
    ///
    /// # Errors
    /// [`InvalidJob`] with all problems; then nothing of the job may be carried out.
    pub fn parse(document: &[u8]) -> Result<Self, InvalidJob> {
        let node = json::parse(document).map_err(|problem| InvalidJob {
            job_id: None,
            task_id: None,
            problems: problem.into(),
        })?;
        decode_document(&node).map_err(|problems| InvalidJob {
            job_id: echo(&node, "job_id"),
            task_id: echo(&node, "task_id"),
            problems,
        })
    }
}

/// Returns the member's text as it was sent; an overlong one is not an id and isn't sent back.
fn echo(node: &Node, name: &str) -> Option<String> {
    const LONGEST_ECHO: usize = 200;
    node.member(name).and_then(Node::as_str).filter(|text| text.len() <= LONGEST_ECHO).map(str::to_owned)
}

impl Decode for Job {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let protocol_version = fields.required("protocol_version");
        let job_id = fields.required("job_id");
        let task_id = fields.required("task_id");
        let skill_id = fields.optional("skill_id");
        let persona = fields.optional("persona");
        let persona_id = fields.optional("persona_id");
        let constraints = fields.required("constraints");
        let inference = fields.optional("inference");
        let context = fields.optional("context");
        let steps: Option<Vec<Step>> = fields.required("steps");
        let artifacts = fields.or("artifacts", Vec::new());
        fields.check(|at| step_names_are_unique(node, at));
        fields.finish()?;
        Some(Self {
            protocol_version: protocol_version?,
            job_id: job_id?,
            task_id: task_id?,
            skill_id: skill_id?,
            persona: persona?,
            persona_id: persona_id?,
            constraints: constraints?,
            inference: inference?,
            context: context?,
            steps: steps?,
            artifacts: artifacts?,
        })
    }
}

/// Notes every step whose name an earlier one has. A step without an id is named for its place, so an id may also
/// clash with that. Reads the nodes, so that steps which are wrong otherwise are compared as well.
fn step_names_are_unique(job: &Node, at: &mut DecodeContext<'_, '_>) -> bool {
    let Some(Node::Array(steps)) = job.member("steps") else { return true };
    let mut first_places = HashMap::new();
    let mut unique = true;
    for (place, step) in steps.iter().enumerate() {
        let name = match step.member("id") {
            None => Cow::Owned(step::name_by_place(place)),
            Some(Node::String(id)) => Cow::Borrowed(id.as_str()),
            Some(_) => continue,
        };
        let found = format!("the step name {} again", quoted(&name));
        let first = *first_places.entry(name).or_insert(place);
        if first != place {
            unique = false;
            let expected = format!("another name than that of $.steps[{first}]");
            at.member("steps").element(place).member("id").refuse(found, expected);
        }
    }
    unique
}
