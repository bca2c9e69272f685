//! A bug in a small project is found and fixed, from start to end, and again after the runner was killed midway.

use super::house::{AgentFixture, call, done, finish, job};
use belljar_testkit::models::{Answer, Script};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const PROGRAM: &str = "def mean(values):\n    return sum(values) / (len(values) - 1)\n";
const TESTS: &str = "import unittest\nfrom mean import mean\n\nclass Mean(unittest.TestCase):\n    def test_mean(self):\n        self.assertEqual(mean([1, 2, 3]), 2)\n\nif __name__ == '__main__':\n    unittest.main()\n";
const DIFF: &str = "--- a/mean.py\n+++ b/mean.py\n@@ -1,2 +1,2 @@\n def mean(values):\n-    return sum(values) / (len(values) - 1)\n+    return sum(values) / len(values)\n";

fn run_tests() -> Value {
    json!({ "argv": ["python3", "-m", "unittest", "-q"] })
}

fn task() -> Value {
    let mut job = job(json!({
        "task_context": "The mean of a list comes out wrong.",
        "requirements": ["mean() returns the arithmetic mean"],
        "acceptance_criteria": [
            { "text": "the tests pass", "check": { "argv": ["python3", "-m", "unittest", "-q"] } },
            "the tests were not changed",
        ],
    }));
    job["artifacts"] = json!(["mean.py"]);
    job
}

/// A model's typical course of work; its first command fails.
fn way() -> Vec<Answer> {
    let report = json!({ "results": [
        { "criterion": 2, "met": true, "evidence": "test_mean.py has the line assertEqual(mean([1, 2, 3]), 2), as before" },
    ] });
    vec![
        call("todo_add", json!({ "titles": ["see the tests fail", "mend mean.py"], "part_of": 1 })),
        call("run_command", json!({ "argv": ["pytest-of-another-world"] })),
        call("run_command", run_tests()),
        done(4),
        call("read_file", json!({ "path": "mean.py" })),
        call("apply_unified_diff", json!({ "diff": DIFF })),
        call("run_command", run_tests()),
        done(5),
        done(1),
        finish(),
        call("read_file", json!({ "path": "test_mean.py" })),
        call("report_criteria", report),
    ]
}

fn furnish(house: &AgentFixture) {
    house.scene.write("mean.py", PROGRAM);
    house.scene.write("test_mean.py", TESTS);
}

#[test]
fn agent_repairs_a_program_and_verifies_the_repair() {
    let house = AgentFixture::with(way());
    furnish(&house);
    let ran = house.run(&task());
    assert_eq!((ran.outcome(), ran.exit_code), ("success", Some(0)), "{}", ran.result);
    let agent = &ran.result["agent"];
    assert_eq!(agent["answer"], "all is done");
    assert_eq!((&agent["turns"], &agent["tool_calls"]), (&json!(12), &json!(12)));
    assert_eq!(
        agent["failed_tool_calls"], 2,
        "the program that isn't there, and the tests before the repair"
    );
    let statuses: Vec<&str> =
        agent["todo"].as_array().unwrap().iter().map(|item| item["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["done"; 5]);
    let verification = agent["verification"].as_array().unwrap();
    assert_eq!((&verification[0]["met"], &verification[0]["by"]), (&json!(true), &json!("command")));
    assert!(verification[0]["evidence"].as_str().unwrap().contains("OK"), "{verification:?}");
    assert_eq!((&verification[1]["met"], &verification[1]["by"]), (&json!(true), &json!("model")));
    assert_eq!(ran.result["artifacts"][0]["path"], "/workspace/mean.py");
    let mended = std::fs::read_to_string(house.scene.inside("mean.py")).unwrap();
    assert!(mended.contains("/ len(values)\n"), "{mended}");
    // A failure is reported with its output.
    let asked = house.asked();
    let last = &asked[3].json()["messages"];
    assert!(last.to_string().contains("AssertionError"), "{last}");
    let events: Vec<Value> = ran.events();
    let finished = events.iter().filter(|event| event["event"] == "tool_finished").count();
    assert_eq!(finished, 12);
}

#[test]
fn killed_agent_resumes_from_its_todo_list() {
    let (left, asked) = (Arc::new(Mutex::new(way())), Arc::new(Mutex::new(0)));
    let (theirs, count) = (Arc::clone(&left), Arc::clone(&asked));
    let house = AgentFixture::of(Script::from_fn(move |request| {
        if !request.operation().generates() {
            return None;
        }
        let mut count = count.lock().unwrap();
        *count += 1;
        // The first run waits for its sixth answer until it is killed.
        if *count == 6 {
            return Some(Answer::text("never").after(std::time::Duration::from_secs(600)));
        }
        Some(theirs.lock().unwrap().remove(0))
    }));
    furnish(&house);
    let mut first = house.command(&task()).spawn().unwrap();
    crate::scene::wait_until("the model is asked for the sixth time", || *asked.lock().unwrap() == 6);
    first.kill().unwrap();
    first.wait().unwrap();
    let kept: Value =
        serde_json::from_slice(&std::fs::read(house.scene.beside("todo.json")).unwrap()).unwrap();
    assert_eq!(kept["items"].as_array().unwrap().len(), 5);
    let ran = house.run(&task());
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    let agent = &ran.result["agent"];
    assert_eq!((&agent["resumed"], &agent["turns"]), (&json!(true), &json!(7)));
    let again = house.asked()[6].json()["messages"].to_string();
    assert!(again.contains("was interrupted") && again.contains("- [x] 4. see the tests fail"), "{again}");
}

#[test]
fn killed_agent_does_not_repeat_completed_steps() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let house = AgentFixture::of(Script::from_fn(move |request| {
        if !request.operation().generates() {
            return None;
        }
        let mut count = count.lock().unwrap();
        *count += 1;
        Some(match *count {
            1 => Answer::text("never").after(std::time::Duration::from_secs(600)),
            2 => done(2),
            3 => finish(),
            _ => super::house::report(),
        })
    }));
    let mut job = super::house::small_job();
    job["steps"] = json!([crate::scene::sh("echo once >> ../tally")]);
    let mut first = house.command(&job).spawn().unwrap();
    crate::scene::wait_until("the model is asked", || *asked.lock().unwrap() == 1);
    first.kill().unwrap();
    first.wait().unwrap();
    let ran = house.run(&job);
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    assert_eq!(std::fs::read_to_string(house.scene.beside("tally")).unwrap(), "once\n");
    assert_eq!(ran.result["resumed"], json!({ "steps_taken_over": 1, "step_run_again": null }));
    assert_eq!(ran.result["agent"]["resumed"], true);
}
