//! Limits and permissions of a job (`docs/contracts/job.md#j7.3`, `docs/contracts/job.md#j7.4`,
//! `docs/contracts/draft.md#d4.2`, `docs/contracts/draft.md#d4.3`).

use crate::decode::{Decode, DecodeContext, Fields, whole_number};
use crate::json::Node;
use crate::path::StepPath;
use schemars::{JsonSchema, Schema};
use std::time::Duration;

/// Limits and permissions of a job.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields, transform = allow_the_older_name)]
pub struct Constraints {
    /// Wall-clock seconds for the whole job.
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pub max_runtime_seconds: u32,
    /// Bytes kept of each output of a step: of its stdout, of its stderr, of a file read. More than that fails the
    /// job with `constraint_violation`.
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pub max_output_bytes: u32,
    /// Allow external destinations, through the web hatch. Default: false. `network_allowed` is the older name.
    #[schemars(default)]
    pub ext_net_allowed: bool,
    /// If present, the only programs a `run_command` step may name, letter by letter. Belljar's sandboxes start no others.
    #[schemars(default, with = "Vec<String>", skip_serializing_if = "Option::is_none")]
    pub allowed_commands: Option<Vec<String>>,
    /// If present, the only directories or files that steps may name paths in, and that programs may write in. An absolute
    /// path outside of the workspace counts for commands.
    #[schemars(default, with = "Vec<StepPath>", skip_serializing_if = "Option::is_none")]
    pub allowed_paths: Option<Vec<StepPath>>,
    /// Allow `write_file` to replace an existing file. Default: true, unless `allowed_paths` is present.
    #[schemars(default, with = "bool", skip_serializing_if = "Option::is_none")]
    pub overwrite_allowed: Option<bool>,
}

// === impl Constraints ===

impl Constraints {
    /// The job's wall-clock limit.
    pub fn max_runtime(&self) -> Duration {
        Duration::from_secs(self.max_runtime_seconds.into())
    }

    /// The cap of one output of a step.
    pub fn max_output(&self) -> usize {
        usize::try_from(self.max_output_bytes).unwrap_or(usize::MAX)
    }
}

impl Decode for Constraints {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let max_runtime_seconds =
            fields.required("max_runtime_seconds").map(|PositiveInteger(number)| number);
        let max_output_bytes = fields.required("max_output_bytes").map(|PositiveInteger(number)| number);
        let ext_net_allowed = match fields.one_name(["ext_net_allowed", "network_allowed"]) {
            Some(name) => fields.or(name, false),
            None => Some(false),
        };
        let allowed_commands = fields.optional("allowed_commands");
        let allowed_paths = fields.optional("allowed_paths");
        let overwrite_allowed = fields.optional("overwrite_allowed");
        fields.finish()?;
        Some(Self {
            max_runtime_seconds: max_runtime_seconds?,
            max_output_bytes: max_output_bytes?,
            ext_net_allowed: ext_net_allowed?,
            allowed_commands: allowed_commands?,
            allowed_paths: allowed_paths?,
            overwrite_allowed: overwrite_allowed?,
        })
    }
}

/// The schema's side of `network_allowed`.
fn allow_the_older_name(schema: &mut Schema) {
    let older =
        serde_json::json!({ "description": "The older name of `ext_net_allowed`.", "type": "boolean" });
    if let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
        properties.insert("network_allowed".to_owned(), older);
    }
    let both = serde_json::json!({ "required": ["ext_net_allowed", "network_allowed"] });
    schema.insert("not".to_owned(), both);
}

/// A whole number from 1 to `u32::MAX`.
pub(crate) struct PositiveInteger(pub(crate) u32);

impl Decode for PositiveInteger {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let number = whole_number(node, at, 1..=u32::MAX.into())?;
        u32::try_from(number).ok().map(Self)
    }
}
