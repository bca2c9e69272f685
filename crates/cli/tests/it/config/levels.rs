//! The access levels with each backend, including the specification's configuration: no backend keeps an agent from the tools
//! of its level, and all of them enforce an allowlist of programs.

use crate::BELLJAR;
use crate::session::{SessionCleanup, list};
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};

/// The default configuration of the contract (`docs/contracts/tools.md#t4`).
const SPECIFIED: &str = include_str!("../../../../sandbox/tests/config/layered.yaml");

const ALL_SUBPROCESS: &str = "sandboxing: {overrides: {terminal: subprocess, code_execution: subprocess}}\n";

/// An agent's tools on a project, with one configuration.
struct ConfiguredProject<'w> {
    world: &'w World,
    /// Options of every call.
    options: Vec<String>,
}

impl ConfiguredProject<'_> {
    fn call(&self, level: &str, tool: &str, arguments: &Value) -> ProgramOutput {
        let arguments = arguments.to_string();
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        let call = ["tools", "call", tool, &arguments, "--json", "--level", level];
        // The lowest level begins with an empty workspace, and so does `custom` here.
        let project: &[&str] = match level {
            "sandboxed" | "custom" => &[],
            _ => &["--workspace", "project"],
        };
        self.world.run(&[&call, project, &options[..]].concat())
    }

    /// Makes a call that the level permits. Returns its result and the messages on standard error.
    fn does(&self, level: &str, tool: &str, arguments: &Value) -> (Value, String) {
        let ran = self.call(level, tool, arguments);
        assert_eq!(ran.code, 0, "{level} {tool}: {ran:?}");
        let told = ran.json();
        assert_eq!(told["status"], "ok", "{level} {tool}: {told}");
        (told["data"].clone(), ran.stderr)
    }

    /// Tries the tools of each level below `elevated`, which has no allowlist of programs, and of `custom` without settings.
    fn works_below_elevated(&self, is_moved: bool) {
        for level in ["sandboxed", "restricted", "standard"] {
            let (written, said) =
                self.does(level, "write_file", &json!({ "path": "new.txt", "content": "x" }));
            assert_eq!(said.contains("in native, because"), is_moved, "{level} {written}: {said}");
            let code = "import os\ntry: os.execv('/usr/bin/id', ['id'])\nexcept OSError as error: print(error.errno)";
            let (ran, _) = self.does(level, "code_runner", &json!({ "language": "python", "code": code }));
            assert_eq!(ran["stdout"], "13\n", "{level}: an unlisted program has started: {ran}");
        }
        let (ran, _) = self.does("standard", "shell_command", &json!({ "command": "ls; id" }));
        assert!(ran["stdout"] == "notes.txt\n" && ran["exit_code"] == 126, "{ran}");
        // The level `custom` without settings permits no tool. The refusal is by rule, not by a backend.
        let refused = self.call("custom", "read_file", &json!({ "path": "notes.txt" }));
        assert!(refused.code == 3 && refused.stdout.contains("permission_denied"), "{refused:?}");
        self.world.run(&["session", "create", "--level", "custom"]).succeeded();
        let sessions = list(self.world);
        assert_eq!(sessions[0]["backend"], "native", "{sessions:?}");
        drop(SessionCleanup(self.world));
    }

    /// The control: without an allowlist, all programs of the configured backend are available.
    fn works_elevated(&self) {
        self.does("elevated", "write_file", &json!({ "path": "new.txt", "content": "x" }));
        let (ran, _) =
            self.does("elevated", "shell_command", &json!({ "command": "cat notes.txt; id -u >/dev/null" }));
        assert!(ran["stdout"] == "one\n" && ran["exit_code"] == 0, "{ran}");
    }
}

fn house<'w>(world: &'w World, configuration: &str, options: &[String]) -> ConfiguredProject<'w> {
    world.write("project/notes.txt", "one\n");
    world.write(".config/belljar/config.yaml", configuration);
    ConfiguredProject { world, options: options.to_vec() }
}

#[test]
fn native_sandboxes_work_at_each_level() {
    let world = World::new(BELLJAR);
    let house = house(&world, "sandboxing: {default_backend: native}\n", &[]);
    house.works_below_elevated(false);
    house.works_elevated();
}

#[test]
fn subprocess_sandboxes_work_at_each_level_and_fall_back_to_native() {
    let world = World::new(BELLJAR);
    let house = house(&world, ALL_SUBPROCESS, &[]);
    house.works_below_elevated(true);
    house.works_elevated();
    let (_, said) = house.does("elevated", "shell_command", &json!({ "command": "true" }));
    assert!(said.contains("because subprocess doesn't contain the code"), "{said}");
}

#[test]
fn specified_configuration_and_its_defaults_work_below_elevated_without_an_engine() {
    let world = World::new(BELLJAR);
    for configuration in [SPECIFIED, "sandboxing: {}\n"] {
        let house = house(&world, configuration, &["--docker-socket".to_owned(), "no-engine".to_owned()]);
        house.works_below_elevated(true);
        // The control: without an allowlist the configured containers are used, and there is no engine for them.
        let refused = house.call("elevated", "shell_command", &json!({ "command": "true" }));
        assert!(refused.stdout.contains("the docker backend is not available"), "{refused:?}");
    }
}

#[test]
fn specified_configuration_works_with_containers_at_each_level() {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip("specified_configuration_works_with_containers_at_each_level", &reason),
    };
    let world = World::new(BELLJAR);
    let options = ["--docker-socket".to_owned(), engine.socket().display().to_string()];
    let specified = SPECIFIED.replace("synthorg-sandbox:latest", IMAGE);
    let containers =
        format!("sandboxing: {{default_backend: docker, docker: {{image: '{IMAGE}', mount_mode: rw}}}}\n");
    for configuration in [&specified, &containers] {
        let house = house(&world, configuration, &options);
        house.works_below_elevated(true);
        house.works_elevated();
    }
}

/// An agent that is configured as `elevated`, and has the level that it earns.
const EARNING: &str = "
tool_access: {agents: [{name: worker, level: elevated, autonomy: full}]}
trust:
  strategy: milestone
  initial_level: sandboxed
  milestones: {sandboxed_to_restricted: {tasks_completed: 2, quality_score_min: 7.0}}
";

#[test]
fn agent_demoted_by_trust_still_calls_tools_of_its_lower_level() {
    let world = World::new(BELLJAR);
    world.write(".config/belljar/config.yaml", format!("{SPECIFIED}{EARNING}"));
    let event = json!({ "type": "agent_hired" }).to_string();
    world.run(&["trust", "record", "worker", &event]).succeeded();
    let set = |level: &str| world.run(&["trust", "set", "worker", level, "--reason", "of tests"]).succeeded();
    let call = |tool: &str, arguments: Value| {
        let arguments = arguments.to_string();
        let whose = ["--agent", "worker", "--docker-socket", "no-engine"];
        world.run(&[&["tools", "call", tool, &arguments, "--json"], &whose[..]].concat())
    };
    let shell = || call("shell_command", json!({ "command": "echo there" }));
    let works = |level: &str| {
        let shown = world.run(&["policy", "show", "--agent", "worker", "--json"]).succeeded().json();
        assert_eq!(shown["level"], level, "{shown}");
        let written = call("write_file", json!({ "path": "new.txt", "content": "x" })).succeeded();
        assert_eq!(written.json()["status"], "ok", "{level}: {written:?}");
        let code = json!({ "language": "python", "code": "print(6 * 7)" });
        let ran = call("code_runner", code).succeeded();
        assert_eq!(ran.json()["data"]["stdout"], "42\n", "{level}: {ran:?}");
    };
    set("standard");
    works("standard");
    assert_eq!(shell().succeeded().json()["data"]["stdout"], "there\n");
    set("sandboxed");
    works("sandboxed");
    // The control: a level that is lost is lost.
    let refused = shell();
    assert!(refused.code == 3 && refused.stdout.contains("permission_denied"), "{refused:?}");
}

/// An agent with the level `custom`: these tools, and no allowlist of programs.
const CUSTOM: &str = "
tool_access:
  agents:
    - name: own
      level: custom
      allowed: [read_file, write_file, shell_command, code_runner]
      sub_constraints: {file_system: project_directory, terminal: full, code_execution: process}
      autonomy: full
";

/// Calls that agent's tools, all of which are in that backend.
fn works_at_a_custom_level(world: &World, backend: &str, sandboxing: &str, options: &[&str]) {
    let _sessions = SessionCleanup(world);
    world.write("project/notes.txt", "one\n");
    world.write(".config/belljar/config.yaml", format!("{sandboxing}{CUSTOM}"));
    let call = |tool: &str, arguments: Value, more: &[&str]| {
        let arguments = arguments.to_string();
        let whose = ["tools", "call", tool, &arguments, "--json", "--agent", "own"];
        world.run(&[&whose[..], options, more].concat())
    };
    let new = json!({ "path": "new.txt", "content": "two" });
    let written = call("write_file", new, &["--workspace", "project", "--keep"]).succeeded();
    assert_eq!(written.json()["status"], "ok", "{backend}: {written:?}");
    let kept = list(world).remove(0);
    assert_eq!(kept["backend"], backend, "{kept}");
    let session = ["--session", kept["id"].as_str().unwrap()];
    let ran =
        call("shell_command", json!({ "command": "cat notes.txt new.txt; id -u >/dev/null" }), &session);
    let told = ran.succeeded().json();
    assert_eq!(
        (&told["data"]["stdout"], &told["data"]["exit_code"]),
        (&json!("one\ntwo"), &json!(0)),
        "{backend}: {told}"
    );
    let code = json!({ "language": "bash", "code": "cat notes.txt" });
    let told = call("code_runner", code, &session).succeeded().json();
    assert_eq!(told["data"]["stdout"], "one\n", "{backend}: {told}");
    // The control: a tool that isn't on its list.
    let refused = call("list_directory", json!({ "path": "." }), &session);
    assert!(refused.code == 3 && refused.stdout.contains("permission_denied"), "{backend}: {refused:?}");
}

#[test]
fn agent_of_a_custom_level_works_in_native_and_subprocess_sandboxes() {
    for (backend, sandboxing) in
        [("native", "sandboxing: {default_backend: native}\n"), ("subprocess", ALL_SUBPROCESS)]
    {
        works_at_a_custom_level(&World::new(BELLJAR), backend, sandboxing, &[]);
    }
}

#[test]
fn agent_of_a_custom_level_works_in_containers() {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip("agent_of_a_custom_level_works_in_containers", &reason),
    };
    let socket = engine.socket().display().to_string();
    let containers =
        format!("sandboxing: {{default_backend: docker, docker: {{image: '{IMAGE}', mount_mode: rw}}}}\n");
    works_at_a_custom_level(&World::new(BELLJAR), "docker", &containers, &["--docker-socket", &socket]);
}
