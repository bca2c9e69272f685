//! Persona of the agent (`docs/contracts/job.md#j9.2`), which the job contains in full.

use crate::decode::{Decode, DecodeContext, Fields};
use crate::json::Node;
use schemars::JsonSchema;

/// Persona of the agent.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Persona {
    /// A short name of the role.
    pub title: String,
    /// The role in prose: "You are a …". It comes first in every request to a model.
    pub description: String,
}

// === Decode ===

impl Decode for Persona {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let title = fields.required("title");
        let description = fields.required("description");
        fields.finish()?;
        Some(Self { title: title?, description: description? })
    }
}
