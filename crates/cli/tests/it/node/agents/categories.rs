//! Jobs with a category: their results count for the agent's trust in that category.

use super::{as_agent, configure};
use crate::node::remote_tools::{call, envelope, token};
use belljar_testkit::node::{Node, TOKEN, command, new_id};
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use serde_json::{Value, json};

const BY_CATEGORY: &str = "
tool_access: {agents: [{name: worker, level: elevated, autonomy: full, allowed: ['job.submit']}]}
trust:
  strategy: per_category
  initial_levels: {file_system: restricted, git: restricted}
  promotion_criteria:
    file_system: {restricted_to_standard: {tasks_completed: 2, quality_score_min: 0}}
    git: {restricted_to_standard: {tasks_completed: 2, quality_score_min: 0}}
  re_verification: {enabled: true, interval_days: 90, decay_on_idle_days: 30, decay_on_error_rate: 0.15}
  jobs: {needs_check: false, an_hour: 100, a_day: 100, hours_at_level: 0}
";

fn job(agent: &str, category: Option<&str>, script: &str) -> Value {
    let mut job = as_agent(agent, command(&["python3", "-c", script]));
    if let Some(category) = category {
        job["task_category"] = json!(category);
    }
    job
}

/// Returns the levels for files and for git.
fn levels(node: &Node<'_>, agent: &str) -> [Value; 2] {
    let levels = node.get(&format!("/v1/worker/trust/{agent}")).json()["state"]["category_levels"].clone();
    ["file_system", "version_control"].map(|category| levels[category].clone())
}

#[test]
fn job_counts_in_its_category_and_failure_without_one_counts_in_all() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, BY_CATEGORY)]);
    for number in 0..2 {
        let script = format!("print({number})");
        assert_eq!(node.run(&job("worker", Some("git"), &script)).json()["status"], "completed");
        // A job without a category counts for none.
        let script = format!("print(-{number})");
        assert_eq!(node.run(&job("worker", None, &script)).json()["status"], "completed");
    }
    until(|| levels(&node, "worker") == ["restricted", "standard"]);
    let fail = "raise SystemExit(1)";
    for _ in 0..2 {
        assert_eq!(node.run(&job("one", Some("file_system"), fail)).json()["status"], "failed");
        assert_eq!(node.run(&job("all", None, fail)).json()["status"], "failed");
    }
    until(|| levels(&node, "one") == ["sandboxed", "restricted"]);
    // The control.
    until(|| levels(&node, "all") == ["sandboxed", "sandboxed"]);
    let refused = node.run(&job("worker", Some("gardening"), "pass"));
    assert_eq!((refused.status, &refused.json()["problems"][0]["path"]), (400, &json!("$.task_category")));
}

#[test]
fn job_category_is_set_by_the_command_line_and_by_planners() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, BY_CATEGORY)]);
    world.write("operator-token", TOKEN);
    let url = format!("http://{}", node.address());
    let submit = |category: &str, script: &str| {
        world.run(&[
            "job",
            "submit",
            "--node",
            &url,
            "--token-file",
            "operator-token",
            "--agent",
            "worker",
            "--task-category",
            category,
            "--",
            "python3",
            "-c",
            script,
        ])
    };
    submit("git", "print(1)").succeeded();
    submit("git", "print(2)").succeeded();
    until(|| levels(&node, "worker") == ["restricted", "standard"]);
    let wrong = submit("gardening", "pass");
    assert!(wrong.code != 0 && wrong.stderr.contains("is no category"), "{wrong:?}");
    let planner = token(&node, json!({ "kind": "project_manager", "agent_id": "worker" }));
    let planned = |category: &str| {
        let job = command(&["python3", "-c", "raise SystemExit(1)"]);
        let wanted = json!({
            "task_id": job["task_id"], "job_id": job["job_id"], "sandbox": job["sandbox"], "task_category": category,
        });
        envelope(&call(node.address(), &planner, "job.submit", &wanted)).clone()
    };
    assert_eq!(planned("gardening")["domain_code"], "invalid_argument");
    for _ in 0..2 {
        assert_eq!(planned("version_control")["status"], "ok");
    }
    until(|| levels(&node, "worker") == ["restricted", "restricted"]);
}

const BY_QUALITY: &str = "
tool_access: {agents: [{name: worker, level: elevated, autonomy: full}]}
trust:
  strategy: per_category
  initial_levels: {file_system: restricted, git: restricted}
  promotion_criteria: {git: {restricted_to_standard: {tasks_completed: 2, quality_score_min: 7.0}}}
  jobs: {needs_check: false, an_hour: 100, a_day: 100, hours_at_level: 0}
";

#[test]
fn jobs_count_for_a_quality_milestone_only_after_assessment() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, BY_QUALITY)]);
    let done = |number: u8| {
        let job = job("worker", Some("git"), &format!("print({number})"));
        assert_eq!(node.run(&job).json()["status"], "completed");
        job["job_id"].clone()
    };
    let (first, second) = (done(1), done(2));
    let assess = |job: &Value, quality: f64| {
        let event = json!({ "type": "job_assessed", "job_id": job, "quality": quality });
        let body = json!({ "version": 1, "event_id": new_id(), "event": event });
        node.post("/v1/worker/trust/worker/events", &body)
    };
    assert_eq!(assess(&first, 8.0).json()["ignored"], Value::Null);
    let again = assess(&first, 10.0).json();
    assert!(again["ignored"].as_str().is_some_and(|why| why.contains("assessed already")), "{again}");
    let unknown = assess(&json!(new_id()), 10.0).json();
    assert!(unknown["ignored"].as_str().is_some_and(|why| why.contains("no job with that id")), "{unknown}");
    assert_eq!(levels(&node, "worker"), ["restricted", "restricted"]);
    // A person records it by the command line, in the node's database.
    let database = format!("sqlite:{}", world.path().join("state/node/node.db").display());
    let options = ["--config", "config.yaml", "--database", &database];
    let said = |quality: &str| {
        let word = ["trust", "assess", "worker", second.as_str().unwrap(), "--quality", quality];
        world.run(&[&word[..], &options].concat())
    };
    assert!(said("11").code != 0);
    said("6.5").succeeded();
    until(|| levels(&node, "worker") == ["restricted", "standard"]);
    assert_eq!(said("6.5").code, 2, "once");
}

#[test]
fn jobs_submitted_by_the_agent_itself_earn_no_trust() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, BY_CATEGORY)]);
    let planner = token(&node, json!({ "kind": "project_manager", "agent_id": "worker" }));
    for number in 0..6 {
        let job = command(&["python3", "-c", &format!("print({number})")]);
        let wanted = json!({
            "task_id": job["task_id"], "job_id": job["job_id"], "sandbox": job["sandbox"],
            "task_category": "version_control",
        });
        let answer = envelope(&call(node.address(), &planner, "job.submit", &wanted)).clone();
        assert_eq!(answer["status"], "ok", "{answer}");
        node.wait_for(job["job_id"].as_str().unwrap(), "completed");
    }
    assert_eq!(levels(&node, "worker"), ["restricted", "restricted"]);
    // The control.
    for number in 0..2 {
        let job = job("worker", Some("git"), &format!("print('{number}')"));
        assert_eq!(node.run(&job).json()["status"], "completed");
    }
    until(|| levels(&node, "worker") == ["restricted", "standard"]);
}
