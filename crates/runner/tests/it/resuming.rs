//! A run that is begun again in the same place after it was killed.

use crate::scene::{Scene, job, sh, wait_until};
use serde_json::{Value, json};

/// Returns a step that records its run in a file outside of the workspace's own.
fn tally(word: &str) -> Value {
    sh(&format!("echo {word} >> ../tally; echo said {word}"))
}

/// Runs until the file exists, and kills the runner then.
fn killed_when_there_is(scene: &Scene, document: &Value, mark: &str) {
    let mut first = scene.start(document);
    wait_until("the mark is there", || scene.beside(mark).exists());
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!scene.beside("result.json").exists());
}

fn three_steps() -> Value {
    let waits = "echo second >> ../tally; if [ -e ../mark ]; then exit 0; fi; touch ../mark; sleep 600";
    job(vec![tally("first"), sh(waits), tally("third")])
}

fn tally_of(scene: &Scene) -> String {
    std::fs::read_to_string(scene.beside("tally")).unwrap()
}

#[test]
fn resumed_job_skips_completed_steps_and_repeats_the_interrupted_one() {
    let scene = Scene::new();
    killed_when_there_is(&scene, &three_steps(), "mark");
    let ran = scene.run(&three_steps());
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    assert_eq!(tally_of(&scene), "first\nsecond\nsecond\nthird\n");
    assert_eq!(ran.result["resumed"], json!({ "steps_taken_over": 1, "step_run_again": "step-2" }));
    assert_eq!(ran.result["steps"].as_array().unwrap().len(), 3);
    assert_eq!(ran.step(0)["result"]["stdout"], "said first\n");
    assert!(ran.log.contains("the interrupted step step-2 is repeated"), "{}", ran.log);
    // A job with a result is not resumed but run anew.
    assert!(!scene.beside("steps.jsonl").exists());
    let anew = scene.run(&three_steps());
    assert_eq!(anew.result["resumed"], Value::Null);
    assert!(tally_of(&scene).ends_with("first\nsecond\nthird\n"));
}

#[test]
fn different_job_does_not_resume_an_earlier_run() {
    let scene = Scene::new();
    killed_when_there_is(&scene, &three_steps(), "mark");
    let mut other = three_steps();
    other["constraints"]["max_runtime_seconds"] = json!(59);
    let ran = scene.run(&other);
    assert_eq!((ran.outcome(), &ran.result["resumed"]), ("success", &Value::Null), "{}", ran.result);
    assert_eq!(tally_of(&scene), "first\nsecond\nfirst\nsecond\nthird\n");
}

#[test]
fn step_that_forges_the_journal_prevents_resuming() {
    let scene = Scene::new();
    let forge = r#"printf '{"began":1}\n' >> ../steps.jsonl"#;
    let waits = "if [ -e ../mark ]; then exit 0; fi; touch ../mark; sleep 600";
    let forging = job(vec![sh(forge), sh(waits)]);
    killed_when_there_is(&scene, &forging, "mark");
    let ran = scene.run(&forging);
    assert_eq!((ran.outcome(), &ran.result["resumed"]), ("success", &Value::Null), "{}", ran.result);
}
