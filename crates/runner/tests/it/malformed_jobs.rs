//! Malformed jobs are refused before anything runs, with a complete result that names every mistake.

use crate::scene::{JOB_ID, RunOutcome, Scene, TASK_ID, job, run_on_stdin, sh};
use serde_json::{Value, json};

const MARK: &str = "ran";

/// A job that leaves a mark when any of it runs.
fn sound_job() -> Value {
    job(vec![sh(&format!("touch {MARK}"))])
}

fn assert_refused(scene: &Scene, ran: &RunOutcome, what: &str) {
    assert_eq!((ran.exit_code, ran.outcome()), (Some(2), "schema_validation"), "{what}: {ran:#?}");
    assert_eq!(ran.result["status"], "failure", "{what}");
    assert_eq!(ran.result["steps"], json!([]), "{what}");
    assert_eq!(ran.result["artifacts"], json!([]), "{what}");
    assert!(!ran.result["problems"].as_array().unwrap().is_empty(), "{what}");
    assert!(!ran.result["failure_message"].as_str().unwrap().is_empty(), "{what}");
    assert!(!scene.inside(MARK).exists(), "{what}: a step ran");
    assert!(!scene.beside("artifacts").exists(), "{what}: something was prepared");
}

#[test]
fn valid_control_job_creates_its_marker_file() {
    let scene = Scene::new();
    assert_eq!(scene.run(&sound_job()).outcome(), "success");
    assert!(scene.inside(MARK).exists());
}

#[test]
fn a_job_with_any_one_member_wrong_is_refused_with_its_ids_echoed() {
    let wrong: Vec<(&str, Value)> = vec![
        ("/unknown", json!(1)),
        ("/protocol_version", json!("99.0")),
        ("/protocol_version", json!(1.0)),
        ("/constraints", json!([])),
        ("/constraints/max_runtime_seconds", json!(0)),
        ("/constraints/max_runtime_seconds", json!(-1)),
        ("/constraints/max_runtime_seconds", json!(1e300)),
        ("/constraints/max_output_bytes", json!("1")),
        ("/constraints/unknown", json!(true)),
        ("/constraints/ext_net_allowed", json!("yes")),
        ("/steps", json!({})),
        ("/steps/0", json!("echo")),
        ("/steps/0/unknown", json!(1)),
        ("/steps/0/type", json!("run_shell")),
        ("/steps/0/args/unknown", json!(1)),
        ("/steps/0/args/argv", json!([])),
        ("/steps/0/args/argv", json!([1])),
        ("/steps/0/args/command", json!("mixed")),
        ("/steps/0/args/cwd", json!("a\u{0}b")),
        ("/steps/0/args/timeout_seconds", json!(0)),
        ("/steps/0/args/env", json!({ "CYNODE_JOB_ID": "another" })),
        ("/artifacts", json!([""])),
        ("/context", json!({ "unknown": 1 })),
        ("/inference", json!({ "allowed_models": [] })),
    ];
    for (pointer, value) in wrong {
        let scene = Scene::new();
        let mut document = sound_job();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = document.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(elements) => elements[name.parse::<usize>().unwrap()] = value,
            other => other[name] = value,
        }
        let ran = scene.run(&document);
        assert_refused(&scene, &ran, pointer);
        assert_eq!((&ran.result["job_id"], &ran.result["task_id"]), (&json!(JOB_ID), &json!(TASK_ID)));
    }
}

#[test]
fn a_job_without_a_required_member_is_refused() {
    for pointer in ["protocol_version", "job_id", "task_id", "constraints", "steps"] {
        let scene = Scene::new();
        let mut document = sound_job();
        document.as_object_mut().unwrap().remove(pointer);
        let ran = scene.run(&document);
        assert_refused(&scene, &ran, pointer);
        assert!(ran.result["failure_message"].as_str().unwrap().contains(pointer), "{pointer}");
    }
}

#[test]
fn document_that_is_not_valid_json_is_refused() {
    let sound = sound_job().to_string();
    let with = |from: &str, to: &str| sound.replace(from, to).into_bytes();
    let number = "\"max_runtime_seconds\":60";
    let documents: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("white space", b" \n\t ".to_vec()),
        ("null", b"null".to_vec()),
        ("an array", b"[]".to_vec()),
        ("half of it", sound.as_bytes()[..sound.len() / 2].to_vec()),
        ("something behind it", [sound.as_bytes(), b"{}"].concat()),
        ("a comment", [b"/* job */", sound.as_bytes()].concat()),
        ("a byte order mark", [&b"\xef\xbb\xbf"[..], sound.as_bytes()].concat()),
        ("UTF-16", sound.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("bytes that are no UTF-8", [&sound.as_bytes()[..sound.len() - 1], b",\"\xff\":1}"].concat()),
        ("a lone surrogate", with("touch ran", "\\ud800")),
        ("NaN", with(number, "\"max_runtime_seconds\":NaN")),
        ("a number too large", with(number, "\"max_runtime_seconds\":1e400")),
        ("minus zero", with(number, "\"max_runtime_seconds\":-0")),
        ("a fraction", with(number, "\"max_runtime_seconds\":60.5")),
        ("a repeated member", with("{\"constraints\"", "{\"job_id\":\"x\",\"constraints\"")),
        ("a trailing comma", with("}]", "},]")),
        ("single quotes", with("\"", "'")),
        ("depth", [vec![b'['; 100_000], vec![b']'; 100_000]].concat()),
        (
            "depth in a member",
            with("\"steps\":", &format!("\"skills\":{}{},\"steps\":", "[".repeat(5000), "]".repeat(5000))),
        ),
    ];
    for (what, document) in documents {
        let scene = Scene::new();
        let ran = scene.run_document(&document);
        assert_refused(&scene, &ran, what);
        let scene = Scene::new();
        let output = run_on_stdin(&scene, &document);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (output.status.code(), &result["failure_code"]),
            (Some(2), &json!("schema_validation")),
            "{what}"
        );
        assert!(!scene.inside(MARK).exists(), "{what}");
    }
}

#[test]
fn a_document_of_a_hundred_megabytes_is_refused_without_being_read_to_its_end() {
    let scene = Scene::new();
    let file = std::fs::File::create(scene.beside("job.json")).unwrap();
    file.set_len(100 << 20).unwrap();
    let output = scene.command().output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let result: Value = serde_json::from_slice(&std::fs::read(scene.beside("result.json")).unwrap()).unwrap();
    assert_eq!(result["failure_code"], "schema_validation");
    assert!(result["failure_message"].as_str().unwrap().contains("at most"), "{result}");
}

#[test]
fn a_job_that_policy_refuses_lists_each_refused_step_and_runs_none() {
    let scene = Scene::new();
    let mut document = job(vec![
        sh(&format!("touch {MARK}")),
        json!({ "type": "read_file", "args": { "path": "../secret" } }),
        json!({ "id": "named", "type": "run_command", "args": { "argv": ["ls"], "cwd": "/etc/.." } }),
    ]);
    let ran = scene.run(&document);
    assert_eq!((ran.exit_code, ran.outcome()), (Some(1), "policy_violation"));
    let steps = ran.result["steps"].as_array().unwrap();
    let told: Vec<(&Value, &Value)> =
        steps.iter().map(|step| (&step["id"], &step["error"]["type"])).collect();
    let violation = json!("policy_violation");
    assert_eq!(told, [(&json!("step-2"), &violation), (&json!("named"), &violation)]);
    assert!(ran.result["failure_message"].as_str().unwrap().contains("path escapes workspace: ../secret"));
    assert!(!scene.inside(MARK).exists());
    document["steps"].as_array_mut().unwrap().truncate(1);
    document["constraints"]["allowed_commands"] = json!(["ls"]);
    assert_eq!(scene.run(&document).outcome(), "policy_violation");
    assert!(!scene.inside(MARK).exists());
    document["constraints"]["allowed_commands"] = json!(["/bin/sh"]);
    assert_eq!(scene.run(&document).outcome(), "success");
}
