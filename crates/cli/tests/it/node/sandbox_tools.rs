//! `sandbox.*`: kept sandboxes are used by tools; the messages and audit records of refusals.

use super::planned::PlannerInProject;
use super::remote_tools::{envelope, list, token};
use crate::models::recorded;
use belljar_testkit::node::{Node, new_id};
use belljar_testkit::world::World;
use serde_json::{Value, json};

fn with(of: &Value, more: &Value) -> Value {
    let mut all = of.clone();
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

#[test]
fn command_output_of_a_sandbox_is_found_under_the_id_that_made_it() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let planner = PlannerInProject::new(&node);
    let of = json!({ "task_id": new_id(), "job_id": new_id() });
    assert_eq!(planner.refused("sandbox.stream_logs", &of), "not_found");
    planner.done("sandbox.create", &of);
    assert_eq!(
        planner.done("sandbox.stream_logs", &of),
        json!({ "events": [], "last_event_id": 0, "is_over": false })
    );
    planner
        .done("sandbox.exec", &with(&of, &json!({ "argv": ["sh", "-c", "echo out; echo err >&2; exit 3"] })));
    let told = planner.done("sandbox.stream_logs", &of);
    let events = told["events"].as_array().unwrap();
    let of_kind = |kind: &str| events.iter().filter(|event| event["event"] == kind).collect::<Vec<_>>();
    assert_eq!(of_kind("started")[0]["command"], json!(["sh", "-c", "echo out; echo err >&2; exit 3"]));
    let printed = |stream: &str| {
        let of_stream = of_kind("log").into_iter().filter(|event| event["stream"] == stream);
        of_stream.map(|event| event["text"].as_str().unwrap()).collect::<String>()
    };
    assert_eq!((printed("stdout").as_str(), printed("stderr").as_str()), ("out\n", "err\n"), "{told}");
    assert_eq!(of_kind("ended")[0]["exit_code"], 3);
    let last = told["last_event_id"].as_u64().unwrap();
    assert_eq!(last, events.len() as u64);
    let rest = planner.done("sandbox.stream_logs", &with(&of, &json!({ "after": last - 1 })));
    assert_eq!(rest["events"].as_array().unwrap().len(), 1, "{rest}");
    // Under another task this sandbox doesn't exist.
    let other = with(&of, &json!({ "task_id": new_id() }));
    assert_eq!(planner.refused("sandbox.stream_logs", &other), "not_found");
}

#[test]
fn program_is_named_by_command_or_by_the_first_of_argv() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let planner = PlannerInProject::new(&node);
    let of = json!({ "task_id": new_id(), "job_id": new_id() });
    planner.done("sandbox.create", &of);
    for program in
        [json!({ "command": "echo", "argv": ["a b", "c"] }), json!({ "argv": ["echo", "a b", "c"] })]
    {
        assert_eq!(planner.done("sandbox.exec", &with(&of, &program))["stdout"], "a b c\n", "{program}");
    }
    assert_eq!(
        planner.done("sandbox.exec", &with(&of, &json!({ "command": "pwd" })))["stdout"],
        "/workspace\n"
    );
    for nothing in [json!({}), json!({ "argv": [] }), json!({ "command": "" })] {
        assert_eq!(planner.refused("sandbox.exec", &with(&of, &nothing)), "invalid_argument", "{nothing}");
    }
}

#[test]
fn refused_argument_is_explained_in_words_and_not_by_a_regular_expression() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let planner = PlannerInProject::new(&node);
    let of = json!({ "task_id": new_id(), "job_id": new_id() });
    planner.done("sandbox.create", &of);
    let file = with(&of, &json!({ "path": "a.txt", "content_bytes_base64": "" }));
    let answer = planner.call("sandbox.put_file", &file);
    let expected = "/path: expected an absolute path inside the sandbox, such as /workspace/notes.txt";
    assert_eq!(envelope(&answer)["message"], expected, "{answer}");
    let answer = planner.call("job.get", &json!({ "job_id": "7" }));
    assert!(
        envelope(&answer)["message"].as_str().unwrap().starts_with("/job_id: expected a UUID such as "),
        "{answer}"
    );
    // Every pattern of every tool has a description of its own.
    for kind in ["project_manager", "operator"] {
        let tools = list(&node, &token(&node, json!({ "kind": kind }))).json();
        for tool in tools["result"]["tools"].as_array().unwrap() {
            let mut silent = Vec::new();
            patterns(&tool["inputSchema"], &mut silent);
            assert_eq!(silent, Vec::<Value>::new(), "{}", tool["name"]);
        }
    }
}

/// Collects the schemas with a pattern that has neither an annotation nor a format.
fn patterns(schema: &Value, silent: &mut Vec<Value>) {
    match schema {
        Value::Object(members) => {
            let is_explained = members.contains_key("x-belljar-expected") || members.contains_key("format");
            if members.get("pattern").is_some_and(Value::is_string) && !is_explained {
                silent.push(schema.clone());
            }
            members.values().for_each(|below| patterns(below, silent));
        }
        Value::Array(all) => all.iter().for_each(|below| patterns(below, silent)),
        _ => {}
    }
}

#[test]
fn call_refused_by_its_tool_or_a_guard_is_recorded_as_denied() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let planner = PlannerInProject::new(&node);
    let add = json!({ "image_ref": "registry.example/tools:2" });
    assert_eq!(planner.refused("sandbox.allowed_images.add", &add), "permission_denied");
    let of = json!({ "task_id": new_id(), "job_id": new_id() });
    assert_eq!(planner.refused("sandbox.destroy", &of), "guardrail_violated");
    // Control: a permitted call that failed for another reason counts as permitted.
    assert_eq!(planner.refused("job.get", &json!({ "job_id": new_id() })), "not_found");
    let calls = recorded(&world.path().join("state/node/audit"), "tool_called");
    let decided: Vec<_> = calls
        .iter()
        .map(|call| (call["tool_name"].as_str().unwrap(), &call["decision"], &call["denied_by"]))
        .collect();
    assert_eq!(
        decided,
        [
            ("sandbox.allowed_images.add", &json!("deny"), &json!("tool")),
            ("sandbox.destroy", &json!("deny"), &json!("guardrail")),
            ("job.get", &json!("allow"), &Value::Null),
        ]
    );
}

#[test]
fn tool_is_available_only_to_agents_of_its_configured_scope() {
    let world = World::new(crate::BELLJAR);
    let config = world.write(
        "config.yaml",
        "mcp: { tool_scopes: { html_parser: sandbox, artifact.put: pm, skills.create: sandbox } }\n",
    );
    let node = Node::start(&world, &["--config", config.to_str().unwrap()]);
    let planner = token(&node, json!({ "kind": "project_manager" }));
    let names = super::remote_tools::names(&list(&node, &planner));
    let has = |name: &str| names.iter().any(|known| known == name);
    assert!(has("artifact.put") && !has("html_parser") && !has("skills.create"), "{names:?}");
    let refused = PlannerInProject::new(&node).call("html_parser", &json!({ "html_content": "<p>a" }));
    assert_eq!(refused["error"]["data"]["reason"], "other_scope", "{refused}");
    let script = r#"
tell([tool["name"] for tool in ask("tools/list")["result"]["tools"]])
tell(call("artifact.put", task_id=TASK, path="a", content_bytes_base64=""))
"#;
    let job = super::tools::job_of(None, script);
    let told = super::tools::told(&node, &job);
    let inside: Vec<_> = told[0].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    // No scope gives agents in sandboxes the tools that they must never have.
    assert!(inside.contains(&"html_parser") && !inside.contains(&"artifact.put"), "{inside:?}");
    assert!(!inside.contains(&"skills.create"), "{inside:?}");
    assert_eq!(told[1]["error"]["data"]["reason"], "other_scope", "{}", told[1]);
    drop(node);
    world.write("bad.yaml", "mcp: { tool_scopes: { web.fetch: everyone, 'a b': pm } }\n");
    let checked = world.run(&["config", "check", "bad.yaml"]);
    assert_eq!(checked.code, 2, "{checked:?}");
    for expected in ["one of: both, pm, sandbox", "a tool's name such as web.fetch"] {
        assert!(checked.stdout.contains(expected), "{expected}: {checked:?}");
    }
    // Control: without the section each tool has its own scope.
    let node = Node::start(&world, &[]);
    let names = super::remote_tools::names(&list(&node, &token(&node, json!({ "kind": "project_manager" }))));
    assert!(
        ["html_parser", "skills.create"].iter().all(|own| names.iter().any(|name| name == own)),
        "{names:?}"
    );
}
