//! Grants of a node, over HTTP.

use super::on_each_database;
use crate::models::recorded;
use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, TOKEN};
use serde_json::{Value, json};

const GRANTS: &str = "/v1/worker/grants";

fn terms() -> Value {
    json!({
        "version": 1, "subject": "service:scheduler", "billing_account_id": "account-7", "user_id": "ada",
        "scopes": ["graph:execute:sandbox:codex"], "allow_sandbox": true, "expires_in_seconds": 3600,
    })
}

#[test]
fn node_grant_is_issued_validated_by_its_secret_listed_and_revoked() {
    on_each_database("grant_of_a_node_is_issued", |world, arguments| {
        let node = Node::start(world, arguments);
        let issued = node.post(GRANTS, &terms());
        assert_eq!(issued.status, 201, "{}", issued.json());
        let issued = issued.json();
        let (id, secret) = (issued["grant"]["id"].as_str().unwrap(), issued["secret"].as_str().unwrap());
        let validate = |id: &str, secret: &str, graph: &str| {
            let asked = json!({ "version": 1, "secret": secret, "graph_id": graph });
            let answered = node.post(&format!("{GRANTS}/{id}/validate"), &asked);
            (answered.status, answered.json())
        };
        let (status, told) = validate(id, secret, "sandbox:codex");
        assert_eq!((status, &told["grant"]["billing_account_id"]), (200, &json!("account-7")), "{told}");
        let refused = |id: &str, secret: &str, graph: &str, code: &str| {
            let (status, told) = validate(id, secret, graph);
            assert_eq!(status, 403, "{told}");
            assert!(told["detail"].as_str().unwrap().starts_with(code), "{told}");
        };
        refused(id, secret, "sandbox:small", "grant_scope_mismatch");
        refused(id, "bjg_00", "sandbox:codex", "grant_not_proven");
        refused("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e", secret, "sandbox:codex", "grant_not_proven");
        let other = node.post(GRANTS, &terms()).json();

        let first = node.get(&format!("{GRANTS}?limit=1")).json();
        assert_eq!((&first["grants"][0]["id"], first["grants"].as_array().unwrap().len()), (&json!(id), 1));
        assert!(!first.to_string().contains("secret"), "{first}");
        let next = first["next_page_token"].as_str().unwrap();
        let second = node.get(&format!("{GRANTS}?page_token={next}")).json();
        assert_eq!(second["grants"][0]["id"], other["grant"]["id"], "{second}");

        let revoke = |id: &str| node.send(&HttpRequest::new("POST", &format!("{GRANTS}/{id}/revoke")));
        assert_eq!(revoke(id).json()["revoked"], true);
        assert_eq!(revoke(id).json()["revoked"], false);
        refused(id, secret, "sandbox:codex", "grant_revoked");
        assert_eq!(revoke("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e").status, 404);
        assert_eq!(
            validate(
                other["grant"]["id"].as_str().unwrap(),
                other["secret"].as_str().unwrap(),
                "sandbox:codex"
            )
            .0,
            200
        );

        let audit = world.path().join("state/node/audit");
        let kinds = ["grant_issued", "grant_revoked"].map(|kind| recorded(&audit, kind));
        assert_eq!((kinds[0].len(), kinds[1].len()), (2, 1), "{kinds:?}");
        assert_eq!(kinds[1][0]["grant_id"], id);
        assert!(!format!("{kinds:?}").contains("bjg_"), "no secret is recorded");
        let log = node.log();
        assert!(!log.contains(secret), "{log}");
    });
}

#[test]
fn only_the_nodes_token_issues_grants_and_every_mistake_is_reported() {
    let world = belljar_testkit::world::World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let asked = |token: &str| {
        let asked = HttpRequest::new("POST", GRANTS).header("Authorization", &format!("Bearer {token}"));
        asked.json(terms().to_string()).send(node.address()).unwrap().status
    };
    assert_eq!((asked("another-token-0123456789"), asked(TOKEN)), (401, 201));
    let mut spoiled = terms();
    spoiled["subject"] = json!("scheduler");
    spoiled["scopes"] = json!(["graph:execute:sandbox:*"]);
    spoiled["billing_account_id"] = json!("a b");
    spoiled["expires_in_seconds"] = json!(0);
    spoiled["allowSandbox"] = json!(true);
    let answered = node.post(GRANTS, &spoiled);
    assert_eq!(answered.status, 400, "{}", answered.json());
    let told = answered.json().to_string();
    for place in
        ["$.subject", "$.scopes[0]", "$.billing_account_id", "$.expires_in_seconds", "$.allowSandbox"]
    {
        assert!(told.contains(place), "{place}: {told}");
    }
}
