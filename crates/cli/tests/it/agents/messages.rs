//! The messages for an agent, the file with them, and its protection against changes.

use super::small::SmallAgentWorld;
use crate::BELLJAR;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

#[test]
fn every_argument_arrives_unchanged() {
    let world = World::new(BELLJAR);
    let row = json!({ "name": "small", "description": "small",
        "argv": ["printf", "<%s>", "{prompt}", "--model={model}", "two  words", "$(id)", "{base_url}", ""] });
    let small = SmallAgentWorld::row(&world, &row);
    let prompt = "it's \"so\"\n\t$(id) `id` {model} * ; \\ \u{e9}";
    world.write("messages.json", json!([{ "role": "user", "content": prompt }]).to_string());
    let result = small.json(&["--messages", "messages.json"]);
    let expected = format!("<{prompt}><--model=small><two  words><$(id)><http://localhost:8080><>");
    assert_eq!(result["stdout"], expected, "{result:#}");
}

#[test]
fn messages_file_is_where_the_agent_reads_it_and_is_not_a_change() {
    World::as_everyone(BELLJAR, |world| {
        let small = SmallAgentWorld::shell(
            world,
            "cat .cogni/messages.json; echo; echo $COGNI_MODEL $RUN_ID $HOME; ls -A $HOME/.config/git",
        );
        let document =
            "[ {\"role\": \"system\", \"content\": \"be brief\"},\n {\"role\":\"user\",\"content\":\"hi\"}]";
        world.write("messages.json", document);
        let before = world.picture("project");
        let result = small.json(&["--messages", "messages.json", "--apply"]);
        let run_id = result["run_id"].as_str().unwrap();
        assert_eq!(
            result["stdout"],
            format!("{document}\nsmall {run_id} /home/agent\nignore\n"),
            "{result:#}"
        );
        assert_eq!((&result["changes"]["state"], &result["diff"]), (&json!("none"), &json!("")));
        assert_eq!(world.picture("project"), before);
    });
}

#[test]
fn agent_changes_beside_the_messages_file_are_listed_and_existing_messages_stay() {
    World::as_everyone(BELLJAR, |world| {
        let script =
            "cat .cogni/messages.json >/dev/null; echo note > .cogni/note; rm -f .cogni/messages.json";
        let small = SmallAgentWorld::shell(world, script);
        let own = "[\"the workspace's own\"]";
        world.write("project/.cogni/messages.json", own);
        let result = small.json(&["--apply", "--trust", ".cogni/note"]);
        assert_eq!(result["files"], json!([{ "path": ".cogni/note", "change": "created" }]), "{result:#}");
        assert_eq!(world.read("project/.cogni/messages.json"), own);
        assert_eq!(world.read("project/.cogni/note"), "note\n");
        let rewriting = SmallAgentWorld::shell(world, "echo mine > .cogni/messages.json");
        let result = rewriting.json(&[]);
        let expected = json!([{ "path": ".cogni/messages.json", "change": "modified" }]);
        assert_eq!(result["files"], expected, "the agent's own write is a change");
    });
}

#[test]
fn nothing_is_written_through_a_workspace_symlink() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::shell(&world, "true");
    std::fs::create_dir(world.path().join("elsewhere")).unwrap();
    symlink(world.path().join("elsewhere"), world.path().join("project/.cogni")).unwrap();
    let ran = small.run(&["--json"]);
    assert_eq!(ran.code, 125, "{ran:?}");
    let message = ran.json()["failure"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("something else than a directory at .cogni"), "{message}");
    assert_eq!(std::fs::read_dir(world.path().join("elsewhere")).unwrap().count(), 0);
}

#[test]
fn invalid_messages_are_refused_before_anything_is_made() {
    let world = World::new(BELLJAR);
    let small = SmallAgentWorld::shell(&world, "true");
    for (document, why) in [
        ("{}", "no array"),
        ("[{\"role\":\"root\",\"content\":\"x\"}]", "message 0 is of another role"),
        ("[]", "none of the messages is a user's"),
    ] {
        world.write("messages.json", document);
        let ran = small.run(&["--messages", "messages.json"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(why), "{ran:?}");
    }
    assert!(!world.path().join("state").exists());
}

#[test]
fn agent_sees_nothing_of_the_host_that_it_was_not_given() {
    World::as_everyone(BELLJAR, |world| {
        let script = "env | sort; echo --; ls -A /home/agent; cat \"$HOME/.tool/config\"; echo --; \
                      echo planted-by-the-agent > /tmp/own; \
                      grep -rs planted- /home /workspace /tmp /etc /run /llm-sock /proc/self/environ";
        let row = json!({ "name": "small", "description": "small", "reads_messages": true,
            "argv": ["sh", "-c", script.replace('{', "{{").replace('}', "}}")],
            "env": { "TOOL_URL": "{base_url}/x" }, "files": { ".tool/config": "model = {json:model}\n" } });
        let small = SmallAgentWorld::row(world, &row);
        world.write("key", "planted-on-the-host");
        let mut command = small.command(&["--json"]);
        command.env("LITELLM_MASTER_KEY", "planted-on-the-host").env("OPENAI_API_KEY", "planted-on-the-host");
        let output = command.output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let seen = result["stdout"].as_str().unwrap();
        assert!(
            seen.ends_with("--\n.config\n.tool\nmodel = \"small\"\n--\n/tmp/own:planted-by-the-agent\n"),
            "{seen}"
        );
        assert!(seen.contains("TOOL_URL=http://localhost:8080/x\n") && !seen.contains("_KEY="), "{seen}");
        assert!(!seen.contains(&world.path().display().to_string()), "{seen}");
    });
}

#[test]
fn agent_starts_only_listed_programs() {
    World::as_everyone(BELLJAR, |world| {
        // A list holds for all: the kernel refuses `ls`, whichever program asks.
        let script = "echo begun; ls / > /dev/null 2>&1; echo $?; cat greeting.txt > /dev/null; echo $?";
        let small = SmallAgentWorld::shell(world, script);
        let listed = small.json(&["--programs", "sh,cat"]);
        assert_eq!(listed["stdout"], "begun\n126\n0\n", "{listed:#}");
        // The control: without a list it starts.
        let all = small.json(&[]);
        assert_eq!(all["stdout"], "begun\n0\n0\n", "{all:#}");
    });
}
