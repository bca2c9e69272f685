//! The records of a real LiteLLM, `usage list`, the result of a run and the audit log agree to the last digit: for a command,
//! an agent, a job, a session and a planner's job, also when a client disconnects, a stream breaks or no response comes.

use super::billed::{ended, listed};
use super::remote_tools::{call, envelope, token};
use super::sessions::open;
use crate::models::recorded;
use belljar_contract::inference::{Cost, CostTotal};
use belljar_testkit::http::HttpRequest;
use belljar_testkit::litellm::{LiteLlm, MASTER_KEY, MODEL};
use belljar_testkit::node::{Node, command, new_id};
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Two whole calls, a streamed one, one whose client disconnects, one whose stream breaks, and one without a response.
const CALLS: &str = r#"
import http.client, json, os, socket, urllib.request
def call(model, text, stream, timeout=60):
    body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": stream}
    url = os.environ.get("OPENAI_BASE_URL", "http://localhost:8080/v1") + "/chat/completions"
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode()), timeout=timeout)
call("small", "hi", False).read()
call("small", "hi", False).read()
call("small", "hi", True).read()
answer = call("small", "hang on", True)
answer.read(10)
answer.close()
try:
    print("broken", len(call("small", "break this", True).read()))
except (http.client.IncompleteRead, ConnectionError):
    print("broken")
try:
    print("silent", call("small", "say nothing", False, 1).status)
except (socket.timeout, OSError):
    print("silent")
"#;

/// Number of calls that a provider answered, and of those with an unknown cost.
const ANSWERED: usize = 5;
const UNKNOWN: usize = 2;

/// Starts a proxy to LiteLLM that breaks a stream off in its middle, or doesn't respond, for requests that ask for it.
fn relay(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || pass_on(client, to));
        }
    });
    address
}

/// Passes one request on, and its response back.
fn pass_on(mut client: TcpStream, to: SocketAddr) -> Option<()> {
    let request = whole_request(&mut client)?;
    let text = String::from_utf8_lossy(&request);
    let (breaks, stalls) = (text.contains("break this"), text.contains("hang on"));
    let is_silent = text.contains("say nothing");
    let mut server = TcpStream::connect(to).ok()?;
    // The end of the connection is the end of the response.
    let head_end = text.find("\r\n\r\n")?;
    server.write_all(&request[..head_end]).ok()?;
    server.write_all(b"\r\nconnection: close").ok()?;
    server.write_all(&request[head_end..]).ok()?;
    let mut answer = Vec::new();
    if breaks || stalls || is_silent {
        // LiteLLM has answered in full, and bills that.
        server.read_to_end(&mut answer).ok()?;
        let event = answer.windows(5).position(|bytes| bytes == b"data:");
        let passed = event.filter(|_| !is_silent).map_or(0, |event| event + 40);
        client.write_all(&answer[..passed]).ok()?;
        if !breaks {
            // Wait until the peer has closed the connection.
            let _ = client.set_read_timeout(Some(Duration::from_secs(30)));
            let _ = client.read(&mut [0]);
        }
        return client.shutdown(Shutdown::Both).ok();
    }
    std::io::copy(&mut server, &mut client).ok().map(drop)
}

fn whole_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut request, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        let read = client.read(&mut piece).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let Some(head_end) = text.find("\r\n\r\n") else { continue };
        let length = text[..head_end].lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        if request.len() >= head_end + 4 + length {
            return Some(request);
        }
    }
}

/// Writes a configuration with the models of LiteLLM through that proxy, and an agent that makes the calls.
fn configure(world: &World, litellm: &LiteLlm) {
    world.write("key", MASTER_KEY);
    std::fs::set_permissions(world.path().join("key"), PermissionsExt::from_mode(0o644)).unwrap();
    let program = CALLS.replace('{', "{{").replace('}', "}}");
    let config = json!({
        "inference": {
            "providers": [{"name": "house", "kind": "litellm", "url": format!("http://{}", relay(litellm.address())),
                           "credential": {"file": world.path().join("key")}}],
            "models": [{"name": "small", "provider": "house", "upstream": MODEL}],
        },
        "agents": [{"name": "caller", "description": "calls", "reads_messages": true, "argv": ["python3", "-c", program]}],
    });
    world.write("config.yaml", config.to_string());
    world.write("project/a.txt", "a");
}

/// Runs a test with a LiteLLM, if one is installed.
fn with_litellm(name: &str, test: impl FnOnce(&LiteLlm, &World)) {
    match LiteLlm::start() {
        Ok(litellm) => {
            let world = World::new(crate::BELLJAR);
            configure(&world, &litellm);
            test(&litellm, &world);
        }
        Err(why) => skip(name, &why),
    }
}

/// Checks that each report matches LiteLLM's record of the call, and that the totals are their sum.
fn agrees(litellm: &LiteLlm, listed: &Value, totals: &Value) {
    let reports = listed["reports"].as_array().unwrap();
    assert_eq!(reports.len(), ANSWERED, "{listed:#}");
    let (mut cost, mut input, mut output, mut unknown) = (CostTotal::default(), 0, 0, 0);
    for report in reports {
        let Some(told) = report["cost_usd"].as_str() else {
            assert_eq!(report["is_degraded"], true, "{report:#}");
            assert_eq!(
                (&report["input_tokens"], &report["output_tokens"]),
                (&Value::Null, &Value::Null),
                "{report:#}"
            );
            unknown += 1;
            continue;
        };
        let billed = litellm.billed_as(report["usage_unit_id"].as_str().unwrap());
        let [billed] = billed.as_slice() else { panic!("{report}: {billed:?}") };
        let spend = Cost::parse(&billed.row["spend"].to_string()).unwrap();
        assert_eq!(Cost::parse(told).unwrap().to_total(), spend.to_total(), "{report:#}");
        assert_eq!(billed.line["input_tokens"], report["input_tokens"]);
        assert_eq!(billed.line["output_tokens"], report["output_tokens"]);
        assert_eq!(billed.spend_logs_metadata["run_id"], report["run_id"]);
        assert_eq!(billed.spend_logs_metadata["graph_id"], report["graph_id"]);
        cost.add(&spend);
        input += billed.line["input_tokens"].as_u64().unwrap();
        output += billed.line["output_tokens"].as_u64().unwrap();
    }
    assert_eq!(unknown, UNKNOWN, "{listed:#}");
    let expected = json!({
        "calls": ANSWERED, "input_tokens": input, "output_tokens": output, "cost_usd": cost.to_string(),
        "degraded_calls": UNKNOWN, "uncounted_calls": UNKNOWN, "unended_calls": 0,
    });
    assert_eq!(*totals, expected, "{listed:#}");
    assert_eq!(listed["totals"], expected);
}

#[test]
fn usage_of_jobs_sessions_and_planner_jobs_matches_litellms_own_records() {
    with_litellm("usage_of_a_job_a_session_and_a_planners_job", |litellm, world| {
        let node = Node::start(world, &["--config", "config.yaml"]);
        let mut job = command(&["python3", "-c", CALLS]);
        job["sandbox"]["use_inference"] = json!(true);
        let told = node.run(&job).json();
        assert_eq!(told["stdout"], "broken\nsilent\n", "{told:#}");
        agrees(litellm, &listed(world, &told["run_id"]), &told["inference"]);
        assert_eq!(ended(world, "job_run_ended", ("job_id", &told["job_id"])), told["inference"]);

        let request =
            json!({ "version": 1, "task_id": new_id(), "session_id": new_id(), "use_inference": true });
        let session = open(&node, &request);
        let program = ["python3", "-c", CALLS];
        let done = node.post(&format!("{session}/exec"), &json!({ "version": 1, "command": program })).json();
        assert_eq!(done["stdout"], "broken\nsilent\n", "{done:#}");
        let told = node.send(&HttpRequest::new("POST", &format!("{session}/end"))).json();
        agrees(litellm, &listed(world, &told["run_id"]), &told["inference"]);
        assert_eq!(ended(world, "session_ended", ("session_id", &request["session_id"])), told["inference"]);

        let (task_id, job_id) = (new_id(), new_id());
        let planner = token(&node, json!({ "kind": "project_manager" }));
        let wanted = json!({ "task_id": task_id, "job_id": job_id, "sandbox": job["sandbox"] });
        let answer = call(node.address(), &planner, "job.submit", &wanted);
        assert_eq!(envelope(&answer)["status"], "ok", "{answer}");
        let told = node.wait_for(&job_id, "completed");
        agrees(litellm, &listed(world, &told["run_id"]), &told["inference"]);
        assert_eq!(ended(world, "job_run_ended", ("job_id", &told["job_id"])), told["inference"]);
    });
}

#[test]
fn usage_of_exec_and_agent_matches_litellms_own_records() {
    with_litellm("usage_of_a_command_and_of_an_agent", |litellm, world| {
        let models = ["--model", "small", "--config", "config.yaml"];
        let listed = |run: &Value| {
            world.run(&["usage", "list", "--json", "--run", run.as_str().unwrap()]).succeeded().json()
        };
        let audit = world.path().join("state/audit");
        let ran = world.run(&[&["exec"], &models[..], &["--", "python3", "-c", CALLS]].concat()).succeeded();
        assert_eq!(ran.stdout, "broken\nsilent\n", "{ran:?}");
        let run = recorded(&audit, "inference_call")[0]["run_id"].clone();
        let usage = recorded(&audit, "inference_end")[0]["usage"].clone();
        agrees(litellm, &listed(&run), &usage);
        assert!(ran.stderr.contains(&format!("{} USD", usage["cost_usd"].as_str().unwrap())), "{ran:?}");

        let agent = ["agent", "caller", "--workspace-copy", "project", "--json"];
        let told = world.run(&[&agent, &models[..], &["--", "call"]].concat()).json();
        assert_eq!(told["stdout"], "broken\nsilent\n", "{told:#}");
        agrees(litellm, &listed(&told["run_id"]), &told["totals"]);
        assert_eq!(recorded(&audit, "run_ended")[0]["usage"], told["totals"]);
    });
}
