//! `run_command`: a program, started without a shell.
//!
//! Two dialects say the same; one step keeps to one of them:
//!
//! | `spec/1` | `spec/5` |
//! | --- | --- |
//! | `argv: ["go", "test"]` | `command: "go"`, `args: ["test"]` |
//! | `cwd: "sub"` | `working_dir: "sub"` |
//!
//! `env` and `timeout_seconds` are written alike in both.

use crate::decode::{At, Decode, Fields};
use crate::job::constraints::Positive;
use crate::json::Node;
use crate::path::StepPath;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// Arguments of `run_command`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCommand {
    /// The program and its arguments; never empty. The program is looked up in `PATH` unless it holds a slash.
    pub argv: Vec<String>,
    /// Where it runs; the workspace's root if unset.
    pub cwd: Option<StepPath>,
    /// Variables added to the sandbox's environment.
    pub env: BTreeMap<String, String>,
    /// A limit for this step alone.
    pub timeout: Option<Duration>,
}

/// Variables that say which job this is; a step can't speak for another one.
pub const RESERVED_VARIABLES: [&str; 4] =
    ["CYNODE_TASK_ID", "CYNODE_JOB_ID", "CYNODE_WORKSPACE_DIR", "CYNODE_ARTIFACTS_DIR"];

const DIALECTS: [&[&str]; 2] = [&["argv", "cwd"], &["command", "args", "working_dir"]];

// === Decode ===

impl Decode for RunCommand {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let [first, second] =
            DIALECTS.map(|names| names.iter().copied().filter(|name| fields.has(name)).collect::<Vec<_>>());
        if !first.is_empty() && !second.is_empty() {
            let found = format!("`{}` beside `{}`", first.join("`, `"), second.join("`, `"));
            fields.refuse(found, "one dialect: `argv` and `cwd`, or `command`, `args` and `working_dir`");
            fields.accept(DIALECTS.concat());
        }
        let argv = match second.contains(&"command") {
            true => decode_command_and_args(&mut fields),
            false => fields.required("argv").map(|Argv(argv)| argv),
        };
        let cwd = match fields.one_name(["cwd", "working_dir"]) {
            Some(name) => fields.optional(name),
            None => Some(None),
        };
        let env = fields.or("env", Environment(BTreeMap::new())).map(|Environment(env)| env);
        let timeout = fields
            .optional("timeout_seconds")
            .map(|seconds| seconds.map(|Positive(seconds)| Duration::from_secs(seconds.into())));
        fields.finish()?;
        Some(Self { argv: argv?, cwd: cwd?, env: env?, timeout: timeout? })
    }
}

fn decode_command_and_args(fields: &mut Fields<'_, '_>) -> Option<Vec<String>> {
    let command = fields.required("command").map(|Program(program)| program);
    let args = fields.or("args", Vec::new());
    let mut argv = vec![command?];
    argv.extend(args?.into_iter().map(|Argument(argument)| argument));
    Some(argv)
}

struct Argv(Vec<String>);
struct Program(String);
struct Argument(String);
struct Environment(BTreeMap<String, String>);

impl Decode for Argv {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let argv: Vec<String> =
            Vec::decode(node, at)?.into_iter().map(|Argument(argument)| argument).collect();
        match argv.first() {
            Some(program) if !program.is_empty() => Some(Self(argv)),
            _ => at.mistyped(node, "a non-empty array whose first element names a program"),
        }
    }
}

impl Decode for Program {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let Argument(program) = Argument::decode(node, at)?;
        match program.is_empty() {
            true => at.mistyped(node, "the name or path of a program"),
            false => Some(Self(program)),
        }
    }
}

impl Decode for Argument {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        match node.as_str() {
            Some(text) if !text.contains('\0') => Some(Self(text.to_owned())),
            _ => at.mistyped(node, "a string without NUL"),
        }
    }
}

impl Decode for Environment {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let variables: BTreeMap<String, Argument> = BTreeMap::decode(node, at)?;
        let mut sound = true;
        for name in variables.keys() {
            if let Some(expected) = why_not_a_variable(name) {
                sound = false;
                at.refuse(format!("the variable {name:?}"), expected);
            }
        }
        let variables = variables.into_iter().map(|(name, Argument(value))| (name, value)).collect();
        sound.then_some(Self(variables))
    }
}

fn why_not_a_variable(name: &str) -> Option<&'static str> {
    if RESERVED_VARIABLES.contains(&name) {
        return Some("no variable that says which job this is: the host sets those");
    }
    (name.is_empty() || name.contains(['=', '\0']))
        .then_some("names that are not empty and hold no `=` or NUL")
}

// === JsonSchema ===

impl JsonSchema for RunCommand {
    fn schema_name() -> Cow<'static, str> {
        "RunCommand".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let argument = json_schema!({ "type": "string", "pattern": "^[^\\u0000]*$" });
        let program = json_schema!({ "type": "string", "pattern": "^[^\\u0000]+$" });
        let path = generator.subschema_for::<StepPath>();
        let env = json_schema!({
            "description": "Variables added to the sandbox's environment.",
            "type": "object",
            "propertyNames": { "pattern": "^[^=\\u0000]+$", "not": { "enum": RESERVED_VARIABLES } },
            "additionalProperties": argument,
        });
        let timeout = json_schema!({
            "description": "A limit for this step alone, in seconds.",
            "type": "integer", "minimum": 1, "maximum": u32::MAX,
        });
        json_schema!({
            "description": "A program, started without a shell; in one of two dialects.",
            "oneOf": [
                {
                    "type": "object",
                    "properties": {
                        "argv": { "type": "array", "prefixItems": [program], "items": argument, "minItems": 1 },
                        "cwd": path,
                        "env": env,
                        "timeout_seconds": timeout,
                    },
                    "required": ["argv"],
                    "additionalProperties": false,
                },
                {
                    "type": "object",
                    "properties": {
                        "command": program,
                        "args": { "type": "array", "items": argument },
                        "working_dir": path,
                        "env": env,
                        "timeout_seconds": timeout,
                    },
                    "required": ["command"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
