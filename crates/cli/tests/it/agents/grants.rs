//! No agent runs without a grant that permits it, and every refusal is recorded.

use super::small::{SmallAgentWorld, records};
use crate::BELLJAR;
use crate::grant::issue;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Returns the terms of a grant, with these additional ones.
fn terms<'t>(subject: &'t str, scope: &'t str, more: &[&'t str]) -> Vec<&'t str> {
    let own =
        ["--subject", subject, "--scope", scope, "--billing-account", "account-7", "--file", "grant.json"];
    own.iter().chain(more).copied().collect()
}

/// Issues a grant in `grant.json`, and returns it.
fn grant(world: &World, terms: &[&str]) -> Value {
    let _ = std::fs::remove_file(world.path().join("grant.json"));
    issue(world, terms)["grant"].clone()
}

const SERVICE: &str = "service:scheduler";
const SMALL: &str = "graph:execute:sandbox:small";
const ANY: &str = "graph:execute:*";

#[test]
fn complete_grant_is_accepted_and_names_the_billed_account() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::python(&world, super::small::CALL);
    for scope in [SMALL, ANY] {
        let grant = grant(
            &world,
            &terms(SERVICE, scope, &["--allow-sandbox", "--expires-in", "1h", "--user-id", "ada"]),
        );
        let result = small.json(&["--grant", "grant.json", "--session-id", "chat-1"]);
        assert_eq!(result["ok"], true, "{result:#}");
        assert_eq!(result["usage"][0]["billing_account_id"], "account-7");
        let used = records(&world, "grant_used").pop().unwrap();
        assert_eq!(used["run"], result["run_id"]);
        let expected = json!({ "graph_id": "sandbox:small", "code": null, "grant": {
            "grant_id": grant["id"], "subject": "service:scheduler", "billing_account_id": "account-7" } });
        assert_eq!(used["event"], expected);
    }
    let request = &small.server.requests()[0];
    assert_eq!(request.header("x-litellm-end-user-id"), Some("account-7"));
    let metadata: Value =
        serde_json::from_str(request.header("x-litellm-spend-logs-metadata").unwrap()).unwrap();
    assert_eq!(
        (&metadata["user_id"], &metadata["session_id"]),
        (&json!("ada"), &json!("chat-1")),
        "{metadata}"
    );
    let ran = small.run(&["--grant", "grant.json", "--billing-account", "another"]);
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.stderr.contains("but the grant is of account-7"), "{ran:?}");
    let ran = small.run(&["--billing-account", "account-7"]);
    assert!(ran.code == 125 && ran.stderr.contains("takes a grant of that account"), "{ran:?}");
}

/// Issues a grant that is refused with this code.
fn spoil(world: &World, code: &str) {
    const ALLOW: &str = "--allow-sandbox";
    let _ = match code {
        "grant_scope_mismatch" => grant(world, &terms(SERVICE, "graph:execute:sandbox:codex", &[ALLOW])),
        "grant_not_system" => grant(world, &terms("user:scheduler", ANY, &[ALLOW])),
        "grant_sandbox_not_allowed" => grant(world, &terms(SERVICE, ANY, &[])),
        "grant_expired" => grant(world, &terms(SERVICE, ANY, &[ALLOW, "--expires-in", "1ms"])),
        _ => grant(world, &terms(SERVICE, ANY, &[ALLOW])),
    };
    let path = world.path().join("grant.json");
    match code {
        "grant_not_found" => std::fs::remove_file(path).unwrap(),
        "grant_not_proven" => {
            let edited = world.read("grant.json").replace("account-7", "account-8");
            std::fs::write(path, edited).unwrap();
        }
        "grant_revoked" => {
            let document: Value = serde_json::from_str(&world.read("grant.json")).unwrap();
            world.run(&["grant", "revoke", document["grant"]["id"].as_str().unwrap()]).succeeded();
        }
        "grant_expired" => {
            let document: Value = serde_json::from_str(&world.read("grant.json")).unwrap();
            let end: jiff::Timestamp = document["grant"]["expires_at"].as_str().unwrap().parse().unwrap();
            wait::until(|| jiff::Timestamp::now() > end);
        }
        _ => {}
    }
}

#[test]
fn invalid_grant_is_refused_and_the_refusal_is_recorded() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::shell(&world, "echo ran; touch ran");
    let codes = [
        "grant_revoked",
        "grant_expired",
        "grant_scope_mismatch",
        "grant_not_system",
        "grant_sandbox_not_allowed",
        "grant_not_proven",
        "grant_not_found",
    ];
    for (number, code) in codes.into_iter().enumerate() {
        spoil(&world, code);
        let ran = small.run(&["--grant", "grant.json", "--apply"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
        assert!(ran.stderr.contains(code), "{code}: {ran:?}");
        let denied = records(&world, "grant_denied");
        assert_eq!(denied.len(), number * 3 + 1);
        let told = small.run(&["--grant", "grant.json", "--json"]);
        let (result, failure) = (told.json(), told.json()["failure"].clone());
        assert_eq!(
            (told.code, &failure["code"], &failure["error"]),
            (1, &json!(code), &json!("invalid_request"))
        );
        assert_eq!(
            (&result["ok"], &result["exit_code"], &result["usage"]),
            (&json!(false), &json!(-1), &json!([]))
        );
        let events = small.run(&["--grant", "grant.json", "--events"]).stdout;
        let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let types: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
        assert_eq!((types, &events[0]["code"]), (vec![&json!("error"), &json!("done")], &json!(code)));
        let last = &denied[number * 3]["event"];
        assert_eq!((&last["code"], &last["graph_id"]), (&json!(code), &json!("sandbox:small")));
        let is_unknown = ["grant_not_found", "grant_not_proven"].contains(&code);
        assert_eq!(last["grant"].is_null(), is_unknown);
    }
    assert!(!world.path().join("project/ran").exists());
    assert!(records(&world, "run_ended").is_empty() && records(&world, "grant_used").is_empty());
    assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
    world.run(&["audit", "verify"]).succeeded();
    grant(&world, &terms(SERVICE, SMALL, &["--allow-sandbox"]));
    assert_eq!(small.run(&["--grant", "grant.json"]).succeeded().stdout, "ran\n", "control: a valid grant");
}

#[test]
fn malformed_grant_is_reported_with_every_mistake_and_not_recorded_as_refusal() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::shell(&world, "echo ran");
    let good = json!({
        "id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "subject": "service:scheduler",
        "billing_account_id": "account-7",
        "scopes": ["graph:execute:sandbox:small"],
        "allow_sandbox": true,
    });
    let with = |member: &str, value: Value| {
        let mut grant = good.clone();
        grant[member] = value;
        json!({ "grant": grant, "signature": "00" })
    };
    let mut extra = with("allowSandbox", json!(true));
    extra["grant"]["subject"] = json!("scheduler");
    let documents = [
        (extra.to_string(), vec!["$.grant.allowSandbox", "$.grant.subject"]),
        (with("allow_sandbox", json!("true")).to_string(), vec!["$.grant.allow_sandbox"]),
        (
            with("scopes", json!(["graph:execute:sandbox:*", "graph:*"])).to_string(),
            vec!["$.grant.scopes[0]", "$.grant.scopes[1]"],
        ),
        (with("expires_at", json!("tomorrow")).to_string(), vec!["$.grant.expires_at"]),
        (with("billing_account_id", json!("a b")).to_string(), vec!["$.grant.billing_account_id"]),
        (good.to_string(), vec!["$.grant", "$.signature"]),
        ("not json".to_owned(), vec!["$"]),
    ];
    for (document, places) in documents {
        world.write("grant.json", &document);
        let ran = small.run(&["--grant", "grant.json"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        for place in places {
            assert!(ran.stderr.contains(place), "{place}: {ran:?}");
        }
    }
    assert!(!world.path().join("state").exists());
}
