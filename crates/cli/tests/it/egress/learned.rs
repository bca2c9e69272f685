//! A policy of the requests that a run tried: learned from the audit log, while the requests themselves stay denied.

use super::{HelloServer, policy};
use crate::BELLJAR;
use belljar_testkit::world::World;

/// Returns a script that requests this page, and a tunnel to a name.
fn ask(server: &HelloServer) -> String {
    format!(
        "unset NO_PROXY no_proxy; curl -s http://{}/page; curl -s https://pkgs.example/; curl -s -I http://pkgs.example/; \
         curl -s http://169.254.169.254/latest/; true",
        server.address
    )
}

#[test]
fn egress_learn_proposes_a_policy_without_sending_requests_and_the_policy_works() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let ask = ask(&server);
    let learned = world
        .run(&["egress", "learn", "-o", "learned.yaml", "--timeout", "1m", "--", "sh", "-c", &ask])
        .succeeded();
    assert!(!learned.stdout.contains("hello"), "{learned:?}");
    assert_eq!(server.asked(), 0);
    let proposed = world.read("learned.yaml").replace(&server.address.port().to_string(), "PORT");
    let proposed = proposed.split_once('\n').unwrap();
    assert!(proposed.0.starts_with("# What run "), "{proposed:?}");
    insta::assert_snapshot!(proposed.1, @r#"
    rules:
    # Not on the public internet:
    - {host: "127.0.0.1", ports: [PORT], methods: [GET], networks: ["127.0.0.1/32"]}
    - {host: "pkgs.example", ports: [80], methods: [HEAD]}
    - {host: "pkgs.example", ports: [443]}
    # Attempted, but not proposed:
    #   169.254.169.254:80: no rule can allow that address (link_local_address)
    "#);
    // It is a policy with an expectation for each request.
    let expected = format!(
        "expect:\n- {{url: \"http://{0}/page\", verdict: allowed}}\n- {{url: \"http://{0}/page\", method: POST, verdict: denied}}\n\
         - {{url: \"https://pkgs.example/\", verdict: allowed}}\n- {{url: \"https://other.example/\", verdict: denied}}\n\
         - {{url: \"http://169.254.169.254/latest/\", verdict: denied}}\n",
        server.address
    );
    world.write("expect.yaml", expected);
    let held = world.run(&["egress", "test", "expect.yaml", "--policy", "learned.yaml"]);
    assert_eq!((held.code, held.stdout.as_str()), (0, "5 of 5 as expected\n"), "{held:?}");
    // The control: with that policy the command's requests are allowed.
    let ran = world.run(&["exec", "--egress", "learned.yaml", "--", "sh", "-c", &ask]);
    assert!(ran.stdout.starts_with("hello\n"), "{ran:?}");
    assert_eq!(server.asked(), 1);
}

#[test]
fn egress_learn_uses_the_last_or_named_run_and_continues_with_a_policy() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let port = server.address.port();
    policy(&world, &format!("[{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}]"));
    let next = format!(
        "unset NO_PROXY no_proxy; test $(curl -s http://localhost:{port}/) = hello && curl -sf http://next.example/"
    );
    let by_policy =
        world.run(&["egress", "learn", "--json", "--policy", "policy.yaml", "--", "sh", "-c", &next]);
    let told = by_policy.succeeded().json();
    let hosts = |told: &serde_json::Value| -> Vec<String> {
        let rules = told["rules"].as_array().unwrap();
        rules.iter().map(|rule| rule["host"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((hosts(&told), server.asked()), (vec!["localhost".to_owned(), "next.example".to_owned()], 1));
    let run = told["run_id"].as_str().unwrap();
    policy(&world, "[]");
    let _ = world.run(&["exec", "--egress", "policy.yaml", "--", "curl", "-s", "http://later.example/"]);
    let last = world.run(&["egress", "learn", "--json"]).succeeded().json();
    assert_eq!(hosts(&last), ["later.example"]);
    let named = world.run(&["egress", "learn", "--json", "--run", run]).succeeded().json();
    assert_eq!(named, told);
}

#[test]
fn egress_learn_proposes_nothing_for_no_requests_and_overwrites_no_policy() {
    let world = World::new(BELLJAR);
    let learn = |arguments: &[&str]| {
        let ran = world.run(&[&["egress", "learn"], arguments].concat());
        (ran.code, ran.stdout, ran.stderr)
    };
    let (code, _, why) = learn(&[]);
    assert!(code == 125 && why.contains("no run has made a network request"), "{why}");
    let (code, told, _) = learn(&["--", "true"]);
    assert!(code == 0 && told.ends_with("\nrules: []\n"), "{told}");
    let (code, _, why) = learn(&["--run", "01890a5d-ac96-774b-bcce-b302099a8057"]);
    assert!(code == 125 && why.contains("has made no network requests"), "{why}");
    // Sandbox options would be ignored, because no sandbox is made.
    for ignored in [["--ro", "/usr"], ["--memory", "1g"], ["--workspace", "/tmp"], ["--policy", "p.yaml"]] {
        assert_eq!(learn(&ignored).0, 125, "{ignored:?}");
    }
    world.write("there.yaml", "rules: []\n");
    let (code, _, why) = learn(&["-o", "there.yaml", "--", "curl", "-s", "http://a.example/"]);
    assert!(code == 125 && why.contains("there.yaml"), "{why}");
    assert_eq!(world.read("there.yaml"), "rules: []\n");
}
