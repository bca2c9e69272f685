//! No agent runs without a grant that says so, and every refusal is recorded.

use super::small::{Small, records};
use crate::BELLJAR;
use belljar_testkit::world::World;
use serde_json::{Value, json};

fn grant() -> Value {
    json!({
        "id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "subject": "service:scheduler",
        "billing_account_id": "account-7",
        "scopes": ["graph:execute:sandbox:small"],
        "allow_sandbox": true,
        "expires_at": "2999-01-01T00:00:00Z",
        "revoked_at": null,
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut grant = grant();
    grant[member] = value;
    grant
}

#[test]
fn a_grant_that_says_all_of_it_is_used_and_says_who_pays() {
    let world = World::new(BELLJAR);
    let small = Small::python(&world, super::small::CALL);
    for grant in [grant(), with("scopes", json!(["graph:execute:*"]))] {
        world.write("grant.json", grant.to_string());
        let result = small.json(&["--grant", "grant.json"]);
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
    let ran = small.run(&["--grant", "grant.json", "--billing-account", "another"]);
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.stderr.contains("but the grant is of account-7"), "{ran:?}");
}

#[test]
fn every_other_grant_is_refused_and_the_refusal_is_recorded() {
    let world = World::new(BELLJAR);
    let small = Small::shell(&world, "echo ran; touch ran");
    let any = json!(["graph:execute:*"]);
    let mut users = with("subject", json!("user:scheduler"));
    users["scopes"] = any.clone();
    let mut silent = with("allow_sandbox", json!(false));
    silent["scopes"] = any;
    let cases = [
        (Some(with("revoked_at", json!("2026-01-01T00:00:00Z"))), "grant_revoked"),
        (Some(with("expires_at", json!("2026-01-01T00:00:00Z"))), "grant_expired"),
        (Some(with("scopes", json!(["graph:execute:sandbox:codex"]))), "grant_scope_mismatch"),
        (Some(with("scopes", json!([]))), "grant_scope_mismatch"),
        (Some(users), "grant_not_system"),
        (Some(silent), "grant_sandbox_not_allowed"),
        (None, "grant_not_found"),
    ];
    for (number, (grant, code)) in cases.into_iter().enumerate() {
        let path = world.path().join("grant.json");
        match &grant {
            Some(grant) => drop(world.write("grant.json", grant.to_string())),
            None => std::fs::remove_file(&path).unwrap(),
        }
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
        assert_eq!(last["grant"].is_null(), grant.is_none());
    }
    assert!(!world.path().join("project/ran").exists());
    assert!(records(&world, "run_ended").is_empty() && records(&world, "grant_used").is_empty());
    assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
    world.run(&["audit", "verify"]).succeeded();
    world.write("grant.json", grant().to_string());
    assert_eq!(small.run(&["--grant", "grant.json"]).succeeded().stdout, "ran\n", "the same with a good one");
}

#[test]
fn what_is_no_grant_is_told_with_every_mistake_and_is_no_refusal() {
    let world = World::new(BELLJAR);
    let small = Small::shell(&world, "echo ran");
    let mut extra = with("allowSandbox", json!(true));
    extra["subject"] = json!("scheduler");
    let documents = [
        (extra.to_string(), vec!["$.allowSandbox", "$.subject"]),
        (with("allow_sandbox", json!("true")).to_string(), vec!["$.allow_sandbox"]),
        (
            with("scopes", json!(["graph:execute:sandbox:*", "graph:*"])).to_string(),
            vec!["$.scopes[0]", "$.scopes[1]"],
        ),
        (with("expires_at", json!("tomorrow")).to_string(), vec!["$.expires_at"]),
        (with("billing_account_id", json!("a b")).to_string(), vec!["$.billing_account_id"]),
        ("{\"id\":1,\"id\":2}".to_owned(), vec!["$.id", "$.allow_sandbox"]),
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
