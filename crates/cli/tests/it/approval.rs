//! Approvals of agents' calls: the requests and the answers, on one machine and at a node.

use crate::BELLJAR;
use crate::mcp::McpConversation;
use crate::node::remote_tools::{call, envelope, token};
use crate::session::SessionCleanup;
use belljar_contract::action::{ActionType, Risk};
use belljar_contract::approval::{Approval, CallScope};
use belljar_contract::id::ApprovalId;
use belljar_contract::tool::{AgentKind, ToolName, ToolSubject};
use belljar_policy::untrusted;
use belljar_store::approvals::{ApprovalRequest, Approvals, CallKey};
use belljar_store::audit::AuditLog;
use belljar_store::database::{Database, Location};
use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, TOKEN};
use belljar_testkit::terminal::at_a_terminal;
use belljar_testkit::wait;
use belljar_testkit::world::{ProgramOutput, World};
use belljar_tools::canonical;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const HOUSE: &str = "
tool_access:
  agents:
    - {name: asker, level: standard, autonomy: full, human_approval: ['code:write']}
    - {name: other, level: standard, autonomy: full, human_approval: ['code:write']}
";

fn world(more: &str) -> World {
    let world = World::new(BELLJAR);
    world.write(".config/belljar/config.yaml", format!("{HOUSE}{more}"));
    world
}

fn approval(world: &World, arguments: &[&str]) -> ProgramOutput {
    world.run(&[&["approval"], arguments].concat())
}

fn listed(world: &World, status: &str) -> Vec<Value> {
    let listed = approval(world, &["list", "--status", status, "--json"]).succeeded().json();
    listed.as_array().unwrap().clone()
}

/// Approves a call with the digest that `show` prints, like a script.
pub(crate) fn approve(world: &World, id: &str, more: &[&str]) -> ProgramOutput {
    let of_node = if more.first() == Some(&"--node") { more } else { &[] };
    let shown = approval(world, &[&["show", id, "--json"], of_node].concat()).succeeded().json();
    let digest = shown["arguments_sha256"].as_str().unwrap();
    approval(world, &[&["approve", id, "--digest", digest], more].concat())
}

/// Returns the id of the approval that a call requires.
fn waits(talk: &mut McpConversation, argv: &Value) -> String {
    let (code, message) = talk.refused("run", &json!({ "argv": argv }));
    assert_eq!(code, "approval_required", "{message}");
    message.split("Approval ").nth(1).unwrap()[..36].to_owned()
}

#[test]
fn approved_call_runs_exactly_once_also_after_a_server_restart() {
    let world = world("");
    let _sessions = SessionCleanup(&world);
    assert_eq!(approval(&world, &["list"]).succeeded().stdout, "No approvals.\n");
    let mut talk = McpConversation::begin(&world, &["--agent", "asker"]);
    let id = waits(&mut talk, &json!(["true"]));
    assert_eq!(waits(&mut talk, &json!(["true"])), id);
    drop(talk);
    let pending = listed(&world, "pending");
    assert_eq!((pending.len(), &pending[0]["id"], &pending[0]["agent_id"]), (1, &json!(id), &json!("asker")));
    assert_eq!(pending[0]["arguments"], json!({ "argv": ["true"] }));
    let shown = approval(&world, &["show", &id]).succeeded().stdout;
    for part in ["pending", "asker", "run", "code:write, risk", "sha256:", r#"{"argv":["true"]}"#] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Without a terminal no content is shown, so an approval requires the digest of the reviewed content.
    let unseen = approval(&world, &["approve", &id]);
    assert!(unseen.code == 125 && unseen.stderr.contains(&format!("approval show {id}")), "{unseen:?}");
    assert_eq!(listed(&world, "pending").len(), 1);
    approve(&world, &id, &["--reason", "fine"]).succeeded();
    approval(&world, &["approve", &id]).succeeded();
    let otherwise = approval(&world, &["deny", &id, "--reason", "no"]);
    assert!(otherwise.code == 2 && otherwise.stderr.contains("approved already"), "{otherwise:?}");

    let mut other = McpConversation::begin(&world, &["--agent", "other"]);
    assert_ne!(waits(&mut other, &json!(["true"])), id);
    drop(other);
    let mut talk = McpConversation::begin(&world, &["--agent", "asker"]);
    assert_ne!(waits(&mut talk, &json!(["false"])), id, "other arguments need another approval");
    assert_eq!(talk.done("run", &json!({ "argv": ["true"] }))["exit_code"], 0);
    assert_ne!(waits(&mut talk, &json!(["true"])), id, "once");
    drop(talk);
    let used = approval(&world, &["show", &id, "--json"]).succeeded().json();
    let said = ["status", "decision_reason"].map(|name| used[name].as_str().unwrap_or_default().to_owned());
    assert_eq!(said, ["used", "fine"]);
    assert!(used["decided_by"].as_str().unwrap().starts_with("uid:"), "{used}");
    let audit = world.run(&["audit", "verify"]);
    assert_eq!(audit.code, 0, "{audit:?}");
}

#[test]
fn approval_for_one_workspace_is_not_used_in_another() {
    let world = world("");
    let _sessions = SessionCleanup(&world);
    let [one, other] = ["one", "other"].map(|name| {
        world.write(&format!("{name}/file"), name);
        world.path().join(name).canonicalize().unwrap().to_str().unwrap().to_owned()
    });
    let in_workspace =
        |name: &'static str| McpConversation::begin(&world, &["--agent", "asker", "--workspace", name]);
    let argv = json!(["sh", "-c", "rm ./*"]);
    let mut talk = in_workspace("one");
    let id = waits(&mut talk, &argv);
    drop(talk);
    // The approver sees the directory.
    for shown in [approval(&world, &["show", &id]), approval(&world, &["list"])] {
        let shown = shown.succeeded().stdout;
        let last: String = one.chars().rev().take(30).collect::<Vec<_>>().into_iter().rev().collect();
        assert!(shown.contains(&last), "{shown}");
    }
    let pending = listed(&world, "pending");
    assert_eq!(pending[0]["scope"], json!({ "workspace": one }));
    approve(&world, &id, &[]).succeeded();
    let asked = world.run(&["audit", "show", "--json", "--kind", "approval_asked"]).succeeded().stdout;
    assert!(asked.contains(&one), "{asked}");

    let mut talk = in_workspace("other");
    let of_other = waits(&mut talk, &argv);
    assert_ne!(of_other, id);
    let shown = approval(&world, &["show", &of_other, "--json"]).succeeded().json();
    assert_eq!(shown["scope"], json!({ "workspace": other }));
    // An approval with an agent's own description is bound to its directory, too.
    let free = json!({ "action_type": "deploy:production", "title": "Deploy", "description": "now" });
    let in_other = talk.done("request_human_approval", &free)["approval_id"].as_str().unwrap().to_owned();
    drop(talk);
    approve(&world, &in_other, &[]).succeeded();
    // The control: in the directory of the request the approval is used.
    let mut talk = in_workspace("one");
    assert_eq!(talk.done("request_human_approval", &free)["status"], "pending");
    assert_eq!(talk.done("run", &json!({ "argv": argv }))["exit_code"], 0);
}

/// Returns lines that run a command that a reader could miss.
fn misleading() -> [String; 4] {
    [
        format!("echo hello {}; evil", " ".repeat(300)),
        "export TOKEN=\"$(cmd)\"; cat x".to_owned(),
        "import os\nos.system('evil')\n".to_owned(),
        "ls a\u{202e}b\u{200b}\u{1b}[8m; evil".to_owned(),
    ]
}

#[test]
fn approver_sees_all_arguments_in_every_format_and_approves_exactly_those() {
    let world = world("");
    let _sessions = SessionCleanup(&world);
    let mut talk = McpConversation::begin(&world, &["--agent", "asker"]);
    for line in misleading() {
        let given = json!({ "argv": ["echo", line], "env": { "TOKEN": "$(cmd)" } });
        let (code, message) = talk.refused("run", &given);
        assert_eq!(code, "approval_required", "{message}");
        let id = message.split("Approval ").nth(1).unwrap()[..36].to_owned();
        let decision = {
            let shown = approval(&world, &["show", &id, "--json"]).succeeded();
            assert!(!shown.stdout.contains(['\u{202e}', '\u{200b}', '\u{1b}']), "{shown:?}");
            let shown = shown.json();
            assert_eq!((&shown["arguments"], &shown["is_preview"]), (&given, &json!(false)));
            assert_eq!(shown["arguments_sha256"], canonical::digest(given.as_object().unwrap()));
            shown["decision_id"].as_str().unwrap().to_owned()
        };
        let as_json = untrusted::json(&given["argv"].to_string()).into_owned();
        let of_why = world.run(&["why", &decision]).succeeded().stdout;
        for text in [approval(&world, &["show", &id]).succeeded().stdout, of_why] {
            assert!(text.contains(&as_json) && !text.contains(['\u{202e}', '\u{200b}', '\u{1b}']), "{text}");
        }
        let audit = world.run(&["audit", "show", "--kind", "tool_called"]).succeeded().stdout;
        let recorded = Value::from(line.as_str()).to_string();
        let seen = recorded.split('\u{202e}').next().unwrap();
        assert!(audit.contains(seen) && !audit.contains(['\u{202e}', '\u{200b}', '\u{1b}']), "{audit}");
        let digest = canonical::digest(given.as_object().unwrap());
        let other = approval(&world, &["approve", &id, "--digest", &"0".repeat(64)]);
        assert!(other.code == 2 && other.stderr.contains(&digest), "{other:?}");
        assert_eq!(approval(&world, &["show", &id, "--json"]).succeeded().json()["status"], "pending");
        approval(&world, &["approve", &id, "--digest", &format!("sha256:{digest}")]).succeeded();
    }
}

#[test]
fn long_arguments_are_previewed_in_lists_and_shown_whole_for_the_decision() {
    let world = world("");
    let _sessions = SessionCleanup(&world);
    let mut talk = McpConversation::begin(&world, &["--agent", "asker"]);
    let given = json!({ "argv": ["echo", format!("{}; evil", " ".repeat(20_000))] });
    let (code, message) = talk.refused("run", &given);
    assert_eq!(code, "approval_required", "{message}");
    let id = message.split("Approval ").nth(1).unwrap()[..36].to_owned();
    let row = listed(&world, "pending").remove(0);
    assert_eq!(
        (&row["is_preview"], &row["arguments_bytes"]),
        (&json!(true), &json!(given.to_string().len()))
    );
    assert!(row["arguments"].as_str().unwrap().contains("… (2048 of"), "{row}");
    assert_eq!(approval(&world, &["show", &id, "--json"]).succeeded().json()["arguments"], given);
    assert!(approval(&world, &["show", &id]).succeeded().stdout.contains("; evil"));
    let huge = json!({ "argv": ["echo", "x".repeat(600_000)] });
    let (code, message) = talk.refused("run", &huge);
    assert!(code == "permission_denied" && message.contains("too large to be reviewed"), "{message}");
}

/// Approves at a terminal with this input. Returns the exit code and the output.
fn at_terminal(world: &World, id: &str, typed: &str) -> (i32, String) {
    let ran = at_a_terminal(world, &format!("{BELLJAR} approval approve {id}"), typed);
    (ran.code, ran.stdout)
}

#[test]
fn terminal_shows_the_whole_call_before_it_can_be_approved() {
    let world = world("");
    let _sessions = SessionCleanup(&world);
    let mut talk = McpConversation::begin(&world, &["--agent", "asker"]);
    let id = waits(&mut talk, &json!(["echo", format!("hello{}; evil\u{202e}", " ".repeat(300))]));
    let status = || approval(&world, &["show", &id, "--json"]).succeeded().json()["status"].clone();
    for (typed, code, is) in [("n\n", 3, "pending"), ("", 3, "pending"), ("y\n", 0, "approved")] {
        let (ended, shown) = at_terminal(&world, &id, typed);
        assert_eq!((ended, status()), (code, json!(is)), "{shown}");
        assert!(shown.contains("; evil\\u202e") && shown.contains("Approve exactly this call"), "{shown}");
    }
}

#[test]
fn denial_requires_a_reason_and_unknown_ids_are_reported() {
    let world = world("");
    let _sessions = SessionCleanup(&world);
    let mut talk = McpConversation::begin(&world, &["--agent", "asker"]);
    let id = waits(&mut talk, &json!(["true"]));
    assert_eq!(approval(&world, &["deny", &id]).code, 125);
    approval(&world, &["deny", &id, "--reason", "too risky"]).succeeded();
    let yes = approve(&world, &id, &[]);
    assert!(yes.code == 2 && yes.stderr.contains("denied already"), "{yes:?}");
    // Repeating the call makes a new request, and the call isn't made.
    assert_ne!(waits(&mut talk, &json!(["true"])), id);
    assert_eq!(approval(&world, &["show", &Uuid::nil().to_string()]).code, 2);
    assert_eq!(approval(&world, &["list", "--status", "maybe"]).code, 125);
}

#[test]
fn expired_approval_request_cannot_be_approved() {
    let world = world("approvals: {timeout: {low: 1s, medium: 1s, high: 1s, critical: 1s}}\n");
    let _sessions = SessionCleanup(&world);
    let mut talk = McpConversation::begin(&world, &["--agent", "asker"]);
    let id = waits(&mut talk, &json!(["true"]));
    wait::until(|| !listed(&world, "expired").is_empty());
    let late = approval(&world, &["approve", &id]);
    assert!(late.code == 2 && late.stderr.contains("expired"), "{late:?}");
    assert_ne!(waits(&mut talk, &json!(["true"])), id);
}

#[test]
fn call_whose_server_was_killed_needs_a_new_approval() {
    let world = world("");
    let _sessions = SessionCleanup(&world);
    let long = json!(["sleep", "600"]);
    let mut talk = McpConversation::begin(&world, &["--agent", "asker"]);
    let id = waits(&mut talk, &long);
    approve(&world, &id, &[]).succeeded();
    talk.begin_asking("tools/call", &json!({ "name": "run", "arguments": { "argv": long } }));
    wait::until(|| !listed(&world, "used").is_empty());
    kill_process(talk.pid(), Signal::KILL).unwrap();
    drop(talk);
    let mut talk = McpConversation::begin(&world, &["--agent", "asker"]);
    assert_ne!(waits(&mut talk, &long), id);
}

/// Adds a request of an agent of this kind to the node's database.
fn ask(state: &Path, kind: AgentKind, digit: &str) -> Approval {
    ask_in(state, (kind, "mean"), digit)
}

fn ask_in(state: &Path, (kind, project): (AgentKind, &str), digit: &str) -> Approval {
    ask_with(state, (kind, project), &json!({ "text": format!("\u{1b}[31m{digit}") }))
}

fn ask_with(state: &Path, (kind, project): (AgentKind, &str), arguments: &Value) -> Approval {
    let subject = ToolSubject {
        subject_type: kind,
        subject_id: Some("another".to_owned()),
        user_id: None,
        group_ids: Vec::new(),
        project_id: Some(project.to_owned()),
        task_id: None,
        job_id: None,
        run_id: None,
    };
    let arguments_sha256 = canonical::digest(arguments.as_object().unwrap());
    let question = ApprovalRequest {
        id: ApprovalId::from_uuid(Uuid::now_v7()),
        decision_id: Uuid::now_v7(),
        reason: "it takes a yes".to_owned(),
        arguments: arguments.clone(),
        action: ActionType::parse("docs:write").unwrap(),
        risk: Risk::Low,
        call: CallKey {
            agent_id: None,
            subject,
            tool: ToolName::parse("tell").unwrap(),
            arguments_sha256,
            scope: CallScope::new(),
        },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let database = Database::open(&Location::File(state.join("node.db"))).await.unwrap();
        let audit = Arc::new(AuditLog::open(&state.join("audit")).unwrap());
        let now = jiff::Timestamp::now();
        let within = Some(Duration::from_secs(3_600));
        Approvals::new(database, audit).ask(question, now, within).await.unwrap()
    })
}

fn state_of(world: &World) -> PathBuf {
    let below = [".local/state/belljar/node", "state/node", "state", "node"];
    let found =
        below.into_iter().map(|below| world.path().join(below)).find(|path| path.join("node.db").exists());
    found.unwrap_or_else(|| panic!("{:?}", world.picture(".")))
}

#[test]
fn node_approvals_over_http_require_the_operator_token() {
    let world = World::new(BELLJAR);
    let node = Node::start(&world, &[]);
    let state = state_of(&world);
    let [first, second, third] = ["a", "b", "c"].map(|digit| ask(&state, AgentKind::Sandbox, digit));
    let place = |id: &ApprovalId, verb: &str| format!("/v1/worker/approvals/{id}{verb}");
    let page = node.get("/v1/worker/approvals?status=pending&limit=2").json();
    assert_eq!(page["approvals"][0]["id"], third.id.as_str());
    let next = page["next_page_token"].as_str().unwrap();
    let page = node.get(&format!("/v1/worker/approvals?status=pending&limit=2&page_token={next}")).json();
    assert_eq!((&page["approvals"][0]["id"], page.get("next_page_token")), (&json!(first.id), None));
    assert_eq!(node.get("/v1/worker/approvals?status=maybe").status, 400);

    // An agent's token has no access here.
    let manager = token(&node, json!({ "kind": "project_manager", "project_id": "mean" }));
    for wrong in [manager.as_str(), "another-token-0123456789"] {
        let asked = HttpRequest::new("POST", &place(&first.id, ":approve"))
            .header("Authorization", &format!("Bearer {wrong}"));
        assert_eq!(asked.json(r#"{"version":1}"#).send(node.address()).unwrap().status, 401, "{wrong}");
    }
    assert_eq!(node.get(&place(&first.id, "")).json()["status"], "pending");
    // The control: the node's token has.
    let yes = || node.post(&place(&first.id, ":approve"), &json!({ "version": 1 }));
    let approved = yes();
    assert_eq!((approved.status, &approved.json()["decided_by"]), (200, &json!("operator")));
    assert_eq!(yes().json(), approved.json());
    let no = node.post(&place(&first.id, ":deny"), &json!({ "version": 1, "reason": "no" }));
    assert_eq!(no.status, 409, "{}", no.json());
    assert_eq!(node.post(&place(&second.id, ":deny"), &json!({ "version": 1 })).status, 400);
    let no = node.post(&place(&second.id, ":deny"), &json!({ "version": 1, "reason": "no" }));
    assert_eq!(no.json()["decision_reason"], "no");
    let unknown = ApprovalId::from_uuid(Uuid::now_v7());
    assert_eq!(node.get(&place(&unknown, "")).status, 404);
    assert_eq!(node.get(&place(&first.id, ":approve")).status, 405);

    // The content is shown and approved completely, also over HTTP.
    let given = json!({ "line": format!("echo hello{}; evil", " ".repeat(3_000)), "code": "$(cmd)" });
    let asked = ask_with(&state, (AgentKind::Sandbox, "mean"), &given);
    let page = node.get("/v1/worker/approvals?status=pending&limit=1").json();
    assert_eq!(page["approvals"][0]["is_preview"], true, "{page}");
    let whole = node.get(&place(&asked.id, "")).json();
    assert_eq!((&whole["arguments"], &whole["is_preview"]), (&given, &json!(false)));
    let naming = |digest: &str| json!({ "version": 1, "arguments_sha256": digest });
    let other = node.post(&place(&asked.id, ":approve"), &naming(&"0".repeat(64)));
    assert_eq!(other.status, 409, "{}", other.json());
    let own = node.post(&place(&asked.id, ":approve"), &naming(whole["arguments_sha256"].as_str().unwrap()));
    assert_eq!((own.status, &own.json()["arguments"]), (200, &given));

    world.write("operator-token", TOKEN);
    let url = format!("http://{}", node.address());
    let at_node = ["--node", &url, "--token-file", "operator-token"];
    let shown = approval(&world, &[&["show", third.id.as_str()], &at_node[..]].concat()).succeeded().stdout;
    assert!(shown.contains("pending") && shown.contains("expires") && !shown.contains('\u{1b}'), "{shown}");
    let unseen = approval(&world, &[&["approve", third.id.as_str()], &at_node[..]].concat());
    assert!(unseen.code == 125 && unseen.stderr.contains("approval show"), "{unseen:?}");
    approve(&world, third.id.as_str(), &at_node).succeeded();
    let listed = approval(&world, &[&["list"], &at_node[..]].concat()).succeeded().stdout;
    assert_eq!(listed.lines().count(), 5, "{listed}");
    let refused = approval(&world, &[&["deny", third.id.as_str(), "--reason", "no"], &at_node[..]].concat());
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[test]
fn planner_approves_sandboxed_agents_with_a_reason_but_never_other_planners() {
    let world = World::new(BELLJAR);
    let node = Node::start(&world, &[]);
    let state = state_of(&world);
    let [of_sandbox, second] = ["a", "b"].map(|digit| ask(&state, AgentKind::Sandbox, digit));
    let of_planner = ask(&state, AgentKind::ProjectManager, "c");
    let elsewhere = ask_in(&state, (AgentKind::Sandbox, "other"), "d");
    let token = token(&node, json!({ "kind": "project_manager", "project_id": "mean" }));
    let answered =
        |name: &str, arguments: Value| envelope(&call(node.address(), &token, name, &arguments)).clone();
    let listed = answered("list_approvals", json!({ "status": "pending" }));
    // Requests of another project are neither listed nor counted.
    assert_eq!(listed["data"].as_array().unwrap().len(), 3, "{listed}");
    assert_eq!(listed["pagination"], json!({ "total": 3, "offset": 0, "limit": 50 }));
    let last = answered("list_approvals", json!({ "status": "pending", "offset": 2, "limit": 2 }));
    assert_eq!(last["data"], json!([listed["data"][2]]), "{last}");
    assert_eq!(last["pagination"], json!({ "total": 3, "offset": 2, "limit": 2 }));
    let of =
        |approval: &Approval| json!({ "approval_id": approval.id, "confirm": true, "reason": "looked at" });
    let given = json!({ "code": format!("import os{}", " ".repeat(3_000)), "token": "$(cmd)" });
    let long = ask_with(&state, (AgentKind::Sandbox, "mean"), &given);
    let newest = answered("list_approvals", json!({ "limit": 1 }));
    assert_eq!(newest["data"][0]["is_preview"], true, "{newest}");
    let whole = answered("show_approval", json!({ "approval_id": long.id }));
    assert_eq!(whole["data"]["approval"]["arguments"], given, "{whole}");
    let mut naming = of(&long);
    naming["arguments_sha256"] = "0".repeat(64).into();
    assert_eq!(answered("approve_call", naming.clone())["domain_code"], "conflict");
    naming["arguments_sha256"] = whole["data"]["approval"]["arguments_sha256"].clone();
    assert_eq!(answered("approve_call", naming)["data"]["approval"]["arguments"], given);
    assert_eq!(answered("show_approval", json!({ "approval_id": elsewhere.id }))["domain_code"], "not_found");
    let unsure = answered("approve_call", json!({ "approval_id": of_sandbox.id, "reason": "looked at" }));
    assert_eq!(unsure["domain_code"], "guardrail_violated", "{unsure}");
    let own = answered("approve_call", of(&of_planner));
    assert_eq!(own["domain_code"], "permission_denied", "{own}");
    let others = answered("approve_call", of(&elsewhere));
    assert_eq!(others["domain_code"], "not_found", "{others}");
    let approved = answered("approve_call", of(&of_sandbox));
    assert_eq!(approved["data"]["approval"]["status"], "approved", "{approved}");
    let otherwise = answered("deny_call", of(&of_sandbox));
    assert_eq!(otherwise["domain_code"], "conflict", "{otherwise}");
    assert_eq!(answered("deny_call", of(&second))["data"]["approval"]["status"], "denied");
    let shown = node.get(&format!("/v1/worker/approvals/{}", of_planner.id)).json();
    assert_eq!(shown["status"], "pending");
}
