//! The list of `belljar agents`, and the messages for unknown agents.

use super::small::{SmallAgentWorld, configure};
use crate::BELLJAR;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::world::World;
use serde_json::json;

#[test]
fn agents_are_listed_with_their_install_location() {
    let world = World::new(BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let own = json!([{ "name": "mine", "description": "my own", "argv": ["sh", "-c", "{prompt}"] },
                     { "name": "codex", "description": "another codex", "argv": ["no-codex", "{prompt}"] }]);
    configure(&world, &server, &own);
    let listed = world.run(&["agents", "--config", "config.yaml", "--json"]).succeeded().json();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["claude-code", "codex", "mine", "opencode"]);
    assert_eq!(
        (&listed[1]["description"], &listed[1]["is_installed"]),
        (&json!("another codex"), &json!(false))
    );
    assert_eq!((&listed[2]["graph_id"], &listed[2]["is_installed"]), (&json!("sandbox:mine"), &json!(true)));
    assert!(listed[2]["path"].as_str().unwrap().ends_with("/sh"));
    let text = world.run(&["agents", "--config", "config.yaml"]).succeeded().stdout;
    assert!(text.contains("codex        no-codex, not installed\n             another codex\n"), "{text}");
    let built_in = world.run(&["agents"]).succeeded().stdout;
    assert_eq!(built_in.lines().count(), 7, "{built_in}");
}

#[test]
fn unknown_agent_name_error_lists_the_available_agents() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::shell(&world, "true");
    let run = |arguments: &[&str]| {
        let config = ["--config", "config.yaml"];
        world.run(&[&["agent"], arguments, &config[..], &["--", "hi"]].concat())
    };
    let unknown = run(&["claude", "--model", "small"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    let expected = "Did you mean claude-code? There are: claude-code, codex, opencode, small";
    assert!(unknown.stderr.contains(expected), "{unknown:?}");
    let no_model = run(&["small"]);
    assert_eq!(no_model.code, 125);
    assert!(no_model.stderr.contains("--model NAME"), "{no_model:?}");
    let other = run(&["small", "--model", "none"]);
    assert!(other.stderr.contains("has no model \"none\"; it has: other, small"), "{other:?}");
    let nothing = world.run(&["agent", "small", "--model", "small", "--config", "config.yaml"]);
    assert_eq!(nothing.code, 125);
    assert!(nothing.stderr.contains("needs a prompt"), "{nothing:?}");
    let both =
        run(&["small", "--model", "small", "--workspace-copy", "project", "--clone", "https://a.invalid/b"]);
    assert_eq!(both.code, 125);
    assert!(both.stderr.contains("cannot be used with"), "{both:?}");
    assert_eq!(small.server.request_count(), 0);
    assert!(!world.path().join("state").exists());
}

#[test]
fn agent_without_a_workspace_gets_an_empty_one_whose_files_can_be_kept() {
    World::as_everyone(BELLJAR, |world| {
        let small = SmallAgentWorld::shell(world, "ls -A; echo made > made; mkdir d; ln -s made d/link");
        let arguments = ["agent", "small", "--model", "small", "--config", "config.yaml", "--json", "--keep"];
        let result = world.run(&[&arguments[..], &["--", "hi"]].concat()).succeeded().json();
        assert_eq!(result["stdout"], ".cogni\n");
        assert_eq!(result["changes"]["state"], "kept");
        let kept = std::path::Path::new(result["kept_in"].as_str().unwrap());
        assert_eq!(std::fs::read_to_string(kept.join("made")).unwrap(), "made\n");
        assert!(!kept.join(".cogni").exists());
        assert_eq!(small.server.request_count(), 0);
        assert_eq!(result["usage"], json!([]));
    });
}
