//! `apply_unified_diff`: a patch to files of the workspace, whole or not at all.

use crate::decode::{Decode, DecodeContext, Fields};
use crate::json::Node;
use schemars::JsonSchema;

/// Arguments of `apply_unified_diff`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ApplyUnifiedDiff {
    /// The patch, as `git diff` or `diff -u` writes it; names carry one leading component (`a/`, `b/`).
    pub diff: String,
}

impl Decode for ApplyUnifiedDiff {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let diff = fields.required("diff");
        fields.finish()?;
        Some(Self { diff: diff? })
    }
}
