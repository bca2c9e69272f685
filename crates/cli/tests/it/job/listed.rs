//! Jobs that are listed and shown.

use super::{FakeNode, ask, ask_as_on_a_terminal, over, told};
use belljar_testkit::node::{Node, new_id};
use belljar_testkit::world::World;
use serde_json::{Value, json};

fn ids(listed: &Value) -> Vec<String> {
    listed.as_array().unwrap().iter().map(|job| job["job_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn jobs_are_listed_newest_first_and_filtered_by_task_and_status() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    assert_eq!(ask(&world, node.address(), &["list"]).succeeded().stdout, "No jobs.\n");
    assert_eq!(ask(&world, node.address(), &["list", "--json"]).succeeded().json(), json!([]));
    let [good, bad, other] = [["true"], ["false"], ["true"]].map(|argv| over(&world, &node, &argv));
    let list = |arguments: &[&str]| {
        let arguments = [&["list", "--json"], arguments].concat();
        ids(&ask(&world, node.address(), &arguments).succeeded().json())
    };
    assert_eq!(list(&[]), [other.clone(), bad.clone(), good.clone()]);
    assert_eq!(list(&["--limit", "2"]), [other, bad.clone()]);
    assert_eq!(list(&["--status", "failed"]), [bad]);
    let task = node.job(&good)["task_id"].as_str().unwrap().to_owned();
    assert_eq!(list(&["--task-id", &task]), std::slice::from_ref(&good));
    assert_eq!(ask(&world, node.address(), &["list", "--status", "over"]).code, 125);
    let table = ask(&world, node.address(), &["list"]).succeeded().stdout;
    let rows: Vec<_> = table.lines().collect();
    assert_eq!(rows.len(), 4, "{table}");
    assert!(
        rows[0].starts_with("JOB ") && rows[3].starts_with(&format!("{good}  completed  1/1")),
        "{table}"
    );
}

#[test]
fn pages_are_followed_up_to_the_limit_and_not_beyond() {
    let world = World::new(crate::BELLJAR);
    let all: Vec<String> = (0..7).map(|_| new_id()).collect();
    let jobs = all.clone();
    // Two jobs per page, whatever page size is requested.
    let node = FakeNode::telling(&world, move |target| {
        let at = target.split("page_token=p%26").nth(1).map_or(0, |token| token.parse().unwrap());
        let here = jobs.iter().skip(at).take(2);
        let here: Vec<Value> = here
            .map(|id| {
                let mut job: Value = serde_json::from_slice(&told(id, &json!([]))).unwrap();
                job["of_tomorrow"] = json!(true);
                job
            })
            .collect();
        let mut page = json!({ "version": 1, "jobs": here });
        if at + 2 < jobs.len() {
            page["next_page_token"] = json!(format!("p&{}", at + 2));
        }
        (200, page.to_string().into_bytes())
    });
    let list = |arguments: &[&str]| {
        ask(&world, node.address, &[&["list", "--json"], arguments].concat()).succeeded().json()
    };
    let listed = list(&[]);
    assert_eq!(ids(&listed), all);
    // Unknown members are passed through.
    assert_eq!(listed[0]["of_tomorrow"], true);
    assert_eq!(node.asked.lock().unwrap().len(), 4);
    node.asked.lock().unwrap().clear();
    assert_eq!(ids(&list(&["--limit", "3", "--status", "failed"])), all[..3]);
    let asked = node.asked.lock().unwrap().clone();
    assert_eq!(
        asked.iter().map(|line| line.split(' ').nth(1).unwrap()).collect::<Vec<_>>(),
        ["/v1/worker/jobs?limit=3&status=failed", "/v1/worker/jobs?limit=1&status=failed&page_token=p%262"]
    );
}

#[test]
fn job_is_shown_with_its_result() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let id = over(&world, &node, &["sh", "-c", "echo hello; echo kept > /job/artifacts/note; exit 3"]);
    let shown = ask(&world, node.address(), &["show", &id]).succeeded().stdout;
    assert!(shown.starts_with("failed in ") && shown.contains("exit code 3 · 1 artifact"), "{shown}");
    for text in [
        "step_failed: ",
        "  attempt     1 of 1\n",
        "  stdout      6 bytes\n",
        "/job/artifacts/note, 5 bytes, ",
    ] {
        assert!(shown.contains(text), "{text} is not in {shown}");
    }
    assert_eq!(ask(&world, node.address(), &["show", &id, "--json"]).succeeded().json(), node.job(&id));
}

#[test]
fn job_text_is_escaped_on_a_terminal() {
    let world = World::new(crate::BELLJAR);
    let id = new_id();
    let artifacts = json!([{ "path": "/job/artifacts/a\u{1b}[2J\u{202e}b\n", "sha256": "0".repeat(64), "size_bytes": 1 }]);
    let job = told(&id, &artifacts);
    let node = FakeNode::telling(&world, move |_| (200, job.clone()));
    for verb in ["show", "artifacts"] {
        let ran = ask_as_on_a_terminal(&world, node.address, &[verb, &id]).succeeded();
        assert!(ran.stdout.contains("/job/artifacts/a\\u{1b}[2J\\u{202e}b"), "{:?}", ran.stdout);
        // Belljar's own output has colors.
        assert_eq!(ran.stdout.contains("\u{1b}[31mfailed"), verb == "show", "{:?}", ran.stdout);
        for acts in ["\u{1b}[2J", "\u{202e}", "b\n\n"] {
            assert!(!ran.stdout.contains(acts), "{:?}", ran.stdout);
        }
    }
}
