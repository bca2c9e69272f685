//! `list_tree`: the entries of a directory, as data.

use crate::decode::{Decode, DecodeContext, Fields};
use crate::job::constraints::PositiveInteger;
use crate::json::Node;
use crate::path::StepPath;
use schemars::JsonSchema;

/// Arguments of `list_tree`; all of them may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ListTree {
    /// The directory; the workspace's root if unset.
    #[schemars(default, with = "StepPath", skip_serializing_if = "Option::is_none")]
    pub path: Option<StepPath>,
    /// Maximum depth; 1 lists only the directory itself. Default: unlimited.
    #[schemars(
        default,
        with = "u32",
        skip_serializing_if = "Option::is_none",
        range(min = 1, max = 4_294_967_295_u64)
    )]
    pub max_depth: Option<u32>,
    /// List only entries whose path below `path` matches, for example `**/*.rs`; directories are still entered.
    #[schemars(default, with = "String", skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    /// Maximum number of entries to return; more are left out and flagged.
    #[schemars(
        default,
        with = "u32",
        skip_serializing_if = "Option::is_none",
        range(min = 1, max = 4_294_967_295_u64)
    )]
    pub max_entries: Option<u32>,
    /// Include the sizes of files; each costs one more file system access.
    #[schemars(default)]
    pub sizes: bool,
}

impl Decode for ListTree {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let path = fields.optional("path");
        let max_depth = fields.optional("max_depth").map(|depth| depth.map(|PositiveInteger(depth)| depth));
        let glob = fields.optional("glob");
        let max_entries = fields.optional("max_entries").map(|cap| cap.map(|PositiveInteger(cap)| cap));
        let sizes = fields.or("sizes", false);
        fields.finish()?;
        Some(Self {
            path: path?,
            max_depth: max_depth?,
            glob: glob?,
            max_entries: max_entries?,
            sizes: sizes?,
        })
    }
}
