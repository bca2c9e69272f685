//! Tool calls: the rules that apply to them, the reports about decisions, and requests for approvals.

use super::{as_agent, configure};
use crate::node::remote_tools::{call, envelope, list, names, token};
use crate::node::tools::{job_of, told, tool_calls};
use belljar_testkit::node::{Node, command, new_id, steps};
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use serde_json::{Value, json};

const HOUSE: &str = "
tool_access:
  default_level: sandboxed
  agents:
    - {name: noter, level: sandboxed, autonomy: full}
    - {name: mute, level: sandboxed, autonomy: full, denied: ['memory.*']}
    - {name: asker, level: sandboxed, autonomy: full, human_approval: [memory]}
    - {name: lead, level: elevated, autonomy: full}
    - {name: boss, level: elevated, autonomy: full, human_approval: [memory]}
    - {name: watched, level: elevated, autonomy: supervised}
    - {name: junior, level: standard, autonomy: full, allowed: ['job.submit', 'job.get', 'sandbox.create']}
";

const NOTE: &str = r#"
tell(call("memory.add", task_id=TASK, job_id=JOB, key="plan", content="first"))
tell([tool["name"] for tool in ask("tools/list")["result"]["tools"]])
"#;

#[test]
fn each_agents_calls_follow_its_own_rules_and_decisions_are_explained() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, HOUSE)]);
    let has = |listed: &Value, name: &str| listed.as_array().unwrap().contains(&json!(name));
    let [refused, listed] = &told(&node, &as_agent("mute", job_of(None, NOTE)))[..] else { panic!() };
    assert_eq!(refused["domain_code"], "permission_denied", "{refused}");
    assert!(!has(listed, "memory.add") && has(listed, "artifact.put"), "{listed}");
    // The control: the same job with another agent.
    let [done, listed] = &told(&node, &as_agent("noter", job_of(None, NOTE)))[..] else { panic!() };
    assert_eq!(done["status"], "ok", "{done}");
    assert!(has(listed, "memory.add"), "{listed}");

    let calls = tool_calls(&world);
    let [first, second] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(
        (&first["judged"]["agent_id"], &second["judged"]["agent_id"]),
        (&json!("mute"), &json!("noter"))
    );
    assert_eq!((&first["decision"], &second["decision"]), (&json!("deny"), &json!("allow")));
    assert_eq!(first["judged"]["generation"].as_str().map(str::len), Some(12), "{first}");
    let decision = first["call_id"].as_str().unwrap();
    let mut why = world.command(&["why", decision, "--json"]);
    let why = why.env("BELLJAR_STATE_DIR", world.path().join("state/node")).output().unwrap();
    let why: Value = serde_json::from_slice(&why.stdout).unwrap();
    assert_eq!(
        (&why["judged"]["rule"], &why["judged"]["agent_id"]),
        (&first["judged"]["rule"], &json!("mute"))
    );
}

#[test]
fn job_without_an_agent_uses_the_default_level_and_without_rules_none_is_checked() {
    let note = r#"
tell(call("memory.list", task_id=TASK, job_id=JOB))
tell(call("memory.add", task_id=TASK, job_id=JOB, key="plan", content="first", agent_id="lead"))
"#;
    let world = World::new(crate::BELLJAR);
    let house = HOUSE.replace("default_level: sandboxed", "default_level: custom");
    let node = Node::start(&world, &["--config", &configure(&world, &house)]);
    let [refused, named] = &told(&node, &job_of(None, note))[..] else { panic!() };
    assert_eq!(refused["domain_code"], "permission_denied", "{refused}");
    assert_ne!(named["status"], "ok", "a call can't name its agent: {named}");
    assert_eq!(tool_calls(&world)[0]["judged"]["level"], "custom");
    // The node's record shows which decisions another level for unlisted agents would have changed.
    let database = format!("sqlite:{}", world.path().join("state/node/node.db").display());
    let tried = |level: &str| {
        let candidate = house.replace("default_level: custom", &format!("default_level: {level}"));
        world.write("candidate.yaml", candidate);
        let mut check =
            world.command(&["policy", "check", "candidate.yaml", "--json", "--database", &database]);
        let ran = check.env("BELLJAR_STATE_DIR", world.path().join("state/node")).output().unwrap();
        serde_json::from_slice::<Value>(&ran.stdout).unwrap()["changes"].clone()
    };
    assert_eq!(tried("custom"), json!([]));
    assert_eq!(tried("sandboxed")[0]["would_be"], "allow", "{}", tried("sandboxed"));
    // The control: without agents in the configuration no call is checked, whatever agent is named.
    let plain = World::new(crate::BELLJAR);
    let node = Node::start(&plain, &[]);
    let [done, _] = &told(&node, &as_agent("mute", job_of(None, note)))[..] else { panic!() };
    assert_eq!(done["status"], "ok", "{done}");
    assert_eq!(tool_calls(&plain)[0]["judged"], Value::Null);
}

#[test]
fn job_call_that_needs_approval_waits_at_the_node_and_runs_once() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, HOUSE)]);
    let script = r#"
import time
def note(): return call("memory.add", task_id=TASK, job_id=JOB, key="plan", content="first")
tell(note())
while (answer := note())["status"] != "ok": time.sleep(0.1)
tell(answer)
tell(note())
"#;
    let job = as_agent("asker", job_of(None, script));
    let id = node.submit(job);
    let mut asked = Value::Null;
    until(|| {
        asked = node.get("/v1/worker/approvals?status=pending").json()["approvals"][0].clone();
        asked["id"].is_string()
    });
    assert_eq!((&asked["agent_id"], &asked["tool"]), (&json!("asker"), &json!("memory.add")));
    let approve = format!("/v1/worker/approvals/{}:approve", asked["id"].as_str().unwrap());
    assert_eq!(node.post(&approve, &json!({ "version": 1 })).status, 200);
    let over = node.wait_for(&id, "completed");
    let output = over["sba_result"]["steps"][0]["result"]["stdout"].as_str().unwrap().to_owned();
    let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        [&lines[0]["domain_code"], &lines[1]["status"], &lines[2]["domain_code"]],
        ["approval_required", "ok", "approval_required"].map(Value::from).each_ref()
    );
}

#[test]
fn agent_cannot_approve_calls_of_its_own_jobs() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, HOUSE)]);
    let of = |agent: &str| token(&node, json!({ "kind": "project_manager", "agent_id": agent }));
    let told = told(&node, &as_agent("boss", job_of(None, NOTE)));
    assert_eq!(told[0]["domain_code"], "approval_required", "{told:?}");
    let asked = node.get("/v1/worker/approvals?status=pending").json()["approvals"][0].clone();
    let answered = |agent: &str| {
        let arguments = json!({ "approval_id": asked["id"], "confirm": true, "reason": "looked at" });
        envelope(&call(node.address(), &of(agent), "approve_call", &arguments)).clone()
    };
    let own = answered("boss");
    assert_eq!(own["domain_code"], "permission_denied", "{own}");
    // An agent without an approver asks for an approval.
    assert_eq!(answered("watched")["domain_code"], "approval_required");
    let by_another = answered("lead");
    assert_eq!(by_another["data"]["approval"]["status"], "approved", "{by_another}");
}

#[test]
fn autonomy_that_requires_approval_applies_to_planner_tools_too() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, HOUSE)]);
    let task = new_id();
    let skill = json!({ "task_id": task, "content": "# How\n\nSo.\n", "name": "how", "scope": format!("task:{task}") });
    let sandbox = json!({ "task_id": task, "job_id": new_id() });
    let called = |agent: &str, name: &str, arguments: &Value| {
        let token = token(&node, json!({ "kind": "project_manager", "agent_id": agent }));
        envelope(&call(node.address(), &token, name, arguments)).clone()
    };
    for (name, arguments) in [("sandbox.create", &sandbox), ("skills.create", &skill)] {
        let asked = called("watched", name, arguments);
        assert_eq!(asked["domain_code"], "approval_required", "{name}: {asked}");
        let done = called("lead", name, arguments);
        assert_eq!(done["status"], "ok", "{name}: {done}");
    }
    assert_eq!(called("watched", "sandbox.list", &json!({}))["status"], "ok");
}

#[test]
fn planner_is_checked_as_its_tokens_agent_and_cannot_grant_more_than_it_has() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, HOUSE)]);
    let of = |agent: &str| token(&node, json!({ "kind": "project_manager", "agent_id": agent }));
    let (lead, junior) = (of("lead"), of("junior"));
    let without_agent = token(&node, json!({ "kind": "project_manager" }));
    let listed = |token: &str| names(&list(&node, token));
    assert!(listed(&lead).contains(&"sandbox.exec".to_owned()));
    assert!(!listed(&without_agent).contains(&"job.submit".to_owned()), "{:?}", listed(&without_agent));
    assert!(listed(&junior).contains(&"job.submit".to_owned()));

    let submit = |token: &str, program: &str| {
        let job = command(&[program]);
        let wanted = json!({ "task_id": job["task_id"], "job_id": job["job_id"], "sandbox": job["sandbox"] });
        call(node.address(), token, "job.submit", &wanted)
    };
    // A job can't start a program that the agent of the token may not start.
    let refused = submit(&junior, "curl");
    assert_eq!(envelope(&refused)["domain_code"], "permission_denied", "{refused}");
    for (token, program) in [(&junior, "true"), (&lead, "curl")] {
        let done = submit(token, program);
        assert_eq!(envelope(&done)["status"], "ok", "{done}");
    }
    let create = |token: &str| {
        let of = json!({ "task_id": new_id(), "job_id": new_id() });
        call(node.address(), token, "sandbox.create", &of)
    };
    for token in [&junior, &lead] {
        let made = create(token);
        assert_eq!(envelope(&made)["status"], "ok", "{made}");
    }

    // A token for a sandbox can't name an agent: processes in a sandbox act as the agent of their job.
    let job = steps(&json!([{ "type": "run_command", "args": { "argv": ["python3", "-c", "pass"] } }]));
    let named = json!({
        "version": 1, "kind": "sandbox", "task_id": job["task_id"], "job_id": job["job_id"], "agent_id": "lead",
    });
    assert_eq!(node.post("/v1/worker/mcp/tokens", &named).status, 400);
}

#[test]
fn agent_unknown_to_the_rules_gets_no_job_session_or_token() {
    let world = World::new(crate::BELLJAR);
    let slips = |house: &str| {
        let node = Node::start(&world, &["--config", &configure(&world, house)]);
        let job = node.post("/v1/worker/jobs:run", &as_agent("workr", command(&["git", "--version"])));
        let session =
            json!({ "version": 1, "session_id": new_id(), "task_id": new_id(), "agent_id": "workr" });
        let session = node.post("/v1/worker/sessions", &session);
        let wanted = json!({ "version": 1, "kind": "project_manager", "agent_id": "workr" });
        [job, session, node.post("/v1/worker/mcp/tokens", &wanted)]
    };
    for answered in slips("tool_access: {agents: [{name: worker, level: sandboxed}]}") {
        let problem = answered.json();
        let detail = problem["detail"].as_str().unwrap_or_default();
        let says_why = detail.contains("agent workr is not listed") && detail.contains("`worker`, perhaps");
        assert!(answered.status == 400 && says_why, "{problem}");
    }
    // The controls: a configuration with a level for unlisted agents, and one where new agents earn theirs.
    let listed = "tool_access: {default_level: sandboxed, agents: [{name: worker, level: sandboxed}]}";
    for answered in slips(listed) {
        assert!(answered.status < 300, "{}", answered.json());
    }
    let earning = "tool_access: {agents: [{name: worker, level: sandboxed}]}\n\
        trust: {strategy: per_category, initial_levels: {git: restricted}, \
        promotion_criteria: {git: {restricted_to_standard: {tasks_completed: 2, quality_score_min: 0}}}}";
    for answered in slips(earning) {
        assert!(answered.status < 300, "{}", answered.json());
    }
}
