//! `belljar audit`

mod anchor;
mod configured;

use crate::BELLJAR;
use belljar_contract::id::{CallId, RunId};
use belljar_contract::inference::{
    ApiDialect, CALL, CallOutcome, CallRecord, Cost, Excerpt, ProviderKind, ReasonCode, ReportedUsage, Route,
    UsageSource,
};
use belljar_store::audit::{AuditLog, Event};
use belljar_testkit::world::World;
use serde_json::json;
use std::path::PathBuf;

const RUN: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f";
const OTHER: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d10";

fn call(model: &str, outcome: CallOutcome) -> CallRecord {
    let was_asked = outcome == CallOutcome::Completed;
    let usage = ReportedUsage {
        source: UsageSource::Header,
        input_tokens: Some(20),
        output_tokens: None,
        cost_usd: Some(Cost::parse("0.00012").unwrap()),
    };
    CallRecord {
        call_id: CallId::parse("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e").unwrap(),
        run_id: RunId::parse(RUN).unwrap(),
        attempt: 0,
        billing_account_id: Excerpt::of("account-7"),
        graph_id: Excerpt::of("sandbox:exec"),
        started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
        route: Route { method: Excerpt::of("POST"), path: Excerpt::of("/v1/chat/completions") },
        surface: ApiDialect::Openai,
        model_asked: Some(Excerpt::of(model)),
        model_used: was_asked.then(|| Excerpt::of("vendor/small-2")),
        provider: was_asked.then(|| Excerpt::of("litellm")),
        provider_kind: was_asked.then_some(ProviderKind::LiteLlm),
        status: Some(if was_asked { 200 } else { 403 }),
        upstream_status: was_asked.then_some(200),
        outcome,
        request_bytes: 120,
        response_bytes: 4_000,
        first_byte_ms: Some(80),
        total_ms: 900,
        usage: was_asked.then_some(usage),
        upstream_request_id: None,
        is_streamed: false,
    }
}

const HOSTILE: &str = "\u{1b}[2J\u{9b}31m\n\r9  fake\u{202e}\u{7}";

/// Returns a world with a log: two calls of a run, a record of another run, and one without a run.
fn world() -> World {
    let world = World::new(BELLJAR);
    let log = AuditLog::open(&folder(&world)).unwrap();
    let of = |run| Some(RunId::parse(run).unwrap());
    let denied = CallOutcome::Denied { reason: ReasonCode::parse("model_not_allowed").unwrap() };
    for event in [
        Event::new(CALL, of(RUN).as_ref(), &call("small", CallOutcome::Completed)),
        Event::new(CALL, of(RUN).as_ref(), &call(HOSTILE, denied)),
        Event::new("note", of(OTHER).as_ref(), &json!({ "text": HOSTILE })),
        Event::new("note", None, &json!({ "text": "plain" })),
    ] {
        log.append(event.unwrap()).unwrap();
    }
    log.close();
    world
}

fn folder(world: &World) -> PathBuf {
    world.path().join("state/audit")
}

fn segment(world: &World) -> PathBuf {
    folder(world).join("00000001.jsonl")
}

/// Returns the table without its times.
fn rows(text: &str) -> String {
    text.lines().map(|line| format!("{}{}\n", &line[..10], &line[37..])).collect()
}

#[test]
fn records_are_shown_as_a_table_without_terminal_escapes() {
    let world = world();
    let shown = world.run(&["audit", "show"]).succeeded();
    assert!(
        shown
            .stdout
            .replace('\n', "")
            .chars()
            .all(|character| !character.is_control() && character != '\u{202e}')
    );
    let shown: String = rows(&shown.stdout).lines().skip(2).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!(shown, @r#"
    3           0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f  inference_call        200 completed, POST /v1/chat/completions, small as vendor/small-2 at litellm, 4000 bytes in 900 ms, 20 + ? tokens, 0.00012 USD
    5           0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f  inference_call        403 denied: model_not_allowed, POST /v1/chat/completions, \u{1b}[2J\u{9b}31m\u{a}\u{d}9  fake\u{202e}\u{7}, 4000 bytes in 900 ms
    7           0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d10  note                  {"text":"\u001b[2J\u009b31m\n\r9  fake\u202e\u0007"}
    9           -                                     note                  {"text":"plain"}
    "#);
}

#[test]
fn records_are_filtered_by_run_kind_time_and_number() {
    let world = world();
    let numbers = |more: &[&str]| -> Vec<String> {
        let shown = world.run(&[&["audit", "show"], more].concat()).succeeded();
        shown.stdout.lines().skip(1).map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(numbers(&[]), ["1", "3", "5", "7", "9"]);
    assert_eq!(numbers(&["--run", RUN]), ["3", "5"]);
    assert_eq!(numbers(&["--kind", "note"]), ["7", "9"]);
    assert_eq!(numbers(&["--kind", "checkpoint"]), ["2", "4", "6", "8", "10"]);
    assert_eq!(numbers(&["--last", "2"]), ["7", "9"]);
    assert_eq!(numbers(&["--last", "0"]), [""; 0]);
    assert_eq!(numbers(&["--since", "1h", "--run", OTHER]), ["7"]);
    assert_eq!(numbers(&["--since", "2100-01-01T00:00:00Z"]), [""; 0]);
    assert_eq!(world.run(&["audit", "show", "--run", "absent"]).code, 125);
    let lines = world.run(&["audit", "show", "--json", "--run", RUN]).succeeded().stdout;
    let log = std::fs::read_to_string(segment(&world)).unwrap();
    assert_eq!(lines.lines().collect::<Vec<_>>(), [log.lines().nth(2).unwrap(), log.lines().nth(4).unwrap()]);
}

#[test]
fn log_verification_has_a_stable_exit_code_and_names_the_problem() {
    let world = world();
    let found = world.run(&["audit", "verify", "--json"]).succeeded().json();
    assert_eq!(
        (&found["intact"], &found["records"], &found["own_records"]),
        (&json!(true), &json!(4), &json!(6))
    );
    let key = found["public_key"].as_str().unwrap();
    let anchor = format!("{}:{}", found["last"]["sequence"], found["last"]["hash"].as_str().unwrap());
    let told = world.run(&["audit", "verify", "--key", key, "--expect", &anchor]).succeeded().stdout;
    assert!(
        told.starts_with("intact: 4 records, and 6 of the log's own\n") && !told.contains("--key"),
        "{told}"
    );
    assert!(
        world.run(&["audit", "verify"]).succeeded().stdout.contains("can't show that the end was cut off")
    );

    // The first public key of RFC 8032's tests.
    let of_other = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let (other_hash, later) = (format!("10:{}", "0".repeat(64)), anchor.replace("10:", "99:"));
    for demand in [["--key", of_other], ["--expect", &other_hash], ["--expect", &later]] {
        assert_eq!(world.run(&[&["audit", "verify"], &demand[..]].concat()).code, 1, "{demand:?}");
    }
    for malformed in [["--key", "xyz"], ["--expect", "10"], ["--expect", ":0"]] {
        assert_eq!(world.run(&[&["audit", "verify"], &malformed[..]].concat()).code, 125, "{malformed:?}");
    }
    let sound = std::fs::read(segment(&world)).unwrap();
    let text = String::from_utf8(sound.clone()).unwrap();
    std::fs::write(segment(&world), text.replace("\"plain\"", "\"other\"")).unwrap();
    let ran = world.run(&["audit", "verify"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""));
    insta::assert_snapshot!(ran.stdout, @"not intact: 00000001.jsonl, line 9, record 9: the record was changed");
    let ran = world.run(&["audit", "verify", "--json"]);
    assert_eq!((ran.code, &ran.json()["sequence"]), (1, &json!(9)));
    let ran = world.run(&["audit", "show"]);
    assert_eq!(
        (ran.code, ran.stdout.lines().count()),
        (125, 5),
        "what comes before is shown: {}",
        ran.stdout
    );
    assert_eq!(world.run(&["audit", "export"]).code, 125);
    std::fs::write(segment(&world), sound).unwrap();
    let ran = world.run(&["audit", "verify"]);
    assert_eq!(ran.code, 0);
}

#[test]
fn file_name_with_terminal_escapes_is_printed_escaped() {
    let world = world();
    std::fs::write(folder(&world).join("a\u{1b}[2J\nb"), "").unwrap();
    let ran = world.run(&["audit", "verify"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (1, "not intact: a\\u{1b}[2J\\u{a}b: it does not belong to the log\n")
    );
}

#[test]
fn exported_log_is_verified_without_any_other_file() {
    let world = world();
    let key = world.run(&["audit", "verify", "--json"]).succeeded().json()["public_key"]
        .as_str()
        .unwrap()
        .to_owned();
    let told = world.run(&["audit", "export", "--run", RUN, "-o", "run.jsonl"]).succeeded();
    assert_eq!(told.stderr, "2 records in run.jsonl\n");
    let whole = world.run(&["audit", "export"]).succeeded().stdout;
    world.write("whole.jsonl", &whole);
    std::fs::remove_dir_all(world.path().join("state")).unwrap();
    let found = world.run(&["audit", "verify", "--key", &key, "--json", "run.jsonl"]).succeeded().json();
    assert_eq!((&found["records"], &found["omitted"]), (&json!(2), &json!(0)));
    let found = world.run(&["audit", "verify", "--key", &key, "--json", "whole.jsonl"]).succeeded().json();
    assert_eq!((&found["records"], &found["own_records"]), (&json!(4), &json!(6)));
    world.write("whole.jsonl", whole.replace("\"plain\"", "\"other\""));
    let ran = world.run(&["audit", "verify", "whole.jsonl"]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!(ran.stdout, @"not intact: whole.jsonl, line 10, record 9: the record was changed");
}

#[test]
fn state_without_records_has_nothing_to_show_or_verify() {
    let world = World::new(BELLJAR);
    let shown = world.run(&["audit", "show"]).succeeded();
    assert_eq!(shown.stdout.lines().count(), 1);
    for command in ["verify", "export"] {
        let ran = world.run(&["audit", command]);
        assert_eq!((ran.code, ran.stdout.as_str()), (125, ""));
        assert!(
            ran.stderr.starts_with("belljar: can't open ") && ran.stderr.contains("No such file"),
            "{}",
            ran.stderr
        );
    }
    assert!(!world.path().join("state").exists(), "reading creates no state");
}
