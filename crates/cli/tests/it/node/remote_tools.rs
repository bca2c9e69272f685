//! Remote agents call the node's tools, each with a token of its own: valid, invalid and revoked tokens.

use super::on_each_database;
use crate::models::recorded;
use belljar_testkit::http::{HttpRequest, HttpResponse};
use belljar_testkit::node::{Node, TOKEN, new_id, steps};
use belljar_testkit::postgres::Postgres;
use belljar_testkit::skip::skip;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;

const ISSUE: &str = "/v1/worker/mcp/tokens";
const REVOKE: &str = "/v1/worker/mcp/tokens:revoke";

/// A job that runs until it is ended.
struct LongRunningJob {
    task_id: String,
    job_id: String,
}

/// Returns a request without a token.
fn asked(method: &str, mut params: Value) -> HttpRequest {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params["name"].as_str().map(str::to_owned);
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let asked = HttpRequest::new("POST", "/mcp")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", method)
        .json(message.to_string());
    name.iter().fold(asked, |asked, name| asked.header("Mcp-Name", name))
}

/// Returns a request in a protocol revision with a handshake.
fn asked_formerly(method: &str, params: &Value) -> HttpRequest {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    HttpRequest::new("POST", "/mcp")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2025-11-25")
        .json(message.to_string())
}

fn sent(to: SocketAddr, token: &str, asked: HttpRequest) -> HttpResponse {
    asked.header("Authorization", &format!("Bearer {token}")).send(to).unwrap()
}

pub(super) fn list(node: &Node<'_>, token: &str) -> HttpResponse {
    sent(node.address(), token, asked("tools/list", json!({})))
}

pub(crate) fn call(to: SocketAddr, token: &str, name: &str, arguments: &Value) -> Value {
    let answered = sent(to, token, asked("tools/call", json!({ "name": name, "arguments": arguments })));
    answered.json()
}

fn note(of: &LongRunningJob, key: &str) -> Value {
    json!({ "task_id": of.task_id, "job_id": of.job_id, "key": key, "content": "c" })
}

pub(crate) fn envelope(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]
}

fn reason(answer: &Value) -> &str {
    answer["error"]["data"]["reason"].as_str().unwrap_or_default()
}

pub(super) fn names(answered: &HttpResponse) -> Vec<String> {
    let answer = answered.json();
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn issue(node: &Node<'_>, mut wanted: Value) -> HttpResponse {
    wanted["version"] = json!(1);
    node.post(ISSUE, &wanted)
}

pub(crate) fn token(node: &Node<'_>, wanted: Value) -> String {
    let answered = issue(node, wanted);
    assert_eq!(answered.status, 201, "{}", answered.json());
    answered.json()["token"].as_str().unwrap().to_owned()
}

fn revoke(node: &Node<'_>, token: &str) -> Value {
    node.post(REVOKE, &json!({ "version": 1, "token": token })).json()
}

fn waiting(node: &Node<'_>) -> LongRunningJob {
    let job = steps(&json!([{ "type": "run_command", "args": { "argv": ["sleep", "600"] } }]));
    let task_id = job["task_id"].as_str().unwrap().to_owned();
    let job_id = node.submit(job);
    node.wait_for(&job_id, "in_progress");
    LongRunningJob { task_id, job_id }
}

fn end(node: &Node<'_>, job: &LongRunningJob) {
    node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{}:cancel", job.job_id)));
    node.wait_for(&job.job_id, "canceled");
}

fn of(job: &LongRunningJob) -> Value {
    json!({ "kind": "sandbox", "task_id": job.task_id, "job_id": job.job_id })
}

fn denials(world: &World) -> Vec<String> {
    let all = recorded(&world.path().join("state/node/audit"), "request_denied");
    all.iter().map(|record| record["detail"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn remote_agent_has_its_kinds_tools_for_its_own_job_in_both_protocol_families() {
    on_each_database(
        "node::remote_tools::remote_agent_has_its_kinds_tools_for_its_own_job_in_both_protocol_families",
        |world, arguments| {
            let node = Node::start(world, arguments);
            let (one, other) = (waiting(&node), waiting(&node));
            let (of_one, of_other) = (token(&node, of(&one)), token(&node, of(&other)));
            let to = node.address();
            let tools = names(&list(&node, &of_one));
            let has = |name: &str| tools.iter().any(|tool| tool == name);
            assert!(has("memory.add") && !has("sandbox.exec") && !has("job.submit"), "{tools:?}");
            let added = call(to, &of_one, "memory.add", &note(&one, "k"));
            assert_eq!(envelope(&added)["status"], "ok", "{added}");
            // The other agent's token gives no access to data of the first, by any of its ids.
            for arguments in [
                note(&one, "x"),
                json!({ "task_id": other.task_id, "job_id": one.job_id, "key": "x", "content": "c" }),
                json!({ "task_id": one.task_id, "job_id": other.job_id, "key": "x", "content": "c" }),
            ] {
                assert_eq!(reason(&call(to, &of_other, "memory.add", &arguments)), "out_of_bounds");
            }
            let lists = |token: &str, of: &LongRunningJob| {
                let ids = json!({ "task_id": of.task_id, "job_id": of.job_id });
                envelope(&call(to, token, "memory.list", &ids))["pagination"]["total"].clone()
            };
            assert_eq!((lists(&of_one, &one), lists(&of_other, &other)), (json!(1), json!(0)));
            assert_eq!(reason(&call(to, &of_one, "sandbox.exec", &json!({}))), "never");

            let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" } });
            let hello = sent(to, &of_one, asked_formerly("initialize", &hello));
            assert_eq!(hello.json()["result"]["protocolVersion"], "2025-11-25");
            // There is no session that another client could take over; an invented session id has no effect.
            assert_eq!(hello.header("mcp-session-id"), None);
            let ids = json!({ "task_id": one.task_id, "job_id": one.job_id });
            let params = json!({ "name": "memory.list", "arguments": ids });
            let formerly = || asked_formerly("tools/call", &params).header("Mcp-Session-Id", &new_id());
            assert_eq!(envelope(&sent(to, &of_one, formerly()).json())["pagination"]["total"], 1);
            assert_eq!(reason(&sent(to, &of_other, formerly()).json()), "out_of_bounds");
            assert_eq!(asked_formerly("tools/call", &params).send(to).unwrap().status, 401);

            let calls = recorded(&world.path().join("state/node/audit"), "tool_called");
            assert!(calls.iter().all(|record| record["subject_type"] == "sandbox"), "{calls:?}");
            let denied = calls.iter().filter(|record| record["decision"] == "deny").count();
            assert_eq!((calls.len(), denied), (9, 5));
        },
    );
}

#[test]
fn request_needs_exactly_one_valid_token_in_one_header() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let (job, to) = (waiting(&node), node.address());
    let good = token(&node, of(&job));
    let bearer = format!("Bearer {good}");
    let with = |values: &[&str]| {
        let listing = asked("tools/list", json!({}));
        let listing = values.iter().fold(listing, |asked, value| asked.header("Authorization", value));
        listing.send(to).unwrap()
    };
    let changed = format!("{}{}", &good[..good.len() - 1], if good.ends_with('0') { '1' } else { '0' });
    let long = format!("Bearer {}", "a".repeat(16 << 10));
    for values in [
        &[][..],
        &[bearer.as_str(), bearer.as_str()],
        &[bearer.as_str(), "Basic dTpw"],
        &["Basic dTpw", bearer.as_str()],
        &["Basic dTpw"],
        &[&format!("Basic {good}")],
        &[&format!("{bearer}, Basic dTpw")],
        &[&format!("{bearer}, {bearer}")],
        &[&format!("Bearer {}", good.to_uppercase())],
        &[&format!("Bearer {changed}")],
        &[&format!("{bearer}0")],
        &[&bearer[..bearer.len() - 1]],
        &[&format!("Bearer {}", &good[4..])],
        &["Bearer"],
        &["Bearer "],
        &["bjt_"],
        &[good.as_str()],
        &[long.as_str()],
        // The node's own token isn't valid for this endpoint.
        &[&format!("Bearer {TOKEN}")],
    ] {
        let answered = with(values);
        assert_eq!(answered.status, 401, "{values:?}");
        let challenge = answered.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer") && !challenge.contains(&good), "{challenge}");
        assert!(!String::from_utf8_lossy(&answered.body).contains("result"), "{values:?}");
    }
    for target in [format!("/mcp?access_token={good}"), format!("/mcp?token={good}")] {
        let mut listing = asked("tools/list", json!({}));
        listing.target = target;
        assert_eq!(listing.clone().send(to).unwrap().status, 401);
        assert_eq!(listing.header("Authorization", &bearer).send(to).unwrap().status, 401);
    }
    // And the agent's token isn't valid for other endpoints.
    for path in ["/v1/worker/jobs", "/v1/worker/openapi.json", "/metrics"] {
        let asked = HttpRequest::new("GET", path);
        assert_eq!(asked.clone().header("Authorization", &bearer).send(to).unwrap().status, 401, "{path}");
        assert_eq!(node.send(&asked).status, 200, "{path}");
    }
    let forged =
        HttpRequest::new("POST", ISSUE).json(json!({ "version": 1, "kind": "project_manager" }).to_string());
    assert_eq!(sent(to, &good, forged.clone()).status, 401);
    assert_eq!(node.send(&forged).status, 201);
    // A web page of another origin can't use it, nor can a DNS name that resolves to this address (DNS rebinding).
    let origin =
        |origin: &str| sent(to, &good, asked("tools/list", json!({})).header("Origin", origin)).status;
    assert_eq!((origin("http://evil.example"), origin("http://localhost:3000")), (403, 403));
    assert_eq!(by_host(to, &good, "evil.example"), 403);
    assert_eq!(by_host(to, &good, "localhost:1"), 200);
    // The control.
    assert_eq!(with(&[&bearer]).status, 200);
    assert_eq!(with(&[&format!("bearer   {good}")]).status, 200);
    let is_recorded = |code: &str| denials(&world).iter().any(|found| found == code);
    for code in ["token_not_shown", "token_unknown", "token_malformed"] {
        wait::until(|| is_recorded(code));
    }
    // After so many denials the last ones may only have been counted.
    wait::until(|| origin("http://evil.example") == 403 && is_recorded("other_host_or_origin"));
}

/// Returns the status of the response to a request with this `Host`.
fn by_host(to: SocketAddr, token: &str, host: &str) -> u16 {
    let HttpRequest { headers, body, .. } = asked("tools/list", json!({}));
    let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n");
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    head.push_str(&format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len()));
    let mut stream = TcpStream::connect(to).unwrap();
    stream.write_all(&[head.into_bytes(), body].concat()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn configured_host_names_are_accepted_besides_the_nodes_own() {
    let world = World::new(crate::BELLJAR);
    let config = world.write("config.yaml", "mcp: { hosts: [node.example, 'other.example:7'] }\n");
    let node = Node::start(&world, &["--config", config.to_str().unwrap()]);
    let good = token(&node, json!({ "kind": "project_manager" }));
    let hosts = [
        "node.example",
        "NODE.example:80",
        "other.example:7",
        "127.0.0.1:9",
        "[::1]",
        "other.example",
        "a.node.example",
    ];
    let answered = hosts.map(|host| by_host(node.address(), &good, host));
    assert_eq!(answered, [200, 200, 200, 200, 200, 403, 403]);
    world.write("bad.yaml", "mcp: { hosts: ['*'], host: a }\n");
    let said = Node::refused(&world, &["--config", "bad.yaml"]);
    assert!(said.contains("hosts") && said.contains("a host such as node.example"), "{said}");
}

#[test]
fn revoked_or_expired_token_is_refused() {
    on_each_database("node::remote_tools::revoked_or_expired_token_is_refused", |world, arguments| {
        let node = Node::start(world, arguments);
        let job = waiting(&node);
        let (one, other) = (token(&node, of(&job)), token(&node, of(&job)));
        assert_eq!((list(&node, &one).status, list(&node, &other).status), (200, 200));
        assert_eq!(revoke(&node, &one), json!({ "version": 1, "revoked": true }));
        assert_eq!((list(&node, &one).status, list(&node, &other).status), (401, 200));
        // A repeated revocation has no effect, nor has one of an unknown token.
        assert_eq!(revoke(&node, &one)["revoked"], false);
        assert_eq!(revoke(&node, "bjt_never")["revoked"], false);
        let mut short = of(&job);
        short["expires_in_seconds"] = json!(2);
        let short = token(&node, short);
        assert_eq!(list(&node, &short).status, 200);
        wait::until(|| list(&node, &short).status == 401);
        assert_eq!(list(&node, &other).status, 200);
        for code in ["token_revoked", "token_expired"] {
            wait::until(|| denials(world).iter().any(|found| found == code));
        }
    });
}

#[test]
fn token_is_refused_after_its_jobs_end_also_by_a_restarted_node() {
    on_each_database(
        "node::remote_tools::token_is_refused_after_its_jobs_end_also_by_a_restarted_node",
        |world, arguments| {
            let mut node = Node::start(world, arguments);
            let (one, other, left) = (waiting(&node), waiting(&node), waiting(&node));
            let [of_one, of_other, of_left] = [&one, &other, &left].map(|job| token(&node, of(job)));
            let manager = token(&node, json!({ "kind": "project_manager", "task_id": left.task_id }));
            for token in [&of_one, &of_other, &of_left, &manager] {
                assert_eq!(list(&node, token).status, 200);
            }
            // The tokens are invalid exactly when the end of the job is visible.
            end(&node, &one);
            assert_eq!((list(&node, &of_one).status, list(&node, &of_other).status), (401, 200));
            end(&node, &other);
            node.killed_and_started();
            // No node carries out an interrupted job, so its token is invalid.
            for token in [&of_one, &of_other, &of_left] {
                assert_eq!(list(&node, token).status, 401);
            }
            // A token without a job stays valid.
            assert_eq!(list(&node, &manager).status, 200);
            assert_eq!(issue(&node, of(&one)).status, 409);
        },
    );
}

/// Makes a call that takes minutes, in a sandbox that was made for it.
fn long_call(to: SocketAddr, token: &str, of: &LongRunningJob, mark: &str) -> std::thread::JoinHandle<Value> {
    let ids = json!({ "task_id": of.task_id, "job_id": of.job_id });
    let made = call(to, token, "sandbox.create", &ids);
    assert_eq!(envelope(&made)["status"], "ok", "{made}");
    let (token, mark) = (token.to_owned(), mark.to_owned());
    std::thread::spawn(move || {
        let mut arguments = ids;
        arguments["argv"] = json!(["sh", "-c", format!("sleep 300; echo {mark}")]);
        call(to, &token, "sandbox.exec", &arguments)
    })
}

#[test]
fn revoking_a_token_ends_its_requests_and_no_others() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let to = node.address();
    let (one, other, bound) = (waiting(&node), waiting(&node), waiting(&node));
    let of_task = |job: &LongRunningJob| json!({ "kind": "project_manager", "task_id": job.task_id });
    let [revoked, kept] = [&one, &other].map(|job| token(&node, of_task(job)));
    let mut of_job = of_task(&bound);
    of_job["job_id"] = json!(bound.job_id);
    let of_job = token(&node, of_job);
    let marks = [new_id(), new_id(), new_id()];
    let by_revoked = long_call(to, &revoked, &one, &marks[0]);
    let by_kept = long_call(to, &kept, &other, &marks[1]);
    let by_job = long_call(to, &of_job, &bound, &marks[2]);
    wait::until(|| marks.iter().all(|mark| super::processes_with(mark) > 0));
    let before = std::time::Instant::now();
    revoke(&node, &revoked);
    assert_eq!(reason(&by_revoked.join().unwrap()), "over");
    eprintln!("a call under way has ended {:?} after its token was taken back", before.elapsed());
    end(&node, &bound);
    let before = std::time::Instant::now();
    assert_eq!(reason(&by_job.join().unwrap()), "over");
    eprintln!("a call under way has ended {:?} after its job", before.elapsed());
    // The control: the call with the kept token is still under way.
    assert!(!by_kept.is_finished());
    assert_eq!(list(&node, &kept).status, 200);
    revoke(&node, &kept);
    assert_eq!(reason(&by_kept.join().unwrap()), "over");
    let calls = recorded(&world.path().join("state/node/audit"), "tool_called");
    let cut =
        calls.iter().filter(|call| call["tool_name"] == "sandbox.exec" && call["status"] == "cancelled");
    assert_eq!(cut.count(), 3);
}

#[test]
fn agent_bound_to_a_task_cannot_see_another_task() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let to = node.address();
    let (one, other) = (waiting(&node), waiting(&node));
    let of_task =
        |job: &LongRunningJob| token(&node, json!({ "kind": "project_manager", "task_id": job.task_id }));
    let [of_one, of_other, anybody] =
        [of_task(&one), of_task(&other), token(&node, json!({ "kind": "project_manager" }))];
    for (token, of) in [(&of_one, &one), (&of_other, &other)] {
        let ids = json!({ "task_id": of.task_id, "job_id": of.job_id });
        assert_eq!(envelope(&call(to, token, "sandbox.create", &ids))["status"], "ok");
    }
    let told = |token: &str, name: &str| envelope(&call(to, token, name, &json!({})))["data"].to_string();
    for name in ["job.list", "sandbox.list", "task.list"] {
        let [by_one, by_anybody] = [&of_one, &anybody].map(|token| told(token, name));
        assert!(by_one.contains(&one.task_id) && !by_one.contains(&other.task_id), "{name}: {by_one}");
        // The control: the other job exists.
        assert!(by_anybody.contains(&one.task_id) && by_anybody.contains(&other.task_id), "{name}");
    }
    let get = |token: &str| call(to, token, "job.get", &json!({ "job_id": other.job_id }));
    assert_eq!(envelope(&get(&of_one))["domain_code"], "not_found");
    assert_eq!(envelope(&get(&of_other))["status"], "ok");
    let others = json!({ "task_id": other.task_id, "job_id": other.job_id, "argv": ["true"] });
    assert_eq!(reason(&call(to, &of_one, "sandbox.exec", &others)), "out_of_bounds");
    let dressed = json!({ "task_id": one.task_id, "job_id": other.job_id, "argv": ["true"] });
    assert_ne!(envelope(&call(to, &of_one, "sandbox.exec", &dressed))["status"], "ok");
    assert_eq!(envelope(&call(to, &of_other, "sandbox.exec", &others))["status"], "ok");
}

#[test]
fn job_token_is_issued_by_the_command_line() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let job = waiting(&node);
    let place = format!("http://{}", node.address());
    let of_node = ["--node", &place, "--token-file", "token"];
    let run = |rest: &[&str]| world.run(&[&["job", "token", &job.job_id], rest].concat());
    let printed = run(&of_node).succeeded();
    assert_eq!(list(&node, printed.stdout.trim()).status, 200);
    let told = run(&[&of_node[..], &["--json", "--expires-in", "60"]].concat()).succeeded().json();
    assert_eq!(list(&node, told["token"].as_str().unwrap()).status, 200);
    let refused = run(&[]);
    assert!(refused.stderr.contains("--node URL is needed"), "{}", refused.stderr);
    end(&node, &job);
    let refused = run(&of_node);
    assert!(refused.stderr.contains("is over") && refused.stdout.is_empty(), "{}", refused.stderr);
}

#[test]
fn token_revoked_at_one_node_is_refused_at_the_other() {
    let name = "node::remote_tools::token_revoked_at_one_node_is_refused_at_the_other";
    let (_server, url) = match Postgres::start().and_then(|server| server.database().map(|url| (server, url)))
    {
        Ok(found) => found,
        Err(why) => return skip(name, &why),
    };
    let (first, second) = (World::new(crate::BELLJAR), World::new(crate::BELLJAR));
    let one = Node::start(&first, &["--database", &url]);
    let other = Node::start(&second, &["--database", &url]);
    let task_id = new_id();
    let manager = token(&one, json!({ "kind": "project_manager", "task_id": task_id }));
    assert_eq!((list(&one, &manager).status, list(&other, &manager).status), (200, 200));
    let of = LongRunningJob { task_id, job_id: new_id() };
    let mark = new_id();
    let under_way = long_call(other.address(), &manager, &of, &mark);
    wait::until(|| super::processes_with(&mark) > 0);
    let before = std::time::Instant::now();
    revoke(&one, &manager);
    assert_eq!((list(&one, &manager).status, list(&other, &manager).status), (401, 401));
    assert_eq!(reason(&under_way.join().unwrap()), "over");
    eprintln!("a call under way at another node has ended after {:?}", before.elapsed());
}

#[test]
fn request_ends_when_the_database_does_not_confirm_its_token() {
    let name = "node::remote_tools::request_ends_when_the_database_does_not_confirm_its_token";
    let found = Postgres::start_own().and_then(|server| server.database().map(|url| (server, url)));
    let (server, url) = match found {
        Ok(found) => found,
        Err(why) => return skip(name, &why),
    };
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--database", &url]);
    let of = LongRunningJob { task_id: new_id(), job_id: new_id() };
    let manager = token(&node, json!({ "kind": "project_manager", "task_id": of.task_id }));
    let mark = new_id();
    let under_way = long_call(node.address(), &manager, &of, &mark);
    wait::until(|| super::processes_with(&mark) > 0);
    server.hold(true);
    let before = std::time::Instant::now();
    assert_eq!(reason(&under_way.join().unwrap()), "over");
    eprintln!("a call under way has ended {:?} after its database fell silent", before.elapsed());
    assert_eq!(list(&node, &manager).status, 503);
    server.hold(false);
    // The control: the token was valid all the time.
    wait::until(|| list(&node, &manager).status == 200);
}

#[test]
fn token_is_limited_to_eight_concurrent_requests_without_delaying_others() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let to = node.address();
    let (job, other) = (waiting(&node), waiting(&node));
    let manager = token(&node, json!({ "kind": "project_manager", "task_id": job.task_id }));
    let another = token(&node, of(&other));
    let marks: Vec<_> = (0..8).map(|_| new_id()).collect();
    let calls: Vec<_> = marks.iter().map(|mark| long_call(to, &manager, &job, mark)).collect();
    wait::until(|| marks.iter().all(|mark| super::processes_with(mark) > 0));
    let refused = list(&node, &manager);
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert_eq!(list(&node, &another).status, 200);
    revoke(&node, &manager);
    assert!(calls.into_iter().all(|call| reason(&call.join().unwrap()) == "over"));
}

#[test]
fn token_is_issued_only_for_existing_objects_and_never_stored() {
    on_each_database(
        "node::remote_tools::token_is_issued_only_for_existing_objects_and_never_stored",
        |world, arguments| {
            let node = Node::start(world, arguments);
            let job = waiting(&node);
            let mut unknown = of(&job);
            unknown["job_id"] = json!(new_id());
            assert_eq!(issue(&node, unknown).status, 404);
            let mut other_task = of(&job);
            other_task["task_id"] = json!(new_id());
            assert_eq!(issue(&node, other_task).status, 404);
            for refused in [
                json!({ "kind": "sandbox" }),
                json!({ "kind": "operator", "task_id": new_id() }),
                json!({ "kind": "project_analyst" }),
                json!({ "kind": "project_manager", "user_id": "ada" }),
                json!({ "kind": "project_manager", "expires_in_seconds": 86_401 }),
                json!({ "kind": "project_manager", "tools": [] }),
            ] {
                assert_eq!(issue(&node, refused.clone()).status, 400, "{refused}");
            }
            let issued = issue(&node, of(&job));
            assert_eq!(issued.status, 201);
            let issued = issued.json();
            let good = issued["token"].as_str().unwrap();
            let until: jiff::Timestamp = issued["expires_at"].as_str().unwrap().parse().unwrap();
            let life = until.duration_since(jiff::Timestamp::now()).as_secs();
            assert!((3_500..=3_600).contains(&life), "{life}");
            let analyst = token(&node, json!({ "kind": "project_analyst", "user_id": "ada" }));
            assert!(!names(&list(&node, &analyst)).iter().any(|name| name == "job.submit"));
            assert_eq!(list(&node, good).status, 200);
            revoke(&node, good);
            revoke(&node, "bjt_never");

            let audit = world.path().join("state/node/audit");
            let ids = |kind: &str| -> Vec<_> {
                recorded(&audit, kind).iter().map(|event| event["token_id"].clone()).collect()
            };
            assert_eq!(ids("mcp_token_revoked"), [issued["token_id"].clone()]);
            assert_eq!(ids("mcp_token_issued")[0], issued["token_id"]);
            assert_eq!(ids("mcp_token_issued").len(), 2);
            // While the node runs, so with the database's log in its current state; and in the node's output.
            let digits = good.strip_prefix("bjt_").unwrap();
            let id = issued["token_id"].as_str().unwrap();
            let (mut with_token, mut with_id) = (Vec::new(), 0);
            every_file(world.path(), &mut |path, bytes| {
                let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
                if has(digits) || has(analyst.strip_prefix("bjt_").unwrap()) {
                    with_token.push(path.to_owned());
                }
                with_id += usize::from(has(id));
            });
            assert_eq!(with_token, Vec::<std::path::PathBuf>::new());
            // The control: this search finds existing content.
            assert!(with_id > 0);
        },
    );
}

fn every_file(below: &Path, look: &mut impl FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(below).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => every_file(&entry.path(), look),
            Ok(kind) if kind.is_file() => {
                look(&entry.path(), &std::fs::read(entry.path()).unwrap_or_default());
            }
            _ => {}
        }
    }
}
