//! What a person is asked about a call is all of it, or they are not asked.

use super::{Answers, House, RULES, code, message, rules};
use crate::rig::Rig;
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use belljar_gateway::access::HouseAccess;
use belljar_policy::constraint::WorksIn;
use belljar_policy::secret::KnownSecrets;
use belljar_tools::canonical;
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A gateway that knows one secret, and what it is asked about.
fn knowing() -> House {
    let works_in = BTreeMap::from([(Category::CodeExecution, WorksIn::Container)]);
    let access = Arc::new(HouseAccess::new(rules(RULES), works_in));
    let approver = Arc::new(Answers::default());
    let (judging, asking) = (Arc::clone(&access), Arc::clone(&approver));
    let rig =
        Rig::with(|gateway| gateway.knowing(Arc::new(OneSecret)).judging_by(judging).asking(asking).unwrap());
    House { rig, access, approver }
}

#[derive(Debug)]
struct OneSecret;

impl KnownSecrets for OneSecret {
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        text.match_indices("the-hosts-secret").map(|(at, found)| at..at + found.len()).collect()
    }
}

#[tokio::test]
async fn a_person_is_asked_about_all_of_the_arguments_and_nothing_in_them_is_hidden() {
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
async fn a_call_that_can_not_be_shown_whole_is_refused_and_not_asked_about() {
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
        // Nor about one that was refused and could be asked about.
        let refused = house.call("low", "tell", given).await;
        assert!(!message(&refused).contains("request_human_approval"), "{refused:?}");
    }
    let free =
        json!({ "action_type": "deploy:production", "title": "the-hosts-secret", "description": "now" });
    let refused = house.call("low", "request_human_approval", free).await;
    assert_eq!(code(&refused), Some(DomainCode::PermissionDenied));
    assert!(house.approver.asked.lock().unwrap().is_empty());
    // The control: the same calls without what can't be shown.
    let asked = house.call("asks", "tell", json!({ "text": "curl -H x" })).await;
    assert_eq!(code(&asked), Some(DomainCode::ApprovalRequired));
}
