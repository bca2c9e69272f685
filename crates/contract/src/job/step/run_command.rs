//! `run_command`: a program, started without a shell.
//!
//! There are two equivalent dialects; one step must keep to one of them:
//!
//! | later contract (`docs/contracts/job.md#j10.2`) | older draft (`docs/contracts/draft.md#d5.1`) |
//! | --- | --- |
//! | `argv: ["go", "test"]` | `command: "go"`, `args: ["test"]` |
//! | `cwd: "sub"` | `working_dir: "sub"` |
//!
//! `env` and `timeout_seconds` are the same in both.

use crate::decode::{Decode, DecodeContext, Fields};
use crate::job::constraints::PositiveInteger;
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
    /// Working directory. Default: the workspace's root.
    pub cwd: Option<StepPath>,
    /// Variables added to the sandbox's environment.
    pub env: BTreeMap<String, String>,
    /// A limit for this step alone.
    pub timeout: Option<Duration>,
}

/// Variables that identify the job; a step can't set them.
pub const RESERVED_VARIABLES: [&str; 4] =
    ["CYNODE_TASK_ID", "CYNODE_JOB_ID", "CYNODE_WORKSPACE_DIR", "CYNODE_ARTIFACTS_DIR"];

const DIALECTS: [&[&str]; 2] = [&["argv", "cwd"], &["command", "args", "working_dir"]];

// === Decode ===

impl Decode for RunCommand {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        fields.accept(DIALECTS.concat());
        let [first, second] =
            DIALECTS.map(|names| names.iter().copied().filter(|name| fields.has(name)).collect::<Vec<_>>());
        let (argv, cwd) = match (first.is_empty(), second.is_empty()) {
            (_, true) => (fields.required("argv").map(|Argv(argv)| argv), fields.optional("cwd")),
            (true, false) => (decode_command_and_args(&mut fields), fields.optional("working_dir")),
            (false, false) => {
                refuse_mixture(&mut fields, &[first, second].concat());
                (None, None)
            }
        };
        let env = fields.or("env", Environment(BTreeMap::new())).map(|Environment(env)| env);
        let timeout = fields
            .optional("timeout_seconds")
            .map(|seconds| seconds.map(|PositiveInteger(seconds)| Duration::from_secs(seconds.into())));
        fields.finish()?;
        Some(Self { argv: argv?, cwd: cwd?, env: env?, timeout: timeout? })
    }
}

/// Reports that two dialects are mixed, and the problems of each member by itself.
fn refuse_mixture(fields: &mut Fields<'_, '_>, names: &[&str]) {
    let found = format!("`{}` together", names.join("`, `"));
    fields.refuse(found, "one dialect: `argv` and `cwd`, or `command`, `args` and `working_dir`");
    fields.optional::<Argv>("argv");
    fields.optional::<Program>("command");
    fields.optional::<Vec<Argument>>("args");
    fields.optional::<StepPath>("cwd");
    fields.optional::<StepPath>("working_dir");
}

fn decode_command_and_args(fields: &mut Fields<'_, '_>) -> Option<Vec<String>> {
    let command = fields.required("command").map(|Program(program)| program);
    let args = fields.or("args", Vec::new());
    let mut argv = vec![command?];
    argv.extend(args?.into_iter().map(|Argument(argument)| argument));
    Some(argv)
}

pub(crate) struct Argv(pub(crate) Vec<String>);
struct Program(String);
struct Argument(String);
pub(crate) struct Environment(pub(crate) BTreeMap<String, String>);

impl Decode for Argv {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let Node::Array(elements) = node else { return at.mistyped(node, "an array of strings") };
        let Some(program) = elements.first() else {
            return at.mistyped(node, "at least the program");
        };
        let program = Program::decode(program, &mut at.element(0));
        let arguments: Vec<_> = (1..)
            .zip(&elements[1..])
            .map(|(index, argument)| Argument::decode(argument, &mut at.element(index)))
            .collect();
        let mut argv = vec![program?.0];
        for argument in arguments {
            argv.push(argument?.0);
        }
        Some(Self(argv))
    }
}

impl Decode for Program {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str() {
            Some(text) if !text.is_empty() && !text.contains('\0') => Some(Self(text.to_owned())),
            _ => at.mistyped(node, "the name or path of a program, without NUL"),
        }
    }
}

impl Decode for Argument {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str() {
            Some(text) if !text.contains('\0') => Some(Self(text.to_owned())),
            _ => at.mistyped(node, "a string without NUL"),
        }
    }
}

impl Decode for Environment {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let variables = BTreeMap::decode(node, at);
        let Node::Object(members) = node else { return None };
        let mut sound = true;
        for (name, _) in members {
            if let Some(expected) = why_not_a_variable(name) {
                sound = false;
                at.member(name).refuse("a variable of this name", expected);
            }
        }
        let variables = variables?.into_iter().map(|(name, Argument(value))| (name, value)).collect();
        sound.then_some(Self(variables))
    }
}

fn why_not_a_variable(name: &str) -> Option<&'static str> {
    if RESERVED_VARIABLES.contains(&name) {
        return Some("another name: this variable identifies the job and is set by the host");
    }
    (name.is_empty() || name.contains(['=', '\0']))
        .then_some("a name that is not empty and holds no `=` or NUL")
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
