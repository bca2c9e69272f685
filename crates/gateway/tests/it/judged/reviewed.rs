//! Tests that an approval is requested only if the call can be shown completely.

use super::{AccessRig, RULES, TestApprover, code, message, rules};
use crate::rig::Rig;
use belljar_contract::approval::CallScope;
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use belljar_gateway::access::{RuleBasedAccess, ScopeSource};
use belljar_policy::constraint::ExecutionLocation;
use belljar_policy::secret::KnownSecrets;
use belljar_tools::answer::Failure;
use belljar_tools::canonical;
use belljar_tools::definition::Definition;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// A gateway that knows one secret, with recorded requests.
fn knowing() -> AccessRig {
    let works_in = BTreeMap::from([(Category::CodeExecution, ExecutionLocation::Container)]);
    let access = Arc::new(RuleBasedAccess::new(rules(RULES), works_in));
    let approver = Arc::new(TestApprover::default());
    let (judging, asking) = (Arc::clone(&access), Arc::clone(&approver));
    let rig =
        Rig::with(|gateway| gateway.knowing(Arc::new(OneSecret)).judging_by(judging).asking(asking).unwrap());
    AccessRig { rig, access, approver }
}

#[derive(Debug)]
struct OneSecret;

impl KnownSecrets for OneSecret {
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        text.match_indices("the-hosts-secret").map(|(at, found)| at..at + found.len()).collect()
    }
}

#[tokio::test]
async fn approval_request_shows_all_arguments_unredacted() {
    let house = knowing();
    let blanks = " ".repeat(300);
    for line in
        [format!("echo hello{blanks}; evil"), "export TOKEN=\"$(cmd)\"; cat x".to_owned(), "x".repeat(40_000)]
    {
        let given = json!({ "text": line, "code": "import os", "password": { "token": "$(cmd)" } });
        assert_eq!(
            code(&house.call("asks", "tell", given.clone()).await),
            Some(DomainCode::ApprovalRequired)
        );
        let asked = house.approver.asked.lock().unwrap().last().unwrap().1.clone();
        assert_eq!(asked.arguments, given);
        let digest = canonical::digest(given.as_object().unwrap());
        assert_eq!(asked.arguments_sha256, digest);
        let record = house.last();
        assert_eq!(record["arguments_bytes"], given.to_string().len());
        match record["is_preview"] == true {
            false => assert_eq!(record["arguments"], given),
            true => assert!(line.len() == 40_000 && record["arguments"].as_str().unwrap().contains(&digest)),
        }
    }
}

#[tokio::test]
async fn unreviewable_call_is_refused_without_an_approval_request() {
    let house = knowing();
    let nested = (0..100).fold(json!(1), |inner, _| json!([inner]));
    for (given, why) in [
        (json!({ "text": "x".repeat(600_000) }), "too large to be reviewed"),
        (json!({ "nested": nested }), "too deep to be reviewed"),
        (json!({ "text": "curl -H the-hosts-secret x" }), "secret that this host knows"),
    ] {
        let refused = house.call("asks", "tell", given.clone()).await;
        assert_eq!(code(&refused), Some(DomainCode::PermissionDenied));
        assert!(message(&refused).contains(why), "{refused:?}");
        assert_eq!(house.last()["denied_by"], "unreviewable");
        assert!(!house.last().to_string().contains("the-hosts-secret"));
        // An approval can't be requested for a refused call either.
        let refused = house.call("low", "tell", given).await;
        assert!(!message(&refused).contains("request_human_approval"), "{refused:?}");
    }
    let free =
        json!({ "action_type": "deploy:production", "title": "the-hosts-secret", "description": "now" });
    let refused = house.call("low", "request_human_approval", free).await;
    assert_eq!(code(&refused), Some(DomainCode::PermissionDenied));
    assert!(house.approver.asked.lock().unwrap().is_empty());
    // Control: the same calls without unreviewable content.
    let asked = house.call("asks", "tell", json!({ "text": "curl -H x" })).await;
    assert_eq!(code(&asked), Some(DomainCode::ApprovalRequired));
}

/// A scope that can change.
#[derive(Debug, Default)]
struct ChangingScope(Mutex<Option<Value>>);

impl ScopeSource for ChangingScope {
    fn scope<'a>(&'a self, _: &'a Definition) -> BoxFuture<'a, Result<CallScope, Failure>> {
        let place = self.0.lock().unwrap().clone();
        let place = place.ok_or_else(|| Failure::new(DomainCode::Unavailable, "the place is gone"));
        let scope = place.map(|place| CallScope::from_iter([("workspace".to_owned(), place)]));
        std::future::ready(scope).boxed()
    }
}

#[tokio::test]
async fn approval_is_bound_to_the_scope_of_the_call() {
    let (places, approver) = (Arc::new(ChangingScope::default()), Arc::new(TestApprover::default()));
    let access = Arc::new(RuleBasedAccess::new(rules(RULES), BTreeMap::new()));
    let (judging, asking, scopes) = (Arc::clone(&access), Arc::clone(&approver), Arc::clone(&places));
    let rig = Rig::with(|gateway| {
        let gateway = gateway.knowing(Arc::new(OneSecret)).scoped_by(scopes);
        gateway.judging_by(judging).asking(asking).unwrap()
    });
    let house = AccessRig { rig, access, approver };
    let told = async || code(&house.call("asks", "tell", json!({ "text": "x" })).await);
    let at = |place: Value| *places.0.lock().unwrap() = Some(place);
    // A scope that can't be determined fails the call, and one that can't be shown can't be approved.
    assert_eq!(told().await, Some(DomainCode::Unavailable));
    at(json!("/srv/the-hosts-secret"));
    assert_eq!(told().await, Some(DomainCode::PermissionDenied));
    at(json!("x".repeat(40_000)));
    assert_eq!(told().await, Some(DomainCode::PermissionDenied));
    assert!(house.approver.asked.lock().unwrap().is_empty());
    at(json!("/srv/one"));
    assert_eq!(told().await, Some(DomainCode::ApprovalRequired));
    let asked = house.approver.asked.lock().unwrap().last().unwrap().1.clone();
    assert_eq!(Value::Object(asked.scope), json!({ "workspace": "/srv/one" }));
    house.say_yes();
    at(json!("/srv/other"));
    assert_eq!(told().await, Some(DomainCode::ApprovalRequired));
    // Control: in the approved scope.
    at(json!("/srv/one"));
    assert_eq!(told().await, None);
}
