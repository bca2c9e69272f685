//! Reports of a node about itself.

use belljar_testkit::node::{Node, new_id, script, steps};
use belljar_testkit::world::World;
use serde_json::{Value, json};

const TELEMETRY: &str = "/v1/worker/telemetry";

fn get(node: &Node<'_>, path: &str) -> Value {
    let answered = node.get(&format!("{TELEMETRY}/{path}"));
    assert_eq!(answered.status, 200, "{}", answered.json());
    let told = answered.json();
    assert_eq!(told["version"], 1);
    told
}

#[test]
fn node_reports_its_identity_and_machine_usage() {
    let world = World::new(crate::BELLJAR);
    let config = world.write("config.yaml", "node: { id: node-7 }\n");
    let node = Node::start(&world, &["--config", config.to_str().unwrap()]);
    let info = get(&node, "node:info");
    assert_eq!((&info["node_slug"], &info["platform"]["os"]), (&json!("node-7"), &json!("linux")));
    assert!(info["platform"]["kernel_version"].as_str().unwrap().starts_with(|c: char| c.is_ascii_digit()));
    let stats = get(&node, "node:stats");
    let free = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total: u64 = free.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_eq!(stats["memory"]["total_mb"], total / 1_024);
    assert!(stats["cpu"]["cores"].as_u64().unwrap() >= 1 && stats["cpu"]["load1"].is_f64());
    assert!(stats["disk"]["state_dir_free_mb"].as_u64() <= stats["disk"]["state_dir_total_mb"].as_u64());
}

#[test]
fn sandboxes_are_reported_by_task_and_job_while_they_run_and_afterwards() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let job = script("echo out; echo err >&2; exit 3");
    let told = node.run(&job).json();
    node.run(&steps(&json!([])));
    let running = node.submit(script("sleep 60"));
    let running = node.wait_for(&running, "in_progress");

    let (task, id) = (job["task_id"].as_str().unwrap(), job["job_id"].as_str().unwrap());
    for filter in [
        format!("task_id={task}"),
        format!("job_id={id}"),
        format!("task_id={task}&job_id={id}&kind=sandbox"),
    ] {
        let found = get(&node, &format!("containers?{filter}"));
        let [container] = &found["containers"].as_array().unwrap()[..] else { panic!("{found}") };
        assert_eq!((&container["container_id"], &container["job_id"]), (&told["run_id"], &job["job_id"]));
        assert_eq!((&container["status"], &container["exit_code"]), (&json!("exited"), &json!(3)));
        assert_eq!(container["labels"]["cynodeai.task_id"], job["task_id"]);
        let path = format!("containers/{}", container["container_id"].as_str().unwrap());
        assert_eq!(get(&node, &path)["container"], *container);
    }
    let found = get(&node, "containers?status=running");
    assert_eq!(found["containers"][0]["container_id"], running["run_id"]);
    assert_eq!(found["containers"].as_array().unwrap().len(), 1);
    assert_eq!(get(&node, &format!("containers?task_id={}", new_id()))["containers"], json!([]));
    assert_eq!(node.get(&format!("{TELEMETRY}/containers/{}", new_id())).status, 404);

    // The latest first, page by page.
    let first = get(&node, "containers?limit=2");
    let token = first["next_page_token"].as_str().unwrap();
    let second = get(&node, &format!("containers?limit=2&page_token={token}"));
    assert_eq!(first["containers"][0]["container_id"], running["run_id"]);
    assert_eq!(second["containers"][0]["container_id"], told["run_id"]);
    assert!(second["next_page_token"].is_null());

    let logs =
        get(&node, &format!("logs?source_kind=container&container_id={}", told["run_id"].as_str().unwrap()));
    let mut lines: Vec<_> = logs["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| (event["stream"].clone(), event["message"].clone()))
        .collect();
    lines.sort_by_key(|(stream, _)| stream.to_string());
    assert_eq!(lines, [(json!("stderr"), json!("err\n")), (json!("stdout"), json!("out\n"))]);
    let only =
        format!("logs?source_kind=container&stream=stderr&container_id={}", told["run_id"].as_str().unwrap());
    assert_eq!(get(&node, &only)["events"].as_array().unwrap().len(), 1);
}

#[test]
fn restarted_node_reports_earlier_logs_and_unknown_state_of_interrupted_runs() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &[]);
    let id = node.submit(script("sleep 60"));
    let run = node.wait_for(&id, "in_progress")["run_id"].as_str().unwrap().to_owned();
    assert_eq!(get(&node, &format!("containers/{run}"))["container"]["status"], "running");
    node.killed_and_started();
    assert_eq!(get(&node, &format!("containers/{run}"))["container"]["status"], "unknown");
    node.stopped_and_started();

    let messages = |service: &str| -> Vec<String> {
        let logs = get(&node, &format!("logs?source_kind=service&source_name={service}"));
        let events = logs["events"].as_array().unwrap();
        events.iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(messages("node_manager"), ["started", "started", "stopping", "stopped", "started"]);
    assert_eq!(messages("worker_api"), ["started", "started", "stopped", "started"]);

    // Pages, and times: from the first on, and before the last.
    let all = get(&node, "logs?source_kind=service&source_name=node_manager");
    assert_eq!(all["truncated"], json!({ "limited_by": "none", "max_bytes": 1_048_576 }));
    let first = get(&node, "logs?source_kind=service&source_name=node_manager&limit=2");
    assert_eq!(first["truncated"]["limited_by"], "count");
    let token = first["next_page_token"].as_str().unwrap();
    let rest = get(&node, &format!("logs?source_kind=service&source_name=node_manager&page_token={token}"));
    assert_eq!(rest["events"].as_array().unwrap().len(), 3);
    let at = all["events"][2]["occurred_at"].as_str().unwrap().replace(':', "%3A");
    let since = get(&node, &format!("logs?source_kind=service&source_name=node_manager&since={at}"));
    assert_eq!(since["events"].as_array().unwrap().len(), 3);
    let until = get(&node, &format!("logs?source_kind=service&source_name=node_manager&until={at}"));
    assert_eq!(until["events"].as_array().unwrap().len(), 2);
}

#[test]
fn invalid_query_is_answered_with_valid_values() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    for (path, why) in [
        ("logs", "source_kind"),
        ("logs?source_kind=service", "source_name"),
        ("logs?source_kind=container", "container_id"),
        ("logs?source_kind=service&source_name=x&limit=5001", "1 to 5000"),
        ("logs?source_kind=service&source_name=x&since=yesterday", "2026-01-02T03:04:05Z"),
        ("containers?kind=other", "`managed` or `sandbox`"),
        ("containers?limit=1001", "1 to 1000"),
        ("containers?more=1", "kind, status, task_id, job_id, page_token, limit"),
        ("containers?limit=1&limit=2", "once"),
    ] {
        let answered = node.get(&format!("{TELEMETRY}/{path}"));
        assert_eq!(answered.status, 400, "{path}");
        assert!(answered.json()["detail"].as_str().unwrap().contains(why), "{path}: {}", answered.json());
    }
    let asked = belljar_testkit::http::HttpRequest::new("GET", &format!("{TELEMETRY}/node:info"));
    assert_eq!(asked.send(node.address()).unwrap().status, 401);
}
