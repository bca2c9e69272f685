//! The steps: deterministic primitives, run in order (`docs/contracts/job.md#j10`, `docs/contracts/draft.md#d5`).
//!
//! A step is `{"type": …, "args": {…}}`, with an `id` if it should have a name of its own; `arguments` is the other
//! accepted name of `args`. Arguments come in two dialects, see [`run_command`].

pub mod apply_unified_diff;
pub mod list_tree;
pub mod read_file;
pub mod run_command;
pub mod search_files;
pub mod write_file;

use crate::decode::{Decode, DecodeContext, Fields, decode_document};
use crate::json::{self, Node};
use crate::path::StepPath;
use crate::problem::Problems;
use apply_unified_diff::ApplyUnifiedDiff;
use list_tree::ListTree;
use read_file::ReadFile;
use run_command::RunCommand;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use search_files::SearchFiles;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use write_file::WriteFile;

/// A step of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The step's own name, unique in the job; also different from the `step-N` that stands for a missing one.
    pub id: Option<String>,
    /// Action of the step.
    pub action: Action,
}

/// Action of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Runs a program.
    RunCommand(RunCommand),
    /// Writes a file.
    WriteFile(WriteFile),
    /// Reads a file.
    ReadFile(ReadFile),
    /// Applies a patch, whole or not at all.
    ApplyUnifiedDiff(ApplyUnifiedDiff),
    /// Lists a directory tree.
    ListTree(ListTree),
    /// Finds lines by a regular expression.
    SearchFiles(SearchFiles),
}

/// The step types by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepType {
    /// See [`RunCommand`].
    RunCommand,
    /// See [`WriteFile`].
    WriteFile,
    /// See [`ReadFile`].
    ReadFile,
    /// See [`ApplyUnifiedDiff`].
    ApplyUnifiedDiff,
    /// See [`ListTree`].
    ListTree,
    /// See [`SearchFiles`].
    SearchFiles,
}

// === impl Step ===

impl Step {
    /// The step's name: its id, or its place counted from one.
    pub fn name(&self, index: usize) -> String {
        self.id.clone().unwrap_or_else(|| name_by_place(index))
    }
}

pub(super) fn name_by_place(index: usize) -> String {
    format!("step-{}", index + 1)
}

impl Decode for Step {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let id = fields.optional("id").map(|id| id.map(|StepId(id)| id));
        let step_type = fields.required("type");
        let action = match (fields.one_name(["args", "arguments"]), step_type) {
            (Some(name), Some(step_type)) => decode_action(&mut fields, name, step_type),
            (None, Some(step_type)) => decode_without_arguments(&mut fields, step_type),
            (name, None) => {
                // The type is unknown, so the arguments can't be read; they are no unknown member either.
                let _ = name.map(|name| fields.optional::<serde_json::Value>(name));
                None
            }
        };
        fields.finish()?;
        Some(Self { id: id?, action: action? })
    }
}

impl Action {
    /// Reads the arguments of a step of that type by themselves, as an agent gives them to a tool.
    ///
    /// # Errors
    /// Every problem, with its path in the arguments.
    pub fn parse(step_type: StepType, arguments: &[u8]) -> Result<Self, Problems> {
        let node = json::parse(arguments)?;
        match step_type {
            StepType::RunCommand => decode_document(&node).map(Self::RunCommand),
            StepType::WriteFile => decode_document(&node).map(Self::WriteFile),
            StepType::ReadFile => decode_document(&node).map(Self::ReadFile),
            StepType::ApplyUnifiedDiff => decode_document(&node).map(Self::ApplyUnifiedDiff),
            StepType::ListTree => decode_document(&node).map(Self::ListTree),
            StepType::SearchFiles => decode_document(&node).map(Self::SearchFiles),
        }
    }
}

fn decode_action(fields: &mut Fields<'_, '_>, name: &'static str, step_type: StepType) -> Option<Action> {
    match step_type {
        StepType::RunCommand => fields.required(name).map(Action::RunCommand),
        StepType::WriteFile => fields.required(name).map(Action::WriteFile),
        StepType::ReadFile => fields.required(name).map(Action::ReadFile),
        StepType::ApplyUnifiedDiff => fields.required(name).map(Action::ApplyUnifiedDiff),
        StepType::ListTree => fields.required(name).map(Action::ListTree),
        StepType::SearchFiles => fields.required(name).map(Action::SearchFiles),
    }
}

/// Decodes a step without arguments. Only `list_tree` accepts that; for the others the missing arguments are reported.
fn decode_without_arguments(fields: &mut Fields<'_, '_>, step_type: StepType) -> Option<Action> {
    match step_type {
        StepType::ListTree => Some(Action::ListTree(ListTree::default())),
        other => decode_action(fields, "args", other),
    }
}

struct StepId(String);

impl Decode for StepId {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        const LONGEST: usize = 128;
        let sound = |id: &str| !id.is_empty() && id.len() <= LONGEST && !id.chars().any(char::is_control);
        match node.as_str().filter(|id| sound(id)) {
            Some(id) => Some(Self(id.to_owned())),
            None => at.mistyped(node, format!("a name of 1 to {LONGEST} bytes without control characters")),
        }
    }
}

impl JsonSchema for Step {
    fn schema_name() -> Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let variants = [
            (StepType::RunCommand, generator.subschema_for::<RunCommand>()),
            (StepType::WriteFile, generator.subschema_for::<WriteFile>()),
            (StepType::ReadFile, generator.subschema_for::<ReadFile>()),
            (StepType::ApplyUnifiedDiff, generator.subschema_for::<ApplyUnifiedDiff>()),
            (StepType::ListTree, generator.subschema_for::<ListTree>()),
            (StepType::SearchFiles, generator.subschema_for::<SearchFiles>()),
        ];
        let variants = variants.map(|(step_type, arguments)| step_variant(step_type, &arguments));
        json_schema!({
            "description": "One step; its arguments stand under `args` or `arguments`, not both.",
            "oneOf": variants,
        })
    }
}

fn step_variant(step_type: StepType, arguments: &Schema) -> Schema {
    let needs_arguments = step_type != StepType::ListTree;
    let mut schema = json_schema!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$" },
            "type": { "const": step_type.as_str() },
            "args": arguments,
            "arguments": arguments,
        },
        "required": ["type"],
        "additionalProperties": false,
    });
    let either = serde_json::json!([{ "required": ["args"] }, { "required": ["arguments"] }]);
    match needs_arguments {
        true => schema.insert("oneOf".to_owned(), either),
        false => schema.insert("not".to_owned(), serde_json::json!({ "required": ["args", "arguments"] })),
    };
    schema
}

// === impl Action ===

impl Action {
    /// The type's name.
    pub const fn step_type(&self) -> StepType {
        match self {
            Self::RunCommand(_) => StepType::RunCommand,
            Self::WriteFile(_) => StepType::WriteFile,
            Self::ReadFile(_) => StepType::ReadFile,
            Self::ApplyUnifiedDiff(_) => StepType::ApplyUnifiedDiff,
            Self::ListTree(_) => StepType::ListTree,
            Self::SearchFiles(_) => StepType::SearchFiles,
        }
    }

    /// The path the step names, if it names one. (The paths inside a diff are known only when it is read.)
    pub fn path(&self) -> Option<&StepPath> {
        match self {
            Self::RunCommand(command) => command.cwd.as_ref(),
            Self::WriteFile(write) => Some(&write.path),
            Self::ReadFile(read) => Some(&read.path),
            Self::ApplyUnifiedDiff(_) => None,
            Self::ListTree(list) => list.path.as_ref(),
            Self::SearchFiles(search) => search.path.as_ref(),
        }
    }
}

// === impl StepType ===

impl StepType {
    /// All types, in the order of the specification.
    pub const ALL: [Self; 6] = [
        Self::RunCommand,
        Self::WriteFile,
        Self::ReadFile,
        Self::ApplyUnifiedDiff,
        Self::ListTree,
        Self::SearchFiles,
    ];

    /// The name as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RunCommand => "run_command",
            Self::WriteFile => "write_file",
            Self::ReadFile => "read_file",
            Self::ApplyUnifiedDiff => "apply_unified_diff",
            Self::ListTree => "list_tree",
            Self::SearchFiles => "search_files",
        }
    }
}

impl fmt::Display for StepType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Decode for StepType {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let known = Self::ALL.into_iter().find(|known| node.as_str() == Some(known.as_str()));
        known.or_else(|| at.mistyped(node, format!("one of: {}", Self::ALL.map(Self::as_str).join(", "))))
    }
}

/// A path that must name a file, so not one that only a directory can have.
struct FilePath(StepPath);

const ENDS_LIKE_A_DIRECTORY: &str = "(^|/)\\.?$";

impl Decode for FilePath {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let path = StepPath::decode(node, at)?;
        let text = path.as_str();
        if text == "." || text.ends_with('/') || text.ends_with("/.") {
            return at.mistyped(node, "the path of a file");
        }
        Some(Self(path))
    }
}

impl JsonSchema for FilePath {
    fn schema_name() -> Cow<'static, str> {
        "FilePath".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "allOf": [generator.subschema_for::<StepPath>(), { "not": { "pattern": ENDS_LIKE_A_DIRECTORY } }],
        })
    }
}
