//! `search_files`: the lines that match a regular expression.

use crate::decode::{Decode, DecodeContext, Fields, whole_number};
use crate::job::constraints::PositiveInteger;
use crate::json::Node;
use crate::path::StepPath;
use schemars::JsonSchema;

/// Arguments of `search_files`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SearchFiles {
    /// A regular expression without look-around or back-references (it runs in linear time).
    pub pattern: String,
    /// The directory or file to search; the workspace's root if unset.
    #[schemars(default, with = "StepPath", skip_serializing_if = "Option::is_none")]
    pub path: Option<StepPath>,
    /// Search only files whose path below `path` matches, for example `*.rs` (at any depth) or `src/**/*.rs`.
    #[schemars(default, with = "String", skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// Lines to show before and after each match.
    #[schemars(default, range(max = 100))]
    pub context_lines: u32,
    /// Maximum number of matches to return; more are left out and flagged.
    #[schemars(
        default,
        with = "u32",
        skip_serializing_if = "Option::is_none",
        range(min = 1, max = 4_294_967_295_u64)
    )]
    pub max_matches: Option<u32>,
}

const MOST_CONTEXT_LINES: u64 = 100;

impl Decode for SearchFiles {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let pattern = fields.required("pattern");
        let path = fields.optional("path");
        let include = fields.optional("include");
        let context_lines = fields.or("context_lines", ContextLines(0)).map(|ContextLines(lines)| lines);
        let max_matches = fields.optional("max_matches").map(|cap| cap.map(|PositiveInteger(cap)| cap));
        fields.finish()?;
        Some(Self {
            pattern: pattern?,
            path: path?,
            include: include?,
            context_lines: context_lines?,
            max_matches: max_matches?,
        })
    }
}

struct ContextLines(u32);

impl Decode for ContextLines {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let lines = whole_number(node, at, 0..=MOST_CONTEXT_LINES)?;
        u32::try_from(lines).ok().map(Self)
    }
}
