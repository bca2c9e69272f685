//! Requests to models: all of the context, in every request, in one order, and within their window.

use super::house::{AgentFixture, MODEL, call, done, finish, job, report, small_job, text_of};
use crate::scene::Scene;
use serde_json::{Value, json};

const HEADERS: [&str; 10] = [
    "# Persona",
    "# Baseline",
    "# Project",
    "# Task",
    "# Requirements",
    "# Acceptance criteria",
    "# Preferences",
    "# Additional context",
    "# Skills",
    "# Runtime",
];

fn places(text: &str) -> Vec<usize> {
    HEADERS
        .iter()
        .map(|header| text.find(&format!("{header}\n")).unwrap_or_else(|| panic!("{header}: {text}")))
        .collect()
}

#[test]
fn every_model_request_has_all_prompt_parts_in_fixed_order() {
    let house = AgentFixture::with(vec![done(1), finish(), report()]);
    let mut job = job(json!({
        "baseline_context": "the base", "project_context": "the project", "task_context": "the task",
        "requirements": ["the requirement"], "acceptance_criteria": ["the criterion"],
        "preferences": { "tone": "the preference" }, "additional_context": "the addition",
        "skills": [{ "name": "lay", "content": "the skill" }],
    }));
    job["persona"] = json!({ "title": "Mason", "description": "You are the mason." });
    let ran = house.run(&job);
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    let asked = house.asked();
    assert_eq!(asked.len(), 3);
    for (turn, request) in (1..).zip(&asked) {
        let text = text_of(request);
        let places = places(&text);
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{text}");
        for said in [
            "Mason\n\nYou are the mason.",
            &format!("Task ID: {}", job["task_id"].as_str().unwrap()),
            &format!("Job ID: {}", job["job_id"].as_str().unwrap()),
            "the base",
            "the project",
            "the task",
            "the requirement",
            "the criterion",
            "the preference",
            "the addition",
            "the skill",
            &format!("Turn {turn} of 100"),
            "Time left: ",
            "## Todo list",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        assert_eq!(request.json()["model"], MODEL);
    }
}

/// Writes the files with the context for a job without one.
fn furnish(scene: &Scene) {
    let folder = scene.beside("context");
    std::fs::create_dir_all(folder.join("skills")).unwrap();
    for (name, text) in [
        ("baseline.md", "base of a file"),
        ("project.md", "project of a file"),
        ("task.md", "task of a file"),
        ("requirements.md", "- first\n- second\n"),
        ("acceptance_criteria.md", "- holds\n"),
        ("preferences.json", r#"{"tone": "of a file"}"#),
        ("additional.md", "addition of a file"),
        ("skills/lay.md", "skill of a file"),
        ("long.md", "text of a named file"),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
fn missing_context_is_read_from_files_beside_the_job() {
    let house = AgentFixture::with(vec![call("finish", json!({ "summary": "no", "gave_up": true }))]);
    furnish(&house.scene);
    let ran = house.run(&job(json!({ "task_context": "/job/context/long.md" })));
    assert_eq!(ran.outcome(), "agent_gave_up", "{}", ran.result);
    let text = text_of(&house.asked()[0]);
    for said in [
        "base of a file",
        "project of a file",
        "text of a named file",
        "1. first\n2. second",
        "1. holds",
        "of a file",
        "addition of a file",
        "## lay\n\nskill of a file",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("task of a file"), "the job's own comes first");
    let lost = house.run(&job(json!({ "task_context": "/job/context/lost.md" })));
    assert_eq!(lost.outcome(), "schema_validation");
    assert!(
        lost.result["failure_message"].as_str().unwrap().contains("/job/context/lost.md"),
        "{}",
        lost.result
    );
}

#[test]
fn default_baseline_is_used_when_the_job_has_none() {
    let house = AgentFixture::with(vec![done(1), finish(), report()]);
    assert_eq!(house.run(&small_job()).outcome(), "success");
    let text = text_of(&house.asked()[0]);
    assert!(text.starts_with("# Baseline\n\nYou are the agent of one job"), "{text}");
}

#[test]
fn conversation_is_shortened_to_the_window_but_the_context_is_never_cut() {
    let reads: Vec<_> = (0..20).map(|_| call("read_file", json!({ "path": "long.txt" }))).collect();
    let house = AgentFixture::with([reads, vec![done(1), finish(), report()]].concat());
    house.scene.write("long.txt", "0123456789abcde\n".repeat(400));
    let mut job = job(json!({ "requirements": ["read the file ".repeat(100)] }));
    job["inference"]["context_tokens"] = json!(8_000);
    let ran = house.run(&job);
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    for request in house.asked() {
        let text = text_of(&request);
        assert!(text.len() < 8_000 * 4, "{}", text.len());
        assert!(text.contains(&"read the file ".repeat(99)), "{text}");
        // Each outcome answers a call.
        let messages: Value = request.json()["messages"].clone();
        let mut open: Vec<String> = Vec::new();
        for message in messages.as_array().unwrap() {
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                open.push(call["id"].as_str().unwrap().to_owned());
            }
            if message["role"] == "tool" {
                let id = message["tool_call_id"].as_str().unwrap();
                assert!(open.iter().any(|known| known == id), "{message}");
            }
        }
    }
    let mut tiny = small_job();
    tiny["inference"]["context_tokens"] = json!(500);
    let ran = house.run(&tiny);
    assert_eq!(ran.outcome(), "constraint_violation");
    assert!(ran.result["failure_message"].as_str().unwrap().contains("context_tokens"), "{}", ran.result);
}
