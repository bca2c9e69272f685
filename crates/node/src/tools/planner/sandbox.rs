//! `sandbox.*`: sandboxes that stay, each under the id of a job. They are sessions of the Worker API.

use super::endpoint_client::{EndpointRequest, RequestBuilder, body, text};
use super::job::named;
use super::{changing, define, id, list_of, object};
use axum::http::Method;
use belljar_contract::action::BuiltInAction;
use belljar_contract::tool::{CostTier, InvalidToolNameError};
use belljar_tools::Arguments;
use belljar_tools::answer::Failure;
use belljar_tools::definition::{Definition, Effect};
use serde_json::{Value, json};
use std::time::Duration;

/// Makes a sandbox for its caller.
pub(super) const CREATE: &str = "sandbox.create";

/// Runs a command in a sandbox.
pub(super) const EXEC: &str = "sandbox.exec";

/// Maximum duration of a command.
const LONGEST_COMMAND: Duration = Duration::from_secs(600);

pub(super) fn endpoints() -> Result<Vec<(Definition, RequestBuilder)>, InvalidToolNameError> {
    let cost = CostTier::Moderate;
    let create = define(CREATE, "Makes a sealed sandbox that stays.", what_create_takes())?;
    let create = changing(create, Effect::Idempotent, BuiltInAction::CodeWrite);
    let create = Definition { cost, within: Duration::from_secs(120), ..create };
    let exec = define(EXEC, "Runs a command in a sandbox, and gives what it printed.", what_exec_takes())?;
    let exec = changing(exec, Effect::Additive, BuiltInAction::CodeWrite);
    let exec = Definition { cost, within: LONGEST_COMMAND, ..exec };
    let ids = object(&["task_id", "job_id"], &ids());
    let destroy = define("sandbox.destroy", "Ends a sandbox, and all that is in it.", ids)?;
    let destroy =
        Definition { is_guarded: true, ..changing(destroy, Effect::Destructive, BuiltInAction::CodeDelete) };
    let list = define("sandbox.list", "Lists the sandboxes of this node that stay.", list_of(json!({})))?;
    Ok(vec![(create, ask_create), (exec, ask_exec), (destroy, ask_destroy), (list, ask_list)])
}

/// The schema of a sandbox's ids.
pub(super) fn ids() -> Value {
    json!({
        "task_id": id("The task that the sandbox is for."),
        "job_id": id("The id under which the sandbox was made."),
    })
}

fn what_create_takes() -> Value {
    object(
        &["task_id", "job_id"],
        &json!({
            "task_id": id("The task that it is for."),
            "job_id": id("The id under which it is found again: one of your choice, a UUID."),
            "project_id": named("The project that the task belongs to; your own if you are bound to one."),
            "image_ref": { "type": "string", "maxLength": 512, "description": "An image; the node's own if none is named." },
            "env": { "type": "object", "additionalProperties": { "type": "string" } },
            "max_lifetime_seconds": { "type": "integer", "minimum": 1, "maximum": 86_400 },
            "idle_timeout_seconds": { "type": "integer", "minimum": 1, "maximum": 86_400 },
            "use_inference": { "type": "boolean", "description": "Whether models may be called in it." },
            "network_policy": { "type": "string", "enum": ["none", "restricted"] },
        }),
    )
}

fn what_exec_takes() -> Value {
    object(
        &["task_id", "job_id"],
        &json!({
            "task_id": id("The task that the sandbox is for."),
            "job_id": id("The id under which the sandbox was made."),
            "command": {
                "type": "string", "minLength": 1, "maxLength": 4_096,
                "description": "The program; its arguments are in `argv`. No shell reads either."
            },
            "argv": {
                "type": "array", "maxItems": 1_000, "items": { "type": "string" },
                "description": "With `command` the arguments of the program; alone the program and its arguments."
            },
            "cwd": { "type": "string", "description": "Where it works; `/workspace` if nothing is said." },
            "timeout_seconds": { "type": "integer", "minimum": 1, "maximum": 590 },
        }),
    )
}

/// Checks that a call of `sandbox.exec` names a program. The schema can't require it: some models' APIs reject a schema with
/// alternatives at its root.
pub(super) fn check_program(arguments: &Arguments) -> Result<(), Failure> {
    let has_argv = arguments.get("argv").and_then(Value::as_array).is_some_and(|argv| !argv.is_empty());
    match has_argv || arguments.contains_key("command") {
        true => Ok(()),
        false => Err(Failure::argument(
            "/argv: expected the program and its arguments, or the program in `command` and its arguments in `argv`",
        )),
    }
}

fn ask_create(arguments: &Arguments) -> EndpointRequest {
    let names = [
        ("task_id", "task_id"),
        ("job_id", "session_id"),
        ("project_id", "project_id"),
        ("agent_id", "agent_id"),
        ("image_ref", "image"),
        ("env", "env"),
        ("max_lifetime_seconds", "max_lifetime_seconds"),
        ("idle_timeout_seconds", "idle_timeout_seconds"),
        ("use_inference", "use_inference"),
        ("network_policy", "network_policy"),
    ];
    let path = "/v1/worker/sessions".to_owned();
    EndpointRequest { method: Method::POST, path, body: Some(body(arguments, &names)), told: None }
}

fn ask_exec(arguments: &Arguments) -> EndpointRequest {
    let names = [
        ("task_id", "task_id"),
        ("job_id", "session_id"),
        ("cwd", "cwd"),
        ("timeout_seconds", "timeout_seconds"),
    ];
    let mut asked = of_session(arguments, "exec", &names);
    let argv = arguments.get("argv").and_then(Value::as_array).into_iter().flatten();
    let command: Vec<_> = arguments.get("command").into_iter().chain(argv).cloned().collect();
    if let Some(body) = &mut asked.body {
        body["command"] = Value::Array(command);
    }
    asked
}

fn ask_destroy(arguments: &Arguments) -> EndpointRequest {
    of_session(arguments, "end", &[("task_id", "task_id"), ("job_id", "session_id")])
}

fn of_session(arguments: &Arguments, verb: &str, names: &[(&str, &str)]) -> EndpointRequest {
    let path = format!("/v1/worker/sessions/{}/{verb}", text(arguments, "job_id"));
    EndpointRequest { method: Method::POST, path, body: Some(body(arguments, names)), told: None }
}

fn ask_list(_: &Arguments) -> EndpointRequest {
    EndpointRequest {
        method: Method::GET,
        path: "/v1/worker/sessions".to_owned(),
        body: None,
        told: Some("sessions"),
    }
}
