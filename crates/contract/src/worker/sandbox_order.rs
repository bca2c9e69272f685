//! The sandbox of a job, and what runs in it: `sandbox` of an assignment.

use super::context_files::ContextFiles;
use crate::decode::{Decode, DecodeContext, Fields};
use crate::image::{self, ImageReference};
use crate::job::Job;
use crate::job::constraints::PositiveInteger;
use crate::job::step::run_command::{Argv, Environment};
use crate::json::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The sandbox of a job, and what runs in it: `command`, or `job_spec`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, transform = one_of_command_and_job_spec)]
pub struct SandboxRequest {
    /// The image, as an OCI reference, or `native` for the node's own programs; the node's default if absent.
    #[schemars(default, with = "String", regex(pattern = image::PATTERN), length(max = image::LONGEST_NAME))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Program and arguments, started without a shell.
    #[schemars(default)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// A job for the runner, which finds it at `/job/job.json`. Its ids are those of the request.
    #[schemars(default, with = "Job")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_spec: Option<JobSpec>,
    /// Files for the runner's agent, below `/job/context`; only beside `job_spec`.
    #[schemars(default)]
    #[serde(skip_serializing_if = "ContextFiles::is_empty")]
    pub context_files: ContextFiles,
    /// Environment variables. The node sets those that identify the job.
    #[schemars(default, schema_with = "env_schema")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Time limit, in seconds. The node's own limit applies if it is smaller.
    #[schemars(default, with = "u32", range(min = 1, max = 4_294_967_295_u64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// Network access. A job for the runner declares its own need (`ext_net_allowed`), and `none` contradicts a
    /// declared need. Default for commands: none.
    #[schemars(default, with = "NetworkPolicy")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkPolicy>,
    /// Allow calls of the models in the node's configuration. Default: false. A job for the runner declares its own
    /// need.
    #[schemars(default)]
    pub use_inference: bool,
}

/// A job for the runner, with the document that it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// The job.
    pub job: Job,
    document: serde_json::Value,
}

/// Network access of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkPolicy {
    /// No network: there is no proxy.
    None,
    /// Destinations that the node's policy allows, through its proxy; no destinations if the node has no policy.
    Restricted,
}

/// Name of the image that consists of the node's own programs.
pub const NATIVE_IMAGE: &str = "native";

// === impl SandboxRequest ===

impl SandboxRequest {
    /// Returns the requested time limit.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// Returns true if network access is requested, within the node's policy.
    pub fn wants_web(&self) -> bool {
        match &self.job_spec {
            // If both are set, the more restrictive one applies.
            Some(spec) => {
                spec.job.constraints.ext_net_allowed && self.network_policy != Some(NetworkPolicy::None)
            }
            None => self.network_policy == Some(NetworkPolicy::Restricted),
        }
    }

    /// Returns true if the job requests network access and its sandbox excludes it.
    pub fn contradicts_itself(&self) -> bool {
        let may = self.job_spec.as_ref().is_some_and(|spec| spec.job.constraints.ext_net_allowed);
        may && self.network_policy == Some(NetworkPolicy::None)
    }
}

impl Decode for SandboxRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let image = fields.optional("image");
        let command = fields.optional("command");
        let job_spec = fields.optional("job_spec");
        let context_files = fields.or("context_files", ContextFiles::default());
        let env = fields.or("env", Environment(BTreeMap::new()));
        let timeout_seconds = fields.optional("timeout_seconds");
        let network_policy = fields.optional("network_policy");
        let use_inference = fields.or("use_inference", false);
        fields.check(|at| has_one_program(node, at));
        if fields.has("context_files") && !fields.has("job_spec") {
            fields.refuse("`context_files` without `job_spec`", "a job whose runner reads them");
        }
        fields.finish()?;
        Some(Self {
            image: image?.map(|Image(image)| image),
            command: command?.map(|Command(argv)| argv).unwrap_or_default(),
            job_spec: job_spec?,
            context_files: context_files?,
            env: env.map(|Environment(env)| env)?,
            timeout_seconds: timeout_seconds?.map(|PositiveInteger(seconds)| seconds),
            network_policy: network_policy?,
            use_inference: use_inference?,
        })
    }
}

/// Checks that there is exactly one program. An empty `command` counts as absent, because some clients can't omit it.
fn has_one_program(node: &Node, at: &mut DecodeContext<'_, '_>) -> bool {
    const EXPECTED: &str = "one of `command` and `job_spec`: what runs in the sandbox";
    let is_empty = |command: &Node| matches!(command, Node::Array(elements) if elements.is_empty());
    let has_command = node.member("command").is_some_and(|command| !is_empty(command));
    match (has_command, node.member("job_spec").is_some()) {
        (true, true) => at.refuse("both `command` and `job_spec`", EXPECTED),
        (false, false) => at.refuse("neither `command` nor `job_spec`", EXPECTED),
        _ => return true,
    }
    false
}

/// The schema of variables for an environment.
pub(super) fn env_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Environment variables. The node sets those that identify the job.",
        "type": "object",
        "propertyNames": {
            "pattern": "^[^=\\u0000]+$",
            "not": { "enum": crate::job::step::run_command::RESERVED_VARIABLES },
        },
        "additionalProperties": { "type": "string", "pattern": "^[^\\u0000]*$" },
    })
}

/// The schema of a program and its arguments.
pub(super) fn argv_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Program and arguments, started without a shell.",
        "type": "array",
        "items": { "type": "string", "pattern": "^[^\\u0000]*$" },
        "minItems": 1,
        "prefixItems": [{ "type": "string", "pattern": "^[^\\u0000]+$" }],
    })
}

fn one_of_command_and_job_spec(schema: &mut Schema) {
    let command = serde_json::json!({
        "description": "Program and arguments, started without a shell.",
        "type": "array",
        "items": { "type": "string", "pattern": "^[^\\u0000]*$" },
    });
    if let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
        properties.insert("command".to_owned(), command);
    }
    let one = serde_json::json!([
        {
            "required": ["command"],
            "properties": {
                "command": { "minItems": 1, "prefixItems": [{ "type": "string", "pattern": "^[^\\u0000]+$" }] },
            },
            "not": { "anyOf": [{ "required": ["job_spec"] }, { "required": ["context_files"] }] },
        },
        { "required": ["job_spec"], "properties": { "command": { "maxItems": 0 } } },
    ]);
    schema.insert("oneOf".to_owned(), one);
}

// === impl JobSpec ===

impl JobSpec {
    pub(super) fn with_canonical_ids(&self) -> Self {
        let mut spec = self.clone();
        (spec.job.task_id, spec.job.job_id) = (self.job.task_id.canonical(), self.job.job_id.canonical());
        let ids = [("task_id", spec.job.task_id.as_str()), ("job_id", spec.job.job_id.as_str())];
        for (name, id) in ids {
            if let Some(written) = spec.document.get_mut(name) {
                *written = id.into();
            }
        }
        spec
    }

    /// The document, as the runner gets it.
    pub fn document(&self) -> String {
        self.document.to_string()
    }
}

impl Decode for JobSpec {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let job = Job::decode(node, at)?;
        Some(Self { job, document: node.to_value() })
    }
}

impl Serialize for JobSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}

// === impl NetworkPolicy ===

impl Decode for NetworkPolicy {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str() {
            Some("none") => Some(Self::None),
            Some("restricted") => Some(Self::Restricted),
            _ => at.mistyped(node, "`none` or `restricted`"),
        }
    }
}

pub(super) struct Image(pub(super) String);
struct Command(Vec<String>);

impl Decode for Image {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        const EXPECTED: &str = "an image such as registry.example/tools:1.2, or `native`";
        let Some(text) = node.as_str() else { return at.mistyped(node, EXPECTED) };
        match ImageReference::parse(text) {
            Ok(_) => Some(Self(text.to_owned())),
            Err(invalid) => {
                at.refuse(invalid.to_string(), EXPECTED);
                None
            }
        }
    }
}

impl Decode for Command {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node {
            Node::Array(elements) if elements.is_empty() => Some(Self(Vec::new())),
            node => Argv::decode(node, at).map(|Argv(argv)| Self(argv)),
        }
    }
}
