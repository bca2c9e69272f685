//! The Worker API conforms to its OpenAPI document.

use belljar_contract::worker::operation::Operation;
use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, TOKEN};
use belljar_testkit::schemathesis;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;

const DOCUMENT: &str = "/v1/worker/openapi.json";

#[test]
fn responses_conform_to_the_openapi_document_under_fuzzing() {
    let world = World::new(crate::BELLJAR);
    // High limits, because a 503 for a lack of capacity would be right and no finding.
    let config = world.write("config.yaml", "node: { sessions: { max: 10000 }, max_waiting: 100000 }\n");
    let node = Node::start(&world, &["--config", config.to_str().unwrap()]);
    match schemathesis::ask(node.address(), DOCUMENT, TOKEN, 1) {
        Ok((is_well, report)) => {
            // All operations except the one that returns the document itself.
            let tested = format!("Tested: {}", Operation::ALL.len() - 1);
            assert!(is_well && report.contains(&tested), "{report}");
        }
        Err(why) => {
            skip("node::described::responses_conform_to_the_openapi_document_under_fuzzing", &why);
        }
    }
    // The tool submitted jobs, and the node accepted some.
    assert!(!node.get("/v1/worker/jobs").json()["jobs"].as_array().unwrap().is_empty());
}

#[test]
fn served_openapi_document_is_the_published_one() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let published = include_str!("../../../../../docs/schema/worker-api.openapi.json");
    let published: serde_json::Value = serde_json::from_str(published).unwrap();
    assert_eq!(node.get(DOCUMENT).json(), published);
    assert_eq!(HttpRequest::new("GET", DOCUMENT).send(node.address()).unwrap().status, 401);
}

#[test]
fn unsupported_method_is_answered_with_the_allowed_methods() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let id = belljar_testkit::node::new_id();
    for (method, path, allowed) in [
        ("DELETE", "/v1/worker/jobs".to_owned(), "GET, HEAD"),
        ("PUT", "/v1/worker/sessions".to_owned(), "GET, HEAD, POST"),
        ("GET", format!("/v1/worker/jobs/{id}:cancel"), "POST"),
        ("POST", format!("/v1/worker/jobs/{id}"), "GET, HEAD"),
        ("POST", "/healthz".to_owned(), "GET, HEAD"),
    ] {
        let answered = node.send(&HttpRequest::new(method, &path));
        assert_eq!((answered.status, answered.header("allow")), (405, Some(allowed)), "{method} {path}");
    }
    assert_eq!(node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{id}:other"))).status, 404);
}
