//! `belljar doctor`

use crate::BELLJAR;
use belljar_testkit::world::World;

#[test]
fn every_wall_holds_here_and_every_attempt_has_its_control() {
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
fn a_feature_says_why_it_matters_and_how_to_get_it() {
    let findings = World::new(BELLJAR).run(&["doctor", "--json"]).json();
    for feature in findings["features"].as_array().unwrap() {
        for member in ["name", "found", "why", "remedy"] {
            assert!(feature[member].as_str().is_some_and(|text| !text.is_empty()), "{member} of {feature:#}");
        }
    }
}

#[test]
fn a_host_without_user_namespaces_is_told_so_with_a_way_out() {
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
