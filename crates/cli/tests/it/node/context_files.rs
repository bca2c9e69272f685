//! Files in a request for `/job/context`.

use crate::models::configure;
use belljar_testkit::models::{Answer, ModelServer, Script, ToolCall};
use belljar_testkit::node::{Node, command, steps};
use belljar_testkit::world::World;
use serde_json::{Value, json};

#[test]
fn context_files_reach_the_runner_and_its_agent() {
    let world = World::new(crate::BELLJAR);
    let gives_up = || Answer::tool(ToolCall::new("finish", json!({ "summary": "no", "gave_up": true })));
    let server = ModelServer::start(Script::queue([gives_up(), gives_up()]));
    let node = Node::start(&world, &["--config", &configure(&world, &server)]);
    let mut job = steps(&json!([
        { "type": "run_command", "args": { "argv": ["cat", "/job/context/skills/lay.md", "/job/context/a/b/c.txt"] } }
    ]));
    job["project_id"] = json!("mean");
    job["sandbox"]["job_spec"]["inference"] = json!({ "allowed_models": ["small"] });
    job["sandbox"]["context_files"] = json!({
        "project.md": "project of a file", "requirements.md": "- first\n- second\n", "skills/lay.md": "skill of a file",
        "preferences.json": r#"{"tone": "of a file"}"#, "a/b/c.txt": ", and more",
    });
    let answer = node.run(&job).json();
    let steps_done = &answer["sba_result"]["steps"][0]["result"]["stdout"];
    assert_eq!(*steps_done, "skill of a file, and more", "{answer}");
    let told = |server: &ModelServer, nth: usize| {
        let requests = server.requests();
        let asked = requests.iter().filter(|request| request.operation().generates()).nth(nth).unwrap();
        asked.json()["messages"].to_string()
    };
    let text = told(&server, 0);
    let parts = [
        "Project ID: mean\\n\\nproject of a file",
        "1. first\\n2. second",
        "## lay\\n\\nskill of a file",
        "- tone: \\\"of a file\\\"",
    ];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The command line sends a directory.
    let mut spec = steps(&json!([]))["sandbox"]["job_spec"].clone();
    spec["inference"] = json!({ "allowed_models": ["small"] });
    world.write("job.json", spec.to_string());
    world.write("context/task.md", "task of a file");
    world.write("context/skills/lay.md", "skill of a file");
    let url = format!("http://{}", node.address());
    let before = server.requests().iter().filter(|request| request.operation().generates()).count();
    let ran = world.run(&[
        "job",
        "--node",
        &url,
        "--token-file",
        "token",
        "submit",
        "--wait",
        "job.json",
        "--context",
        "context",
    ]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let text = told(&server, before);
    for part in ["task of a file", "## lay\\n\\nskill of a file"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn context_files_with_escaping_paths_or_without_a_reader_are_refused() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let refused = |job: &Value, expected: &str| {
        let answer = node.run(job);
        assert_eq!(answer.status, 400, "{}", answer.json());
        assert!(answer.json().to_string().contains(expected), "{expected}: {}", answer.json());
    };
    for path in ["../job.json", "/etc/passwd", "a/../../b", ".hidden"] {
        let mut job = steps(&json!([]));
        job["sandbox"]["context_files"] = json!({ path: "x" });
        refused(&job, "a relative path such as skills/tests.md");
    }
    let mut job = command(&["true"]);
    job["sandbox"]["context_files"] = json!({ "task.md": "x" });
    refused(&job, "context_files");
    // A link in the directory is not followed.
    world.write("context/task.md", "x");
    std::os::unix::fs::symlink("/etc/passwd", world.path().join("context/skill.md")).unwrap();
    world.write("job.json", steps(&json!([]))["sandbox"]["job_spec"].to_string());
    let ran = world.run(&["job", "submit", "job.json", "--context", "context"]);
    assert!(ran.code != 0 && ran.stderr.contains("neither a file nor a directory"), "{ran:?}");
}
