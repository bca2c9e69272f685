//! Every way in which an agent can end has a result, bills its calls, and leaves no processes or files.

use super::small::{CALL, SmallAgentWorld, records};
use crate::BELLJAR;
use belljar_testkit::wait;
use belljar_testkit::world::{ProgramOutput, World};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::process::Stdio;

/// Checks that one call is billed, whatever happened after it.
fn billed_once(small: &SmallAgentWorld<'_>, result: &Value) {
    assert_eq!(result["usage"].as_array().map(Vec::len), Some(1), "{result:#}");
    assert_eq!(small.server.request_count(), 1);
    let ended = records(small.world, "run_ended").pop().unwrap();
    assert_eq!(ended["event"]["calls"], 1, "{ended:#}");
    assert_eq!(records(small.world, "inference_call").len(), 1);
    small.world.run(&["audit", "verify"]).succeeded();
    assert_eq!(std::fs::read_dir(small.world.path().join("state/runs")).unwrap().count(), 0);
}

fn failure(result: &Value) -> (&str, &str) {
    (result["failure"]["error"].as_str().unwrap(), result["failure"]["code"].as_str().unwrap())
}

#[test]
fn agent_that_exceeds_its_time_limit_is_killed_and_billed() {
    World::as_everyone(BELLJAR, |world| {
        let small = SmallAgentWorld::python(world, &format!("{CALL}import time\ntime.sleep(600)\n"));
        let ran = small.run(&["--json", "--timeout", "3s"]);
        assert_eq!(ran.code, 124, "{ran:?}");
        let result = ran.json();
        assert_eq!(failure(&result), ("timeout", "timeout"));
        assert_eq!((&result["exit_code"], &result["stdout"]), (&json!(-1), &json!("hello\n")));
        billed_once(&small, &result);
    });
}

#[test]
fn agent_that_exceeds_its_memory_limit_is_killed_and_billed() {
    World::as_everyone(BELLJAR, |world| {
        let small =
            SmallAgentWorld::python(world, &format!("{CALL}held = bytearray(1 << 30)\nprint('held')\n"));
        let ran = small.run(&["--json", "--memory", "128m"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        let result = ran.json();
        assert_eq!(failure(&result), ("aborted", "oom_killed"), "{result:#}");
        assert_eq!((&result["exit_code"], &result["stdout"]), (&json!(137), &json!("hello\n")));
        billed_once(&small, &result);
    });
}

#[test]
fn agent_that_exceeds_its_disk_limit_is_killed_and_billed() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::python(
        &world,
        &format!("{CALL}import time\nopen('big', 'wb').write(bytes(64 << 20))\ntime.sleep(600)\n"),
    );
    let ran = small.run(&["--json", "--disk", "8m"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let result = ran.json();
    assert_eq!(failure(&result), ("aborted", "disk_full"), "{result:#}");
    billed_once(&small, &result);
}

#[test]
fn interrupted_agent_is_killed_and_billed() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::python(&world, &format!("{CALL}import time\ntime.sleep(600)\n"));
    let child = small.command(&["--json"]).stdout(Stdio::piped()).spawn().unwrap();
    wait::until(|| small.server.exchanges().iter().any(|exchange| exchange.request.operation().generates()));
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let ran = ProgramOutput::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 1, "{ran:?}");
    let result = ran.json();
    assert_eq!(failure(&result), ("aborted", "canceled"), "{result:#}");
    assert_eq!(result["exit_code"], -1);
    billed_once(&small, &result);
}

#[test]
fn failed_agent_is_billed_and_its_exit_code_and_last_output_are_reported() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::python(
        &world,
        &format!("{CALL}import sys\nprint('why', file=sys.stderr)\nsys.exit(42)\n"),
    );
    let ran = small.run(&["--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let result = ran.json();
    assert_eq!(failure(&result), ("internal", "agent_failed"));
    assert_eq!((&result["exit_code"], &result["stderr"]), (&json!(42), &json!("why\n")));
    billed_once(&small, &result);
    let shown = small.run(&[]);
    assert!(shown.stderr.contains("agent_failed") && shown.stderr.contains("| why"), "{shown:?}");
}

#[test]
fn agent_output_flood_is_read_to_the_end_and_kept_up_to_its_limit() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::shell(&world, "head -c 30000000 /dev/zero | tr '\\0' x; echo done >&2");
    let ran = small.run(&["--json"]);
    assert_eq!(ran.code, 1, "{:.300}", ran.stdout);
    let result = ran.json();
    assert_eq!(failure(&result), ("internal", "output_truncated"));
    assert_eq!((&result["exit_code"], &result["output_truncated"]), (&json!(0), &json!(true)));
    assert_eq!(result["stdout"].as_str().unwrap().len(), 2 << 20);
    let said = result["stderr"].as_str().unwrap();
    assert!(
        said.ends_with("belljar: more than 2097152 bytes were printed; the rest was dropped\n"),
        "{said}"
    );
    let within = small.json(&["--max-output", "64m"]);
    assert_eq!((&within["ok"], &within["output_truncated"]), (&json!(true), &json!(false)));
    assert_eq!(within["stdout"].as_str().unwrap().len(), 30_000_000);
}

#[test]
fn result_is_taken_from_the_output_envelope() {
    let world = World::new(BELLJAR);
    let cases = [
        (r#"{"payloads":[{"text":"hi"}],"meta":{"durationMs":1,"error":null}}"#, "hi", None),
        (r#"{"payloads":[{"text":"a"},{"text":"b"}],"meta":{}}"#, "a\nb", None),
        (
            r#"{"payloads":[],"meta":{"error":{"code":"config_error","message":"m"}}}"#,
            "",
            Some(("invalid_request", "config_error")),
        ),
        (
            r#"{"payloads":[],"meta":{"error":{"kind":"llm_error","message":"m"}}}"#,
            "",
            Some(("provider_unavailable", "llm_error")),
        ),
        (r#"{"payloads":1,"meta":{}}"#, "", Some(("internal", "parse_error"))),
        ("warning\n{\"payloads\":[],\"meta\":{}}", "warning\n{\"payloads\":[],\"meta\":{}}", None),
        ("plain text", "plain text", None),
    ];
    for (printed, content, expected) in cases {
        let small = SmallAgentWorld::shell(&world, &format!("printf %s '{printed}'"));
        let ran = small.run(&["--json"]);
        let result = ran.json();
        assert_eq!(ran.code, i32::from(expected.is_some()), "{printed}: {result:#}");
        assert_eq!(result["content"], content, "{printed}");
        assert_eq!(result["failure"].as_object().map(|_| failure(&result)), expected, "{printed}");
    }
}

#[test]
fn output_that_is_not_a_single_envelope_is_a_parse_error() {
    let world = World::new(BELLJAR);
    let failed = r#"{"payloads":[],"meta":{"error":{"code":"llm_error","message":"502"}}}"#;
    let good = r#"{"payloads":[{"text":"hi"}],"meta":{}}"#;
    let cases = [
        (format!("warning: old\n{failed}"), Some("parse_error")),
        (format!("{good}\n{good}"), Some("parse_error")),
        (String::new(), Some("parse_error")),
        (failed.to_owned(), Some("llm_error")),
        // Control: a single envelope.
        (good.to_owned(), None),
    ];
    for (printed, expected) in cases {
        let script = format!("printf %s '{printed}'").replace('{', "{{").replace('}', "}}");
        let row = json!({
            "name": "small", "description": "small", "reads_messages": true, "output": "envelope",
            "argv": ["sh", "-c", script],
        });
        let small = SmallAgentWorld::row(&world, &row);
        let ran = small.run(&["--json"]);
        let result = ran.json();
        assert_eq!(ran.code, i32::from(expected.is_some()), "{printed}: {result:#}");
        assert_eq!(result["ok"], expected.is_none(), "{printed}: {result:#}");
        assert_eq!(result["failure"]["code"].as_str(), expected, "{printed}: {result:#}");
    }
    // Output that may turn out not to be text isn't streamed.
    let row = json!({
        "name": "small", "description": "small", "reads_messages": true, "output": "envelope",
        "argv": ["sh", "-c", "echo noise; sleep 1; echo more"],
    });
    let ran = SmallAgentWorld::row(&world, &row).run(&["--events", "--stream"]);
    assert_eq!(kinds(&ran), ["error", "done"], "{ran:?}");
}

/// Returns the types of the events that a run has printed.
fn kinds(ran: &ProgramOutput) -> Vec<String> {
    let event = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    ran.stdout.lines().map(|line| event(line)["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn run_that_never_starts_is_reported_as_events() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::shell(&world, "echo hi");
    let events = |arguments: &[&str]| {
        let common = ["--workspace-copy", "project", "--config", "config.yaml", "--events"];
        let ran = world.run(&[&["agent"], arguments, &common, &["--", "say hello"]].concat());
        assert_eq!(kinds(&ran), ["error", "done"], "{ran:?}");
        let error: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        (ran.code, error["error"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
    };
    let (code, error, message) = events(&["smal", "--model", "small"]);
    assert_eq!((code, error.as_str()), (2, "not_found"));
    assert!(message.contains("Did you mean small?"), "{message}");
    let (code, error, message) = events(&["small"]);
    assert_eq!((code, error.as_str()), (125, "invalid_request"));
    assert!(message.contains("--model"), "{message}");
    world.write("grant.json", "{}");
    let (code, error, _) = events(&["small", "--model", "small", "--grant", "grant.json"]);
    assert_eq!((code, error.as_str()), (2, "invalid_request"));
    let absent =
        json!({ "name": "small", "description": "small", "argv": ["belljar-no-such-program", "{prompt}"] });
    drop(small);
    let _small = SmallAgentWorld::row(&world, &absent);
    let (code, error, message) = events(&["small", "--model", "small"]);
    assert_eq!((code, error.as_str()), (125, "internal"));
    assert!(message.contains("belljar-no-such-program"), "{message}");
}

#[test]
fn missing_or_unstartable_program_is_not_an_agent_failure() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::agent(&world, &["belljar-no-such-program"]);
    let ran = small.run(&["--json"]);
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.stderr.contains("no program belljar-no-such-program"), "{ran:?}");
    let long = "x".repeat(200_000);
    world.write("messages.json", json!([{ "role": "user", "content": long }]).to_string());
    let row = json!({ "name": "small", "description": "small", "argv": ["true", "{prompt}"] });
    let small = SmallAgentWorld::row(&world, &row);
    let ran = small.run(&["--json", "--messages", "messages.json"]);
    assert_eq!(ran.code, 125, "{ran:?}");
    assert_eq!(failure(&ran.json()), ("internal", "container_failed"));
    let ended = records(&world, "run_ended").pop().unwrap();
    assert_eq!(ended["event"]["error_code"], "container_failed");
}

#[test]
fn events_arrive_in_order_and_one_per_line() {
    let world = World::new(BELLJAR);
    let small =
        SmallAgentWorld::python(&world, &format!("{CALL}{CALL}import time\ntime.sleep(1)\nprint('more')\n"));
    let kinds = |options: &[&str]| {
        let ran = small.run(&[&["--events"], options].concat());
        let events: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let kinds: Vec<String> =
            events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
        (ran.code, kinds.join(" "), events)
    };
    let (code, all, events) = kinds(&[]);
    let expected = "text_delta usage_report usage_report assistant_final done";
    assert_eq!((code, all.as_str()), (0, expected), "{events:#?}");
    assert_eq!(events[0]["delta"], "hello\nhello\nmore\n");
    assert_eq!(events[3]["content"], events[0]["delta"]);
    assert_eq!(events[4]["finish_reason"], "stop");
    let (code, all, events) = kinds(&["--stream"]);
    assert_eq!(code, 0);
    let texts = events.iter().filter(|event| event["type"] == "text_delta").count();
    assert!(texts >= 2, "{events:#?}");
    assert!(all.ends_with("text_delta usage_report usage_report assistant_final done"), "{all}");
    let (code, all, events) = kinds(&["--timeout", "500ms"]);
    assert_eq!(code, 124);
    assert!(all.ends_with("error done"), "{all}");
    assert_eq!(events[events.len() - 2]["error"], "timeout");
}
