//! `read_file`: the content of one file, or some lines of it.

use crate::decode::{Decode, DecodeContext, Fields};
use crate::job::constraints::PositiveInteger;
use crate::job::step::FilePath;
use crate::json::Node;
use crate::path::StepPath;
use schemars::JsonSchema;

/// Arguments of `read_file`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ReadFile {
    /// The file.
    #[schemars(with = "FilePath")]
    pub path: StepPath,
    /// Bytes to return at most; the rest is left out and flagged. Unset: the job's `max_output_bytes`, and more than
    /// that is a `constraint_violation`.
    #[schemars(
        default,
        with = "u32",
        skip_serializing_if = "Option::is_none",
        range(min = 1, max = 4_294_967_295_u64)
    )]
    pub max_bytes: Option<u32>,
    /// First line to return, counted from 1.
    #[schemars(
        default,
        with = "u32",
        skip_serializing_if = "Option::is_none",
        range(min = 1, max = 4_294_967_295_u64)
    )]
    pub start_line: Option<u32>,
    /// Last line to return, itself included.
    #[schemars(
        default,
        with = "u32",
        skip_serializing_if = "Option::is_none",
        range(min = 1, max = 4_294_967_295_u64)
    )]
    pub end_line: Option<u32>,
}

impl Decode for ReadFile {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let path = fields.required("path").map(|FilePath(path)| path);
        let mut positive =
            |name| fields.optional(name).map(|number| number.map(|PositiveInteger(number)| number));
        let max_bytes = positive("max_bytes");
        let start_line = positive("start_line");
        let end_line = positive("end_line");
        if let (Some(Some(start)), Some(Some(end))) = (start_line, end_line)
            && start > end
        {
            fields.refuse(format!("lines {start} to {end}"), "a `start_line` that is not after `end_line`");
        }
        fields.finish()?;
        Some(Self { path: path?, max_bytes: max_bytes?, start_line: start_line?, end_line: end_line? })
    }
}
