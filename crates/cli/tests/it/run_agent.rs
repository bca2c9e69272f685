//! `belljar run` of jobs with an agent: models, and messages of refusals.

use crate::BELLJAR;
use crate::models::{configure, recorded};
use belljar_testkit::job::{job, shell};
use belljar_testkit::models::{Answer, ModelServer, Script, ToolCall};
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Returns a job whose agent writes a file.
fn of_agent(source: Option<&str>) -> Value {
    let mut job = job(&json!([]));
    job["inference"] = json!({ "allowed_models": ["small"] });
    if let Some(source) = source {
        job["inference"]["source"] = json!(source);
    }
    let check = json!({ "text": "it greets", "check": { "argv": ["grep", "-q", "hello", "greeting.txt"] } });
    job["context"] = json!({ "requirements": ["there is a greeting"], "acceptance_criteria": [check] });
    job
}

fn way() -> Script {
    let call = |tool: &str, arguments: Value| Answer::tool(ToolCall::new(tool, arguments));
    Script::queue([
        call("write_file", json!({ "path": "greeting.txt", "content": "hello" })),
        call("todo_update", json!({ "id": 1, "status": "done" })),
        call("finish", json!({ "summary": "it is written" })),
    ])
}

#[test]
fn agent_of_a_job_calls_the_model_that_the_command_line_names() {
    World::as_everyone(BELLJAR, |world| {
        let server = ModelServer::start(way());
        let config = configure(world, &server);
        world.write("job.json", of_agent(None).to_string());
        let valid = world.run(&["validate", "job.json"]).succeeded().stdout;
        assert_eq!(
            valid,
            "job.json: valid, 0 steps; its agent calls one of: small (`belljar run --model NAME`, or a node with it)\n"
        );
        // Without it no model can be called.
        let without = world.run(&["run", "--json", "job.json"]);
        assert_eq!(without.json()["failure_code"], "inference_unavailable", "{without:?}");
        let ran = world.run(&["run", "--json", "--model", "small", "--config", &config, "job.json"]);
        let result = ran.succeeded().json();
        assert_eq!((&result["status"], &result["agent"]["models"]), (&json!("success"), &json!(["small"])));
        let calls = recorded(&world.path().join("state/audit"), "inference_call");
        let answers = calls.iter().filter(|call| call["model_asked"] == "small").count();
        assert_eq!(answers, 3, "{calls:?}");
    });
}

#[test]
fn model_that_the_job_may_not_call_is_refused_before_it_runs() {
    let world = World::new(BELLJAR);
    let server = ModelServer::start(way());
    let config = configure(&world, &server);
    let refused = |job: Value, model: &str, why: &str| {
        world.write("job.json", job.to_string());
        let ran = world.run(&["run", "--json", "--model", model, "--config", &config, "job.json"]);
        assert_eq!((ran.code, &ran.json()["failure_code"]), (125, &json!("schema_validation")), "{ran:?}");
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    };
    refused(of_agent(None), "other", "the job allows small alone");
    refused(of_agent(Some("api_egress")), "small", "`api_egress`");
    refused(job(&json!([shell("true")])), "small", "the job has no `inference`");
    assert!(server.requests().is_empty());
}

#[test]
fn mistake_on_the_command_line_is_no_internal_error() {
    let world = World::new(BELLJAR);
    world.write("job.json", job(&json!([shell("true")])).to_string());
    world.write("notes", "text");
    for (argument, value, why) in [
        ("--ro", "notes:/job/context", "can't lend at /job/context"),
        ("--workspace", "missing", "can't read missing"),
    ] {
        let ran = world.run(&["run", "--json", argument, value, "job.json"]);
        let result = ran.json();
        assert_eq!((ran.code, &result["failure_code"]), (125, &json!("schema_validation")), "{result}");
        assert!(result["failure_message"].as_str().unwrap().contains(why), "{result}");
    }
}
