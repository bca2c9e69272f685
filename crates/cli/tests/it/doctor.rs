//! `belljar doctor`

use crate::BELLJAR;
use belljar_testkit::world::World;

#[test]
fn every_isolation_check_passes_and_has_a_control() {
    World::as_everyone(BELLJAR, |world| {
        let ran = world.run(&["doctor", "--json"]);
        let findings = ran.json();
        let canary = findings["canary"].as_array().unwrap();
        assert!(canary.len() >= 14, "{findings:#}");
        for finding in canary {
            assert_eq!(finding["verdict"], "held", "{finding:#}");
        }
        assert_eq!((ran.code, &findings["healthy"]), (0, &true.into()), "{findings:#}");
    });
}

#[test]
fn feature_is_explained_with_its_purpose_and_setup() {
    let findings = World::new(BELLJAR).run(&["doctor", "--json"]).json();
    for feature in findings["features"].as_array().unwrap() {
        for member in ["name", "found", "why", "remedy"] {
            assert!(feature[member].as_str().is_some_and(|text| !text.is_empty()), "{member} of {feature:#}");
        }
    }
}

#[test]
fn host_without_user_namespaces_is_reported_with_a_hint() {
    // Inside a sandbox none can be made, as on a host that forbids them.
    let world = World::new(BELLJAR);
    let lend = format!("{BELLJAR}:/opt/belljar");
    let ran = world.run(&["exec", "--ro", &lend, "--", "/opt/belljar", "exec", "--", "true"]);
    assert_eq!(ran.code, 125);
    assert!(ran.stderr.contains("can't make a process in new namespaces"), "{}", ran.stderr);
    assert!(ran.stderr.contains("belljar doctor"), "{}", ran.stderr);
    let ran = world.run(&["exec", "--ro", &lend, "--", "/opt/belljar", "doctor", "--json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.json()["healthy"], false);
    assert!(ran.json()["error"].as_str().is_some_and(|error| error.contains("namespaces")), "{}", ran.stdout);
}
