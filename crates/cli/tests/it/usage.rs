//! Usage of calls, from the audit log, compared with LiteLLM's records.

use crate::BELLJAR;
use belljar_testkit::litellm::{LONG_MODEL, LiteLlm, MASTER_KEY, MODEL};
use belljar_testkit::models::spend_logs::SpendLogs;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

const KEY: &str = "sk-host-4f9aB7zKd82QmX01";

/// Calls from inside: a whole response, a streamed one, a denied one, and with `cut` one that the client breaks off.
const CALLS: &str = r#"
import json, os, sys, urllib.error, urllib.request
def call(model, stream=False):
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": stream, "user": "forged"}
    headers = {"Authorization": "Bearer inside", "x-litellm-end-user-id": "forged", "x-litellm-call-id": "forged"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers))
whole = call("small")
# Who hangs up before the end is not told what it cost.
whole.read()
print(whole.status, "[DONE]" in call("small", True).read().decode())
try:
    call("other")
except urllib.error.HTTPError as error:
    print(error.code)
if "cut" in sys.argv:
    answer = call("long", True)
    print(len(answer.read(100)))
    answer.close()
"#;

/// Writes a configuration with this provider, and returns the argument that names it.
fn configure(world: &World, name: &str, (url, key): (&str, &str), kind: &str) -> String {
    world.write("key", key);
    std::fs::set_permissions(world.path().join("key"), PermissionsExt::from_mode(0o644)).unwrap();
    let config = json!({"inference": {
        "providers": [{"name": "house", "kind": kind, "url": url, "credential": {"file": world.path().join("key")}}],
        "models": [{"name": "small", "provider": "house", "upstream": MODEL},
                   {"name": "long", "provider": "house", "upstream": LONG_MODEL},
                   {"name": "other", "provider": "house"}],
    }});
    world.write(name, config.to_string());
    world.path().join(name).display().to_string()
}

fn call(world: &World, config: &str, arguments: &[&str]) -> ProgramOutput {
    let grant = crate::grant::signed_file(world, "account-7");
    let exec = ["exec", "--model", "small", "--model", "long", "--config", config, "--grant", &grant];
    world.run(&[&exec, &["--", "python3", "-c", CALLS][..], arguments].concat())
}

fn usage(world: &World, arguments: &[&str]) -> ProgramOutput {
    world.run(&[&["usage"], arguments].concat())
}

fn reports(world: &World) -> Vec<Value> {
    let ran = usage(world, &["list", "--json"]).succeeded();
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    listed["reports"].as_array().unwrap().clone()
}

fn reconcile(world: &World, config: &str, more: &[&str]) -> ProgramOutput {
    usage(
        world,
        &[&["reconcile", "--config", config, "--provider", "house", "--grace", "1ms"], more].concat(),
    )
}

#[test]
fn calls_are_listed_and_summed_and_agree_with_the_providers_records() {
    World::as_everyone(BELLJAR, |world| {
        let logs = SpendLogs::new(KEY);
        let server = ModelServer::start(logs.script("hello"));
        let config = configure(world, "config.yaml", (&server.url(), KEY), "litellm");
        assert_eq!(call(world, &config, &[]).succeeded().stdout, "200 True\n403\n");
        let listed = usage(world, &["list"]).succeeded().stdout;
        let lines: Vec<&str> = listed.lines().collect();
        assert!(lines[0].starts_with("CALL") && lines[0].ends_with("BASIS"), "{listed}");
        assert_eq!(lines.len(), 4, "{listed}");
        assert!(lines[1].ends_with("house     12    7  0.0000135  spend_logs"), "{listed}");
        assert_eq!(lines[3], "2 calls, 24 + 14 tokens, 0.000027 USD");
        let reports = reports(world);
        let run = reports[0]["run_id"].as_str().unwrap();
        let agreed = reconcile(world, &config, &["--run", run]).succeeded();
        assert!(agreed.stdout.starts_with("house: 2 of 2 calls agree with 2 rows"), "{agreed:?}");
        let without_calls =
            usage(world, &["list", "--run", "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e"]).succeeded();
        assert!(without_calls.stdout.ends_with("0 calls, 0 + 0 tokens, 0 USD\n"), "{without_calls:?}");
        assert!(server.requests().iter().all(|request| !request.contains(b"forged")));
    });
}

#[test]
fn every_billing_difference_is_reported_and_sets_the_exit_code() {
    let world = World::new(BELLJAR);
    let logs = SpendLogs::new(KEY);
    let server = ModelServer::start(logs.script("hello"));
    let config = configure(&world, "config.yaml", (&server.url(), KEY), "litellm");
    call(&world, &config, &[]).succeeded();
    let reports = reports(&world);
    let id = |at: usize| reports[at]["usage_unit_id"].as_str().unwrap().to_owned();
    logs.change(|rows| {
        rows[0]["spend"] = json!(0.5);
        rows[1]["end_user"] = json!("account-8\u{1b}[2J");
        let mut forged = rows[0].clone();
        forged["request_id"] = json!("chatcmpl-forged");
        forged["litellm_call_id"] = json!("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e");
        rows.push(forged);
    });
    let ran = reconcile(&world, &config, &[]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for told in [
        format!("cost      {}: reported with 0.0000135 USD, logged with 0.5 USD", id(0)),
        format!("end_user  {}: account-7 pays, account-8\\u{{1b}}[2J is billed", id(1)),
        "unknown   0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e: the row chatcmpl-forged".to_owned(),
    ] {
        assert!(ran.stdout.contains(&told), "{told}: {ran:?}");
    }
    let told: Value = serde_json::from_str(&reconcile(&world, &config, &["--json"]).stdout).unwrap();
    assert_eq!((&told["agrees"], &told["provider"]), (&json!(false), &json!("house")));
    assert_eq!(told["reconciliation"]["differences"].as_array().unwrap().len(), 3);
    assert_eq!(told["reconciliation"]["logged_usd"], "1.0000135");
    logs.change(Vec::clear);
    let missing = reconcile(&world, &config, &[]);
    assert_eq!((missing.code, missing.stdout.matches("missing   ").count()), (1, 2), "{missing:?}");
    let awaited = usage(&world, &["reconcile", "--config", &config, "--provider", "house", "--grace", "1h"]);
    assert!(awaited.code == 0 && awaited.stdout.contains("awaited   2 calls"), "{awaited:?}");
}

#[test]
fn unavailable_provider_records_are_not_reported_as_agreement() {
    let world = World::new(BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, "config.yaml", (&server.url(), KEY), "openai");
    let failed = |ran: &ProgramOutput, why: &str| {
        assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{ran:?}");
        assert!(ran.stderr.contains(why) && !ran.stderr.contains(KEY), "{why}: {ran:?}");
    };
    failed(&reconcile(&world, &config, &[]), "no calls of house are recorded");
    call(&world, &config, &[]).succeeded();
    assert_eq!(reports(&world)[0]["basis"], "provider_reported");
    failed(
        &reconcile(&world, &config, &[]),
        "house is of the kind openai, and only LiteLLM keeps spend logs",
    );
    let other = SpendLogs::new("sk-another-4f9aB7zKd82QmX01");
    let theirs = ModelServer::start(other.script("hello"));
    let refused = configure(&world, "refused.yaml", (&theirs.url(), KEY), "litellm");
    failed(&reconcile(&world, &refused, &[]), "not for this credential");
    let nowhere = configure(&world, "nowhere.yaml", ("unix:/nowhere", KEY), "litellm");
    failed(&reconcile(&world, &nowhere, &[]), "no connection to house");
    failed(
        &usage(&world, &["reconcile", "--config", &config, "--provider", "none"]),
        "has no model of a provider \"none\"; it has those of: house",
    );
}

#[test]
fn altered_audit_log_is_refused_for_billing_unless_allowed() {
    let world = World::new(BELLJAR);
    let logs = SpendLogs::new(KEY);
    let server = ModelServer::start(logs.script("hello"));
    let config = configure(&world, "config.yaml", (&server.url(), KEY), "litellm");
    call(&world, &config, &[]).succeeded();
    call(&world, &config, &[]).succeeded();
    let segment = world.path().join("state/audit/00000001.jsonl");
    let text = std::fs::read_to_string(&segment).unwrap();
    let at = text.rfind("\"cost_usd\":\"0.0000135\"").or_else(|| text.rfind("1.35e-5")).unwrap();
    let mut bytes = text.into_bytes();
    let digit = bytes[at..].iter().position(|byte| *byte == b'3').unwrap();
    bytes[at + digit] = b'4';
    std::fs::write(&segment, bytes).unwrap();
    for refused in [usage(&world, &["list"]), reconcile(&world, &config, &[])] {
        assert_eq!((refused.code, refused.stdout.as_str()), (125, ""), "{refused:?}");
        assert!(
            refused.stderr.contains("can't be used for billing") && refused.stderr.contains("changed"),
            "{refused:?}"
        );
    }
    let all_the_same = usage(&world, &["list", "--unverified"]).succeeded();
    assert!(all_the_same.stderr.contains("what comes behind that is not looked at"), "{all_the_same:?}");
    assert!(
        !all_the_same.stdout.contains("1.45") && all_the_same.stdout.contains(" USD"),
        "{all_the_same:?}"
    );
}

#[test]
fn reported_usage_matches_litellms_own_billing() {
    let test = "reported_usage_matches_litellms_own_billing";
    let litellm = match LiteLlm::start() {
        Ok(litellm) => litellm,
        Err(why) => return skip(test, &why),
    };
    let world = World::new(BELLJAR);
    let config = configure(&world, "config.yaml", (&litellm.url(), MASTER_KEY), "litellm");
    let ran = call(&world, &config, &["cut"]).succeeded();
    assert_eq!(ran.stdout, "200 True\n403\n100\n");
    let reports = reports(&world);
    assert_eq!(reports.len(), 3, "{reports:?}");
    let logs = SpendLogs::new(MASTER_KEY);
    for report in &reports[..2] {
        let billed = litellm.billed_as(report["usage_unit_id"].as_str().unwrap());
        let [billed] = billed.as_slice() else { panic!("{report}: {billed:?}") };
        assert_eq!((&billed.end_user, &billed.model), (&"account-7".to_owned(), &MODEL.to_owned()));
        assert_eq!(billed.spend_logs_metadata["run_id"], report["run_id"]);
        assert_eq!(billed.spend_logs_metadata["attempt"], report["attempt"]);
        assert_eq!(billed.spend_logs_metadata["graph_id"], report["graph_id"]);
        assert_eq!(
            (&billed.line["input_tokens"], &billed.line["output_tokens"]),
            (&report["input_tokens"], &report["output_tokens"])
        );
        // The row that LiteLLM's own code made of it, as its database would return it.
        logs.change(|rows| rows.push(billed.row.clone()));
    }
    let cut = &reports[2];
    assert_eq!((&cut["outcome"], &cut["upstream_status"]), (&json!("canceled"), &json!(200)));
    assert_eq!((&cut["is_degraded"], &cut["cost_usd"]), (&json!(true), &Value::Null));
    let server = ModelServer::start(logs.script("hello"));
    let books = configure(&world, "books.yaml", (&server.url(), MASTER_KEY), "litellm");
    let ran = reconcile(&world, &books, &[]);
    assert!(ran.stdout.starts_with("house: 2 of 3 calls agree with 2 rows"), "{ran:?}");
    let id = cut["usage_unit_id"].as_str().unwrap();
    assert!(ran.stdout.contains(&format!("missing   {id}: no row; reported with no cost")), "{ran:?}");
}

#[test]
fn litellm_without_a_database_is_reported_as_having_no_records() {
    let test = "litellm_without_a_database_is_reported_as_having_no_records";
    let litellm = match LiteLlm::start() {
        Ok(litellm) => litellm,
        Err(why) => return skip(test, &why),
    };
    let world = World::new(BELLJAR);
    let config = configure(&world, "config.yaml", (&litellm.url(), MASTER_KEY), "litellm");
    call(&world, &config, &[]).succeeded();
    let ran = reconcile(&world, &config, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{ran:?}");
    assert!(ran.stderr.contains("house has no database, and so it keeps no spend logs"), "{ran:?}");
}
