//! Levels that agents earn and lose by their jobs: which results count, and when a change takes effect.

use super::{as_agent, configure};
use belljar_testkit::node::{Node, command, steps};
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use serde_json::{Value, json};

const EARNED: &str = "
egress: {rules: [{host: elsewhere.example}]}
trust:
  strategy: milestone
  initial_level: sandboxed
  milestones:
    sandboxed_to_restricted: {tasks_completed: 2, quality_score_min: 0}
";

/// Every completed job counts at once.
const AT_ONCE: &str = "  jobs: {needs_check: false, an_hour: 100, a_day: 100, hours_at_level: 0}\n";

const LOST: &str = "
egress: {rules: [{host: elsewhere.example}]}
trust:
  strategy: milestone
  initial_level: restricted
  milestones:
    restricted_to_standard: {tasks_completed: 1000}
  re_verification: {enabled: true, interval_days: 90, decay_on_idle_days: 30, decay_on_error_rate: 0.15}
";

fn python(script: &str) -> Value {
    as_agent("worker", command(&["python3", "-c", script]))
}

/// Returns a job that may use the network as the policy permits.
fn with_web(script: &str) -> Value {
    let mut job = python(script);
    job["sandbox"]["network_policy"] = json!("restricted");
    job
}

/// Returns true if a job may request network access. The job is refused in either case, because a job that ran would count,
/// too.
fn may_reach_out(node: &Node<'_>) -> bool {
    let mut job = with_web("pass");
    job["callback_url"] = json!("http://absent.example/");
    let answered = node.run(&job);
    assert_eq!(answered.status, 403, "{:#}", answered.json());
    let told = answered.json()["detail"].as_str().unwrap().to_owned();
    match told.split(':').next() {
        Some("$.callback_url") => true,
        Some("$.sandbox.network_policy") => false,
        _ => panic!("{told}"),
    }
}

#[test]
fn each_job_counts_once_for_its_agent_and_earned_trust_survives_a_killed_node() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &["--config", &configure(&world, &format!("{EARNED}{AT_ONCE}"))]);
    assert!(!may_reach_out(&node), "the agent starts without web access");
    let first = python("pass");
    for _ in 0..3 {
        assert_eq!(node.run(&first).json()["status"], "completed");
        node.killed_and_started();
    }
    assert!(!may_reach_out(&node), "a repeated job counts once");
    // A canceled job and a failure of the node don't count either.
    let stopped = node.submit(python("import time; time.sleep(600)"));
    node.wait_for(&stopped, "in_progress");
    node.post(&format!("/v1/worker/jobs/{stopped}:cancel"), &json!({}));
    node.wait_for(&stopped, "canceled");
    assert!(!may_reach_out(&node));
    assert_eq!(node.run(&python("print(2)")).json()["status"], "completed");
    until(|| may_reach_out(&node));
    // The control: another agent earns nothing by that.
    let other = as_agent("other", with_web("pass"));
    assert_eq!(node.run(&other).status, 403);
    node.killed_and_started();
    assert!(may_reach_out(&node), "earned trust survives");
    // A person's record, in the database of the node.
    let database = format!("sqlite:{}", world.path().join("state/node/node.db").display());
    let incident = json!({ "type": "security_incident" }).to_string();
    let told = ["trust", "record", "worker", &incident, "--config", "config.yaml", "--database", &database];
    assert_eq!(world.run(&told).succeeded().stdout, "worker  sandboxed\n");
    until(|| !may_reach_out(&node));
}

#[test]
fn twenty_five_trivial_jobs_in_a_row_earn_nothing_and_report_why() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, EARNED)]);
    for _ in 0..25 {
        let job = as_agent("worker", command(&["git", "version"]));
        assert_eq!(node.run(&job).json()["status"], "completed");
    }
    assert!(!may_reach_out(&node));
    let told = node.get("/v1/worker/trust/worker").json();
    assert_eq!(told["state"]["global_level"], "sandboxed", "{told:#}");
    let ignored = told["ignored"].as_array().unwrap();
    assert_eq!(ignored.len(), 25, "{told:#}");
    let why = "no acceptance criterion of the job was checked by a command";
    assert!(ignored.iter().all(|event| event["why"] == why), "{told:#}");
}

#[test]
fn jobs_counted_per_hour_and_day_are_limited_as_configured() {
    let earns = |jobs: &str| {
        let world = World::new(crate::BELLJAR);
        let jobs = format!("  jobs: {{needs_check: false, hours_at_level: 0, {jobs}}}\n");
        let node = Node::start(&world, &["--config", &configure(&world, &format!("{EARNED}{jobs}"))]);
        for number in 0..2 {
            let job = python(&format!("print({number})"));
            assert_eq!(node.run(&job).json()["status"], "completed");
        }
        // Wait until both count, or the second one is known to be ignored.
        let mut told = Value::Null;
        until(|| {
            told = node.get("/v1/worker/trust/worker").json();
            told["state"]["global_level"] == "restricted" || told["ignored"][0].is_object()
        });
        let is_earned = told["state"]["global_level"] == "restricted";
        until(|| may_reach_out(&node) == is_earned);
        is_earned
    };
    assert!(!earns("an_hour: 1, a_day: 100"));
    assert!(!earns("an_hour: 100, a_day: 1"));
    assert!(earns("an_hour: 2, a_day: 2"));
}

#[test]
fn jobs_with_the_same_content_count_once() {
    let world = World::new(crate::BELLJAR);
    let rules = format!("{EARNED}{AT_ONCE}");
    let node = Node::start(&world, &["--config", &configure(&world, &rules)]);
    for _ in 0..25 {
        let job = as_agent("worker", command(&["git", "version"]));
        assert_eq!(node.run(&job).json()["status"], "completed");
    }
    assert!(!may_reach_out(&node));
    // The control: a different job.
    assert_eq!(node.run(&python("pass")).json()["status"], "completed");
    until(|| may_reach_out(&node));
}

#[test]
fn lost_permission_ends_running_jobs_that_use_it_and_no_others() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, LOST), "--max-concurrency", "8"]);
    let sleep = "import time; time.sleep(600)";
    let accepted = with_web(sleep);
    let (lost, kept) = (node.submit(accepted.clone()), node.submit(python(sleep)));
    let step = json!({ "type": "run_command", "args": { "argv": ["python3", "-c", sleep] } });
    let mut of_runner = as_agent("worker", steps(&json!([step])));
    of_runner["sandbox"]["job_spec"]["constraints"]["ext_net_allowed"] = json!(true);
    let of_runner = node.submit(of_runner);
    for id in [&lost, &kept, &of_runner] {
        node.wait_for(id, "in_progress");
    }
    for _ in 0..2 {
        assert_eq!(node.run(&python("raise SystemExit(1)")).json()["status"], "failed");
    }
    for id in [&lost, &of_runner] {
        let over = node.wait_for(id, "failed");
        assert_eq!(over["failure_code"], "policy_violation", "{over:#}");
        assert!(over["failure_message"].as_str().unwrap().contains("may do less by now"), "{over:#}");
    }
    assert_eq!(node.run(&with_web("pass")).status, 403);
    // A repeated submission of a job that was accepted before returns that job.
    let again = node.run(&accepted);
    assert_eq!((again.status, &again.json()["failure_code"]), (200, &json!("policy_violation")), "{again:?}");
    // The control: a job that uses none of the lost permissions.
    assert_eq!(node.job(&kept)["status"], "in_progress");
    node.post(&format!("/v1/worker/jobs/{kept}:cancel"), &json!({}));
    node.wait_for(&kept, "canceled");
}
