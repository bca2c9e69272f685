//! Jobs that planners submit: their users and projects, and the context that their agents get from those.

use super::planned::PlannerInProject;
use crate::models::{configure, recorded};
use belljar_testkit::models::{Answer, ModelServer, Script, ToolCall};
use belljar_testkit::node::{Node, new_id, script, steps};
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Returns a model's responses that make an agent meet the single criterion of [`job`].
fn way() -> [Answer; 3] {
    let call = |tool: &str, arguments: Value| Answer::tool(ToolCall::new(tool, arguments));
    [
        call("write_file", json!({ "path": "a.txt", "content": "a" })),
        call("todo_update", json!({ "id": 1, "status": "done" })),
        call("finish", json!({ "summary": "done" })),
    ]
}

/// Returns the arguments of `job.submit` for a job with an agent.
fn job(context: &Value) -> Value {
    let mut job = steps(&json!([]));
    let spec = &mut job["sandbox"]["job_spec"];
    spec["inference"] = json!({ "allowed_models": ["small"] });
    let check = json!({ "text": "it is there", "check": { "argv": ["test", "-e", "a.txt"] } });
    spec["context"] = json!({ "requirements": ["there is a file"], "acceptance_criteria": [check] });
    spec["context"].as_object_mut().unwrap().extend(context.as_object().unwrap().clone());
    json!({ "task_id": job["task_id"], "job_id": job["job_id"], "sandbox": job["sandbox"] })
}

/// Returns the messages of the model's last request.
fn told(server: &ModelServer) -> String {
    let asked = server.requests().into_iter().rfind(|request| request.operation().generates()).unwrap();
    asked.json()["messages"].to_string()
}

#[test]
fn planner_job_has_the_preferences_and_skills_of_its_project_and_user() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::queue(way().into_iter().chain(way())));
    let node = Node::start(&world, &["--config", &configure(&world, &server)]);
    let planner = PlannerInProject::new(&node);
    for (scope, id, value) in [("project", "mean", "language-of-mean"), ("user", "ada", "style-of-ada")] {
        let key = if scope == "user" { "output.summary_style" } else { "language.preferred" };
        let wish = json!({ "scope_type": scope, "scope_id": id, "key": key, "value": value, "value_type": "string" });
        planner.done("db.preference.create", &wish);
    }
    let skill =
        json!({ "name": "means", "content": "a mean is a sum over a count", "scope": "project:mean" });
    planner.done("skills.create", &skill);
    let mut theirs = job(&json!({ "skill_ids": ["means"] }));
    theirs["user_id"] = json!("ada");
    // The project is the one that the token is bound to.
    planner.done("job.submit", &theirs);
    node.wait_for(theirs["job_id"].as_str().unwrap(), "completed");
    let text = told(&server);
    let ids = ["task_id", "job_id"].map(|name| theirs[name].as_str().unwrap());
    for part in [
        "language-of-mean",
        "style-of-ada",
        "a mean is a sum over a count",
        "Project ID: mean",
        ids[0],
        ids[1],
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("not available here"), "{text}");
    let mut other = job(&json!({}));
    other["project_id"] = json!("median");
    let refused = planner.call("job.submit", &other);
    assert_eq!(refused["error"]["data"]["reason"], "out_of_bounds", "{refused}");
    other["project_id"] = json!("Mean");
    let refused = planner.call("job.submit", &other);
    assert_eq!(refused["error"]["data"]["reason"], "out_of_bounds", "{refused}");
    // Control: without a user and a project no context of theirs is included.
    let unbound = PlannerInProject::with_token(&node, json!({ "kind": "project_manager" }));
    let unbound_job = job(&json!({ "skill_ids": ["means"] }));
    unbound.done("job.submit", &unbound_job);
    node.wait_for(unbound_job["job_id"].as_str().unwrap(), "completed");
    let text = told(&server);
    for part in ["language-of-mean", "style-of-ada", "a mean is a sum", "Project ID"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

#[test]
fn planner_without_a_project_keeps_preferences_and_skills_for_each_project() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let planner = PlannerInProject::with_token(&node, json!({ "kind": "project_manager" }));
    let wish = json!({
        "scope_type": "project", "scope_id": "p1", "key": "language.preferred", "value": "de", "value_type": "string"
    });
    planner.done("db.preference.create", &wish);
    let task_id = new_id();
    let skill = json!({ "task_id": task_id, "name": "means", "content": "first", "scope": "project:p1" });
    let id = planner.done("skills.create", &skill)["id"].clone();
    let moved = json!({ "task_id": task_id, "skill_id": id, "content": "second", "scope": "project:p2" });
    assert_eq!(planner.done("skills.update", &moved)["scope"], "project:p2");
    let listed = planner.done("skills.list", &json!({ "task_id": task_id, "scope": "project:p2" }));
    assert_eq!(listed[0]["id"], id, "{listed}");
    assert_eq!(
        planner.done("skills.get", &json!({ "task_id": task_id, "skill_id": id }))["content"],
        "second"
    );
    // A planner that is bound to another project can't read or write it, in any spelling of the project's id.
    let bound = PlannerInProject::with_token(&node, json!({ "kind": "project_manager", "project_id": "P2" }));
    assert_eq!(bound.refused("skills.get", &json!({ "skill_id": id })), "not_found");
    assert_eq!(bound.done("skills.list", &json!({ "scope": "project:p2" })), json!([]));
    let theirs = json!({ "name": "x", "content": "x", "scope": "project:p2" });
    assert_eq!(bound.refused("skills.create", &theirs), "permission_denied");
    let wish = json!({
        "scope_type": "project", "scope_id": "p2", "key": "language.preferred", "value": "de", "value_type": "string"
    });
    assert_eq!(bound.refused("db.preference.create", &wish), "permission_denied");
    // No planner may write data of groups or of the system.
    for scope in ["system", "group:ops"] {
        let skill = json!({ "name": "x", "content": "x", "scope": scope });
        assert_eq!(planner.refused("skills.create", &skill), "permission_denied", "{scope}");
    }
    let denied = recorded(&world.path().join("state/node/audit"), "tool_called");
    let denied = denied.iter().filter(|call| call["denied_by"] == "tool").count();
    assert_eq!(denied, 4, "a refusal by a tool counts as denied");
}

#[test]
fn planner_of_a_project_sees_no_job_or_sandbox_of_another() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let of = |project: &str| {
        PlannerInProject::with_token(&node, json!({ "kind": "project_manager", "project_id": project }))
    };
    let task_id = json!(new_id());
    let (theirs, stranger) = (of("mean"), of("median"));
    let job = |task_id: &Value| json!({ "task_id": task_id, "job_id": new_id(), "sandbox": script("true")["sandbox"] });
    let (job, of_same_task) = (job(&task_id), job(&task_id));
    theirs.done("job.submit", &job);
    node.wait_for(job["job_id"].as_str().unwrap(), "completed");
    let sandbox = json!({ "task_id": new_id(), "job_id": new_id() });
    theirs.done("sandbox.create", &sandbox);
    let note = json!({ "task_id": job["task_id"], "path": "note.txt", "content_bytes_base64": "aGVsbG8=" });
    theirs.done("artifact.put", &note);
    let task = json!({ "task_id": job["task_id"] });
    let exec = json!({ "task_id": sandbox["task_id"], "job_id": sandbox["job_id"], "argv": ["true"] });
    let upper = json!({ "task_id": job["task_id"].as_str().unwrap().to_uppercase(), "path": "note.txt" });
    let scope = format!("task:{}", job["task_id"].as_str().unwrap());
    let skill = json!({ "name": "means", "content": "a mean is a sum over a count", "scope": scope });
    let wish = json!({
        "scope_type": "task", "scope_id": job["task_id"], "key": "language.preferred", "value": "de", "value_type": "string"
    });
    for (tool, arguments) in [
        ("skills.create", &skill),
        ("skills.list", &json!({ "scope": scope })),
        ("db.preference.create", &wish),
        ("db.preference.list", &json!({ "scope_type": "task", "scope_id": job["task_id"] })),
        ("job.get", &json!({ "job_id": job["job_id"] })),
        ("task.get", &task),
        ("artifact.get", &json!({ "task_id": job["task_id"], "path": "note.txt" })),
        ("artifact.get", &upper),
        ("sandbox.exec", &exec),
        ("job.submit", &of_same_task),
    ] {
        assert_eq!(stranger.refused(tool, arguments), "not_found", "{tool}");
        // The control: it is there for its own project.
        theirs.done(tool, arguments);
    }
    // A task without jobs is of the project that is first to write to it.
    let fresh = json!({ "task_id": new_id(), "path": "note.txt", "content_bytes_base64": "aGVsbG8=" });
    let read = json!({ "task_id": fresh["task_id"], "path": "note.txt" });
    theirs.done("artifact.put", &fresh);
    for (tool, arguments) in [("artifact.get", &read), ("artifact.put", &fresh)] {
        assert_eq!(stranger.refused(tool, arguments), "not_found", "{tool}");
        theirs.done(tool, arguments);
    }
    let destroy = json!({
        "task_id": sandbox["task_id"], "job_id": sandbox["job_id"], "confirm": true, "reason": "a test"
    });
    assert_eq!(stranger.refused("sandbox.destroy", &destroy), "not_found");
    for list in ["job.list", "task.list", "sandbox.list"] {
        assert_eq!(stranger.done(list, &json!({})), json!([]), "{list}");
        assert!(!theirs.done(list, &json!({})).as_array().unwrap().is_empty(), "{list}");
    }
    let unbound = PlannerInProject::with_token(&node, json!({ "kind": "project_manager" }));
    assert_eq!(unbound.done("job.list", &json!({})).as_array().unwrap().len(), 2);
}

#[test]
fn prompt_has_the_personas_title_and_responses_name_skill_and_persona() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::queue(way()));
    let node = Node::start(&world, &["--config", &configure(&world, &server)]);
    let mut job = job(&json!({ "project_context": "Means of lists." }));
    let spec = &mut job["sandbox"]["job_spec"];
    spec["persona"] = json!({ "title": "Statistician", "description": "You are careful with means." });
    (spec["skill_id"], spec["persona_id"]) = (json!("skill-of-the-job"), json!("persona-of-the-job"));
    job["version"] = json!(1);
    job["project_id"] = json!("mean");
    let answer = node.run(&job).json();
    assert_eq!(answer["status"], "completed", "{answer}");
    let result = &answer["sba_result"];
    assert_eq!(
        (&result["skill_id"], &result["persona_id"]),
        (&json!("skill-of-the-job"), &json!("persona-of-the-job"))
    );
    let text = told(&server);
    for part in ["Statistician\\n\\nYou are careful with means.", "Project ID: mean\\n\\nMeans of lists."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The job describes its task only by the acceptance criteria.
    assert!(text.contains("Requirements: 1, acceptance criteria: 1; all are listed below"), "{text}");
}
