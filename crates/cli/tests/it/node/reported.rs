//! Status reports of a job through its status hatch, and the extra time that they give it.

use belljar_testkit::node::{Node, command, steps};
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// A shell function that sends a report: a document, and optionally another path.
const REPORT: &str = r#"report() {
    exec 3<>/dev/tcp/127.0.0.1/7070
    printf 'POST %s HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' \
        "${2:-/v1/jobs/$CYNODE_JOB_ID/status}" "${#1}" "$1" >&3
    cat <&3
    exec 3>&-
    echo
}
"#;

pub(super) const ASK: &str =
    r#"report '{"version":1,"status":"in_progress","extension_request_seconds":20}'"#;

fn shell(script: &str) -> Vec<String> {
    ["bash", "-c", &format!("{REPORT}{script}")].map(str::to_owned).to_vec()
}

/// Returns a job for the runner of one step, with a time limit of two seconds.
fn short_job(script: &str) -> Value {
    let mut job = steps(&json!([{ "type": "run_command", "args": { "argv": shell(script) } }]));
    job["sandbox"]["job_spec"]["constraints"]["max_runtime_seconds"] = json!(2);
    job
}

pub(super) fn short_command(script: &str) -> Value {
    let argv = shell(script);
    let mut job = command(&argv.iter().map(String::as_str).collect::<Vec<_>>());
    job["sandbox"]["timeout_seconds"] = json!(2);
    job
}

fn events_of_kind(node: &Node<'_>, job: &Value, kind: &str) -> Vec<Value> {
    let events = node.events(job["job_id"].as_str().unwrap());
    events.into_iter().filter(|event| event["event"] == kind).collect()
}

#[test]
fn job_that_requests_more_time_before_its_timeout_gets_it() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    for make in [short_job, short_command] {
        let job = make(&format!("{ASK}; sleep 4; echo done"));
        let told = node.run(&job).json();
        assert_eq!(told["status"], "completed", "{told}");
        let [asked] = &events_of_kind(&node, &job, "extension")[..] else { panic!("not one was asked for") };
        assert_eq!((&asked["granted"], &asked["asked_seconds"]), (&json!(true), &json!(20)));
        // The control.
        let told = node.run(&make("sleep 4; echo done")).json();
        assert_eq!(told["status"], "timeout", "{told}");
    }
}

#[test]
fn no_job_gets_more_time_than_the_nodes_maximum() {
    let world = World::new(crate::BELLJAR);
    let limited = "node: { timeouts: { default_seconds: 2, max_seconds: 15 } }\n";
    let never = "node: { timeouts: { default_seconds: 2, may_extend: false } }\n";
    for (config, reason) in [(limited, "at most 13 s more"), (never, "gives no job more time")] {
        let path = world.write("config.yaml", config);
        let node = Node::start(&world, &["--config", path.to_str().unwrap()]);
        for make in [short_job, short_command] {
            let job = make(&format!("{ASK}; sleep 4"));
            let told = node.run(&job).json();
            assert_eq!(told["status"], "timeout", "{told}");
            let [asked] = &events_of_kind(&node, &job, "extension")[..] else {
                panic!("not one was asked for")
            };
            assert_eq!(asked["granted"], false);
            assert!(asked["reason"].as_str().unwrap().contains(reason), "{asked}");
        }
    }
}

#[test]
fn repeated_time_request_with_the_same_number_is_granted_once() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let ask = r#"report '{"version":1,"status":"in_progress","seq":7,"extension_request_seconds":20}'"#;
    let job = short_command(&format!(
        "{ask}; {ask}; report '{{\"version\":1,\"status\":\"in_progress\",\"seq\":6}}'"
    ));
    let told = node.run(&job).json();
    assert_eq!(told["status"], "completed", "{told}");
    assert_eq!(told["stdout"].as_str().unwrap().matches("\"granted\":true").count(), 2, "{told}");
    assert_eq!(events_of_kind(&node, &job, "extension").len(), 1);
}

#[test]
fn progress_reports_reach_watchers() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let report =
        r#"report '{"version":1,"status":"in_progress","progress":{"message":"half","percent":50}}'"#;
    for make in [short_job, short_command] {
        let job = make(report);
        assert_eq!(node.run(&job).json()["status"], "completed");
        let [progress] = &events_of_kind(&node, &job, "progress")[..] else { panic!("not one was told of") };
        assert_eq!((&progress["message"], &progress["percent"]), (&json!("half"), &json!(50)));
    }
}

#[test]
fn report_hatch_accepts_only_reports_of_its_own_job() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let other = belljar_testkit::node::new_id();
    let script = format!(
        "report '{{\"version\":1,\"status\":\"in_progress\"}}' /v1/jobs/{other}/status
         report '{{}}' /v1/worker/jobs:run
         report '{{\"version\":1,\"status\":\"done\",\"more\":1}}'
         report '{{\"version\":1,\"status\":\"in_progress\"}}'"
    );
    let told = node.run(&short_command(&script)).json();
    let stdout = told["stdout"].as_str().unwrap();
    let statuses: Vec<_> =
        stdout.lines().filter(|line| line.starts_with("HTTP/1.1 ")).map(|line| &line[9..12]).collect();
    assert_eq!(statuses, ["404", "404", "400", "200"], "{stdout}");
    for place in ["$.status", "$.more"] {
        assert!(stdout.contains(place), "{place}: {stdout}");
    }
}

#[test]
fn step_that_reports_the_job_as_done_gains_nothing() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let forged = r#"report "{\"version\":1,\"status\":\"completed\",\"seq\":1000000,\"result\":{\"protocol_version\":\"1.0\",\"job_id\":\"$CYNODE_JOB_ID\",\"status\":\"success\",\"steps\":[],\"artifacts\":[],\"failure_code\":null,\"failure_message\":null}}""#;
    let told = node.run(&short_job(&format!("{forged}; exit 1"))).json();
    assert_eq!((&told["status"], &told["failure_code"]), (&json!("failed"), &json!("step_failed")), "{told}");
}

#[test]
fn runners_result_wins_over_a_result_forged_by_a_step() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let forged = r#"report "{\"version\":1,\"status\":\"failed\",\"seq\":18446744073709551615,\"result\":{\"protocol_version\":\"1.0\",\"job_id\":\"$CYNODE_JOB_ID\",\"status\":\"failure\",\"steps\":[],\"artifacts\":[],\"failure_code\":\"node_failure\",\"failure_message\":\"forged\"}}""#;
    let job = short_job(&format!("{forged}; chmod 555 /job; echo done"));
    let told = node.run(&job).json();
    assert_eq!((&told["status"], &told["failure_message"]), (&json!("completed"), &Value::Null), "{told}");
    let stdout = told["sba_result"]["steps"][0]["result"]["stdout"].as_str().unwrap();
    assert!(stdout.ends_with("done\n"), "{stdout}");
}

#[test]
fn many_silent_connections_do_not_block_the_runner() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let mut job = short_job(
        "for number in $(seq 200); do exec {held}<>/dev/tcp/127.0.0.1/7070; done 2>/dev/null; echo held",
    );
    job["sandbox"]["job_spec"]["constraints"]["max_runtime_seconds"] = json!(30);
    let told = node.run(&job).json();
    assert_eq!(told["status"], "completed", "{told}");
    // The end of the job is the end of the step's processes.
    assert_eq!(node.story(job["job_id"].as_str().unwrap()), ["accepted 0", "in_progress 1", "completed 1"]);
}
