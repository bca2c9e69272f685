//! An agent that uses the gateway's tools, with the official Python SDK as the gateway.

use super::house::{AgentFixture, call, done, finish, job, report, small_job, text_of};
use crate::scene::{JOB_ID, RunOutcome, TASK_ID};
use belljar_testkit::mcp_server::McpServer;
use belljar_testkit::models::{Answer, Request, Script};
use belljar_testkit::skip::skip;
use serde_json::{Value, json};

/// Runs a job with access to this gateway.
fn run_at(url: &str, house: &AgentFixture, job: &Value) -> RunOutcome {
    let output = house.command(job).env("MCP_GATEWAY_URL", url).output().unwrap();
    house.scene.ran(&output)
}

/// Returns the names of a request's tools.
fn tools(request: &Request) -> Vec<String> {
    let tools = request.json()["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns the outcome of the last call.
fn last_outcome(request: &Request) -> String {
    let messages = request.json()["messages"].as_array().unwrap().clone();
    let mut outcomes = messages.iter().filter(|message| message["role"] == "tool");
    outcomes.next_back().unwrap()["content"].as_str().unwrap().to_owned()
}

fn warnings(ran: &RunOutcome) -> Vec<String> {
    let events = ran.events();
    let warnings = events.iter().filter(|event| event["event"] == "warning");
    warnings.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn tools_of_a_real_server_are_called_and_errors_return_to_the_model() {
    let server = match McpServer::start(0) {
        Ok(server) => server,
        Err(why) => {
            return skip("tools_of_a_real_server_are_called_and_errors_return_to_the_model", &why);
        }
    };
    let calls = [
        ("text_echo", json!({ "text": "ä\nb" })),
        ("data_sum", json!({ "numbers": [1, 2, 3] })),
        ("fault_fail", json!({ "why": "the moon" })),
        ("time_wait", json!({ "seconds": 1 })),
        ("text_huge", json!({ "size": 2_000_000 })),
        ("art_image", json!({})),
        ("art_link", json!({})),
        ("artifact_put", json!({ "task_id": "of another", "path": "a", "content_bytes_base64": "YQ==" })),
        ("text_echo", json!({ "text": 7 })),
        ("text_echo", json!("no object")),
        ("text_nobody", json!({})),
    ];
    let answers = calls.iter().map(|(tool, arguments)| call(tool, arguments.clone()));
    let rest =
        [done(1), finish(), call("artifact_list", json!({})), call("artifact_put", json!({})), report()];
    let house = AgentFixture::with(answers.chain(rest).collect());
    let ran = run_at(&server.url(), &house, &small_job());
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    let asked = house.asked();
    let told: Vec<String> = asked[1..].iter().map(last_outcome).collect();
    assert_eq!(told[0], "ä\nb");
    assert!(told[1].contains(r#""sum": 6"#), "{}", told[1]);
    assert!(told[2].starts_with("failed") && told[2].contains("the moon"), "{}", told[2]);
    assert_eq!(told[3], "waited");
    assert!(told[4].starts_with("beginx") && told[4].ends_with("xend") && told[4].len() < 30_000);
    assert_eq!(told[5], "[image: image/png]");
    assert_eq!(told[6], "[resource: guide://art]\nthe guide");
    assert!(told[7].contains(r#""status": "ok""#), "{}", told[7]);
    for failed in &told[8..11] {
        assert!(failed.starts_with("failed"), "{failed}");
    }
    // While criteria are checked, only read-only tools can be called.
    assert!(told[13].contains(r#""data": ["a"]"#), "{}", told[13]);
    assert!(
        told[14].starts_with("failed") && told[14].contains("while criteria are checked"),
        "{}",
        told[14]
    );
    let offered = tools(&asked[0]);
    let own = offered.iter().position(|name| name == "finish").unwrap();
    let at = offered.iter().position(|name| name == "art_image").unwrap();
    assert!(own < at && offered.iter().all(|name| !name.contains('.')), "{offered:?}");
    assert!(!offered.contains(&"load_tool".to_owned()));
    assert_eq!(ran.result["agent"]["failed_tool_calls"], 5);
    let log = ran.events();
    let names: Vec<&Value> =
        log.iter().filter(|event| event["event"] == "tool_finished").map(|event| &event["tool"]).collect();
    assert_eq!(names[7], "artifact.put");
    let puts: Vec<Value> = server.calls().into_iter().filter(|call| call["tool"] == "artifact.put").collect();
    assert_eq!(puts.len(), 1);
    assert_eq!(puts[0]["arguments"]["task_id"], TASK_ID, "the job's own, whatever a model says");
}

#[test]
fn only_loaded_tools_of_a_large_gateway_can_be_called() {
    let server = match McpServer::start(60) {
        Ok(server) => server,
        Err(why) => return skip("only_loaded_tools_of_a_large_gateway_can_be_called", &why),
    };
    let house = AgentFixture::with(vec![
        call("bulk2_t008", json!({ "word": "too early" })),
        call("list_tools", json!({ "category": "group1" })),
        call("list_tools", json!({ "category": "nothing" })),
        call("load_tool", json!({ "tool_name": "bulk2.t008" })),
        call("bulk2_t008", json!({ "word": "loaded" })),
        call("load_tool_resource", json!({ "tool_name": "bulk2_t008", "resource_id": "guide://bulk/8" })),
        call("load_tool_resource", json!({ "tool_name": "bulk2_t008", "resource_id": "guide://bulk/9" })),
        call("load_tool", json!({ "tool_name": "no_such_tool" })),
        done(1),
        finish(),
        report(),
    ]);
    let ran = run_at(&server.url(), &house, &small_job());
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    let asked = house.asked();
    let told: Vec<String> = asked[1..].iter().map(last_outcome).collect();
    let system = asked[0].json()["messages"][0]["content"].as_str().unwrap().to_owned();
    let lines: Vec<&str> = system.lines().filter(|line| line.starts_with("- bulk")).collect();
    assert_eq!(lines.len(), 60, "{system}");
    assert!(
        lines[0].starts_with("- bulk0_t000 (group0, cost low): Says its number, 0, and a word."),
        "{}",
        lines[0]
    );
    let of_tools: String = system.split("# Tools").nth(1).unwrap().to_owned();
    assert!(of_tools.len() < 3_000 * 3 + 500, "{}", of_tools.len());
    assert_eq!(tools(&asked[0]).iter().filter(|name| name.starts_with("bulk")).count(), 0);
    assert!(told[0].starts_with("failed") && told[0].contains("load_tool"), "{}", told[0]);
    assert_eq!(told[1].lines().count(), 20, "{}", told[1]);
    assert!(told[1].lines().all(|line| line.contains(r#""category":"group1""#)));
    assert!(told[2].starts_with("failed") && told[2].contains("group0, group1, group2"), "{}", told[2]);
    assert!(told[3].contains("It goes on about that.") && told[3].contains(r#""word""#), "{}", told[3]);
    assert!(
        tools(&asked[4]).contains(&"bulk2_t008".to_owned())
            && text_of(&asked[4]).contains("## Loaded tools\n\nbulk2_t008")
    );
    assert_eq!(told[4], "8 says loaded");
    assert_eq!(told[5], "How to call number 8.");
    assert!(told[6].starts_with("failed") && told[6].contains("guide://bulk/8"), "{}", told[6]);
    assert!(told[7].starts_with("failed"), "{}", told[7]);
    let called = server.calls();
    assert_eq!(called, [json!({ "tool": "bulk2.t008", "arguments": { "word": "loaded" } })]);
}

#[test]
fn full_context_window_unloads_the_tool_loaded_first() {
    let server = match McpServer::start(60) {
        Ok(server) => server,
        Err(why) => return skip("full_context_window_unloads_the_tool_loaded_first", &why),
    };
    let loads = |name: &str| call("load_tool", json!({ "tool_name": name }));
    let house = AgentFixture::with(vec![
        loads("text_huge"),
        loads("bulk0_t000"),
        call("text_huge", json!({ "size": 20_000 })),
        call("bulk0_t000", json!({ "word": "in between" })),
        call("text_huge", json!({ "size": 20_000 })),
        call("bulk0_t000", json!({ "word": "still there" })),
        done(1),
        finish(),
        report(),
    ]);
    let mut job = small_job();
    job["inference"]["context_tokens"] = json!(12_000);
    let ran = run_at(&server.url(), &house, &job);
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    let asked = house.asked();
    let loaded = |at: usize| -> Vec<String> {
        let named = tools(&asked[at]);
        named.into_iter().filter(|name| name == "text_huge" || name.starts_with("bulk")).collect()
    };
    assert_eq!(loaded(2), ["bulk0_t000", "text_huge"], "in the order of their names");
    assert!(last_outcome(&asked[3]).starts_with("beginx"));
    let unloaded = (3..asked.len()).find(|at| loaded(*at) == ["bulk0_t000"]).unwrap();
    assert!(unloaded <= 6, "{unloaded}");
    assert!(last_outcome(&asked[6]).contains("still there"), "{}", last_outcome(&asked[6]));
}

#[test]
fn skills_given_by_id_are_fetched_before_the_first_turn() {
    let server = match McpServer::start(0) {
        Ok(server) => server,
        Err(why) => return skip("skills_given_by_id_are_fetched_before_the_first_turn", &why),
    };
    let house = AgentFixture::with(vec![done(1), finish(), report()]);
    let context = json!({ "requirements": ["a wall"], "skill_ids": ["lay", "fly", "given"], "skills": { "given": "By hand." } });
    let ran = run_at(&server.url(), &house, &job(context));
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    let text = text_of(&house.asked()[0]);
    assert!(text.contains("## bricklaying\n\nLay them in mortar."), "{text}");
    assert!(text.contains("not available here: fly\n"), "{text}");
    assert!(
        warnings(&ran)
            .iter()
            .any(|said| said.contains("the skill fly is missing") && said.contains("no such skill"))
    );
    let asked_for: Vec<Value> =
        server.calls().iter().map(|call| call["arguments"]["skill_id"].clone()).collect();
    assert_eq!(asked_for, ["lay", "fly"]);
}

#[test]
fn agent_without_a_gateway_has_its_own_tools_and_logs_one_warning() {
    let unused_address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let lying = belljar_testkit::models::ModelServer::start(Script::from_fn(|_| {
        Some(Answer::own(
            200,
            &[("Content-Type", "application/json")],
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        ))
    }));
    let hatch = belljar_testkit::models::ModelServer::start(Script::from_fn(|_| {
        Some(Answer::own(404, &[("Content-Type", "application/problem+json")], r#"{"kind":"not_found"}"#))
    }));
    for (url, why) in [
        (String::new(), "no gateway is configured"),
        (format!("http://{unused_address}/mcp"), "cannot reach the gateway"),
        (format!("{}/mcp", hatch.url()), "the hatch has no MCP gateway"),
        (format!("{}/mcp", lying.url()), "the id of another request"),
        ("ftp://models.example/mcp".to_owned(), "neither http, https nor http+unix"),
    ] {
        let house = AgentFixture::with(vec![call("artifact_put", json!({})), done(1), finish(), report()]);
        let ran = run_at(&url, &house, &small_job());
        assert_eq!(ran.outcome(), "success", "{}", ran.result);
        let said: Vec<String> =
            warnings(&ran).into_iter().filter(|said| said.contains("only its own tools")).collect();
        assert!(said.len() == 1 && said[0].contains(why), "{said:?}");
        assert_eq!(tools(&house.asked()[0]).len(), 10);
        assert!(last_outcome(&house.asked()[1]).contains("there is no tool of that name"));
    }
}

#[test]
fn gateway_failure_during_a_job_does_not_end_it() {
    let server = match McpServer::start(0) {
        Ok(server) => server,
        Err(why) => return skip("gateway_failure_during_a_job_does_not_end_it", &why),
    };
    let (url, server) = (server.url(), std::sync::Mutex::new(Some(server)));
    let mut answers = vec![
        call("text_echo", json!({ "text": "before" })),
        call("text_echo", json!({ "text": "after" })),
        done(1),
        finish(),
        report(),
    ];
    answers.reverse();
    let house = AgentFixture::of(Script::from_fn(move |request| {
        request.operation().generates().then(|| {
            if answers.len() == 4 {
                drop(server.lock().unwrap().take());
            }
            answers.pop().unwrap()
        })
    }));
    let ran = run_at(&url, &house, &small_job());
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    let asked = house.asked();
    assert_eq!(last_outcome(&asked[1]), "before");
    assert!(
        last_outcome(&asked[2]).starts_with("failed: cannot reach the gateway"),
        "{}",
        last_outcome(&asked[2])
    );
    assert_eq!(ran.result["job_id"], JOB_ID);
}
