//! Files that belljar obeys on the host: no sandbox and no other user can write them.

mod at_use;
mod lent;
mod moved;

use crate::BELLJAR;
use crate::changes::only;
use crate::session::{SessionCleanup, create};
use belljar_testkit::job::{job, shell};
use belljar_testkit::wait::until;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;

/// Writes a configuration whose credential is the output of a program that leaves a mark.
fn configuration(world: &World, name: &str, program: &str) {
    let program = world.path().join(program).display().to_string();
    let config = json!({"inference": {
        "providers": [{"name": "p", "kind": "litellm", "url": "http://127.0.0.1:9", "credential": {"command": [program]}}],
        "models": [{"name": "small", "provider": "p"}],
    }});
    world.write(name, config.to_string());
}

fn program(world: &World, name: &str) {
    let mark = world.path().join("mark").display().to_string();
    let path = world.write(name, format!("#!/bin/sh\necho ran > {mark}\necho sk-0123456789abcdef\n"));
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

fn has_run(world: &World) -> bool {
    world.path().join("mark").exists()
}

fn refused(ran: &ProgramOutput, why: &str) {
    assert!(ran.code == 125 && ran.stderr.contains(why), "{why}: {ran:?}");
}

const CALL: &str = "curl -s --max-time 20 http://127.0.0.1:11434/v1/chat/completions -H 'content-type: application/json' \
                    -d '{\"model\":\"small\",\"messages\":[]}'; true";

#[test]
fn configuration_written_by_a_sandbox_never_runs_a_program_on_the_host() {
    World::as_everyone(BELLJAR, |world| {
        program(world, "project/print");
        program(world, "own/print");
        let silent = world.write("own/silent", "#!/bin/sh\necho sk-0123456789abcdef\n");
        std::fs::set_permissions(silent, PermissionsExt::from_mode(0o755)).unwrap();
        configuration(world, "evil", "project/print");
        configuration(world, "own/config.yaml", "own/print");
        let evil = world.read("evil");
        let write = &format!("cat > belljar.yaml <<'END'\n{evil}\nEND");
        // Without a person's approval no file of that name gets into the project.
        let apply = ["exec", "--workspace-copy", "project", "--apply", "--", "sh", "-c", write];
        let ran = world.run(&apply);
        assert!(ran.code == 3 && ran.stderr.contains("belljar     belljar.yaml"), "{ran:?}");
        let _sessions = SessionCleanup(world);
        let id = create(world, &["--workspace-copy", "project"]);
        crate::session::exec(world, &id, write).succeeded();
        assert_eq!(world.run(&["session", "commit", &id]).code, 3);
        assert!(!world.path().join("project/belljar.yaml").exists());
        // The file in use is recognized by its inode, whatever its name is.
        configuration(world, "project/settings.conf", "own/silent");
        let apply = |name: &str| {
            let script = format!("echo '# more' >> {name}");
            let with = ["exec", "--model", "small", "--config", "project/settings.conf"];
            let on = ["--workspace-copy", "project", "--apply", "--", "sh", "-c", &script];
            world.run(&[&with[..], &on].concat())
        };
        let ran = apply("settings.conf");
        assert!(ran.code == 3 && ran.stderr.contains("Belljar obeys this very file"), "{ran:?}");
        apply("other.conf").succeeded();
        assert!(!has_run(world));
        // The control: the program of a configuration that only the user can write runs.
        let with = ["exec", "--model", "small", "--config", "own/config.yaml", "--workspace", "project"];
        let ran = world.run(&[&with[..], &["--", "sh", "-c", CALL]].concat());
        assert!(has_run(world), "{ran:?}");
    });
}

#[test]
fn files_given_to_a_run_need_approval_when_kept_changes_are_applied_later() {
    let world = World::new(BELLJAR);
    program(&world, "own/silent");
    let with = ["exec", "--model", "small", "--config", "project/settings.conf"];
    let kept = |script: &str| {
        world.write("project/other.conf", "");
        configuration(&world, "project/settings.conf", "own/silent");
        let on = ["--workspace-copy", "project", "--", "sh", "-c", script];
        world.run(&[&with[..], &on].concat()).succeeded();
        only(&world)
    };
    let id = kept("echo '# more' >> settings.conf");
    let document = world.read("project/settings.conf");
    let refused = |options: &[&str]| {
        let ran = world.run(&[&["changes", "apply", &id], options].concat());
        assert!(ran.code == 3 && ran.stderr.contains("Belljar obeys this very file"), "{ran:?}");
    };
    // `changes apply` isn't given that configuration, and still knows that the file is obeyed.
    refused(&[]);
    // Nor after a person's editor has replaced the file.
    std::fs::remove_file(world.path().join("project/settings.conf")).unwrap();
    world.write("project/settings.conf", &document);
    refused(&["--overwrite", "settings.conf"]);
    assert_eq!(world.read("project/settings.conf"), document);
    world.run(&["changes", "rm", &id]).succeeded();
    // The control: a file that isn't obeyed.
    let id = kept("echo '# more' >> other.conf");
    world.run(&["changes", "apply", &id]).succeeded();
    assert_eq!(world.read("project/other.conf"), "# more\n");
}

#[test]
fn configuration_or_its_program_in_a_direct_workspace_is_refused() {
    let world = World::new(BELLJAR);
    program(&world, "project/print");
    program(&world, "own/print");
    configuration(&world, "project/config.yaml", "own/print");
    configuration(&world, "own/names-it.yaml", "project/print");
    configuration(&world, "own/config.yaml", "own/print");
    std::fs::hard_link(world.path().join("project/config.yaml"), world.path().join("own/linked.yaml"))
        .unwrap();
    std::os::unix::fs::symlink("../project/config.yaml", world.path().join("own/link.yaml")).unwrap();
    let exec = |config: &str| {
        let with = ["exec", "--model", "small", "--config", config, "--workspace", "project"];
        world.run(&[&with[..], &["--", "sh", "-c", CALL]].concat())
    };
    for config in ["project/config.yaml", "own/link.yaml", "own/linked.yaml", "own/names-it.yaml"] {
        refused(&exec(config), "lies in the workspace");
        assert!(!has_run(&world), "{config}");
    }
    exec("own/config.yaml").succeeded();
    assert!(has_run(&world));
}

#[test]
fn host_program_variable_that_names_a_workspace_is_refused_in_any_form() {
    let world = World::new(BELLJAR);
    world.write("project/x.js", "");
    world.write("else/x.js", "");
    world.write("home/file", "");
    let place = world.path().display().to_string();
    let server = |name: &str, (variable, value): (&str, &str)| {
        let env = json!({"HOME": format!("{place}/home"), "PLACE": place, variable: value});
        let server =
            json!({"name": "a", "transport": "stdio", "command": "/bin/true", "unsealed": true, "env": env});
        world.write(name, json!({"mcp": {"servers": [server]}}).to_string());
    };
    let lend =
        |config: &str| world.run(&["exec", "--config", config, "--workspace", "project", "--", "true"]);
    let apply = || {
        let with = ["exec", "--config", "own/config.yaml", "--workspace-copy", "project", "--apply"];
        world.run(&[&with[..], &["--", "sh", "-c", "echo more >> helper.txt"]].concat())
    };
    for (name, form) in [
        ("PYTHONPATH", "/srv:PLACE/PROJECT"),
        ("PYTHONPATH", "PLACE/PROJECT"),
        ("NODE_OPTIONS", "--require PLACE/PROJECT/x.js"),
        ("BASH_ENV", "~/../PROJECT/x.js"),
        ("BASH_ENV", "$PLACE/PROJECT/x.js"),
        ("HOME", "PLACE/PROJECT"),
    ] {
        // The variable `PLACE` stays unexpanded.
        let of = |directory: &str| {
            let text = form.replace("PROJECT", directory);
            if text.starts_with('$') { text } else { text.replace("PLACE", &place) }
        };
        server("own/config.yaml", (name, &of("project")));
        refused(&lend("own/config.yaml"), "lies in the workspace");
        // The control.
        server("own/config.yaml", (name, &of("else")));
        lend("own/config.yaml").succeeded();
    }
    apply().succeeded();
    server("own/config.yaml", ("PYTHONPATH", &format!("/srv:{place}/project")));
    let ran = apply();
    assert!(ran.code == 3 && ran.stderr.contains("is given this directory"), "{ran:?}");
}

#[test]
fn configuration_writable_by_another_live_session_is_refused() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("project/policy.yaml", "rules: []");
    world.write("outer/policy.yaml", "rules: []");
    let exec = |file: &str| world.run(&["exec", "--egress", file, "--", "true"]);
    exec("project/policy.yaml").succeeded();
    let id = create(&world, &["--workspace", "project"]);
    refused(&exec("project/policy.yaml"), "lies in the workspace");
    exec("outer/policy.yaml").succeeded();
    world.run(&["session", "end", &id]).succeeded();
    // The keeper exits shortly afterwards.
    until(|| exec("project/policy.yaml").code == 0);
    // The reverse: a file that a session obeys is given to no sandbox.
    let id = create(&world, &["--egress", "outer/policy.yaml"]);
    let lend = || world.run(&["exec", "--workspace", "outer", "--", "true"]);
    refused(&lend(), "lies in the workspace");
    world.run(&["session", "end", &id]).succeeded();
    until(|| lend().code == 0);
}

/// Commands with a workspace that obey a file, which is `FILE` here.
const OBEYING: [&[&str]; 6] = [
    &["exec", "--workspace", ".", "--egress", "FILE", "--", "true"],
    &["run", "--workspace", ".", "--egress", "FILE", "../job.json"],
    &["tools", "call", "shell_command", r#"{"command": "true"}"#, "--workspace", ".", "--egress", "FILE"],
    &["session", "create", "--workspace", ".", "--egress", "FILE", "--name", "one"],
    &["exec", "--model", "small", "--config", "FILE", "--workspace", ".", "--", "true"],
    &["run", "--model", "small", "--config", "FILE", "--workspace", ".", "../of-agent.json"],
];

#[test]
fn policy_beside_the_workspace_is_used_by_whatever_path_it_is_named() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    let mut reaching = job(&json!([]));
    reaching["constraints"]["ext_net_allowed"] = json!(true);
    world.write("job.json", reaching.to_string());
    let mut calling = job(&json!([shell("true")]));
    calling["inference"] = json!({ "allowed_models": ["small"] });
    world.write("of-agent.json", calling.to_string());
    program(&world, "own/print");
    for place in ["project/", "project-of-others/", ""] {
        world.write(&format!("{place}policy.yaml"), "rules: []");
        configuration(&world, &format!("{place}config.yaml"), "own/print");
    }
    std::os::unix::fs::symlink("project", world.path().join("link")).unwrap();
    let absolute = |path: &str| world.path().join(path).display().to_string();
    let beside = ["../", "../project-of-others/", "../project/../", &absolute("project/../")];
    let inside = ["", "../project/", "../project-of-others/../project/", "../link/", &absolute("./link/")];
    for command in OBEYING {
        let name = if command.contains(&"--egress") { "policy.yaml" } else { "config.yaml" };
        let with = |place: &str| {
            let file = format!("{place}{name}");
            let named = command.iter().map(|&argument| if argument == "FILE" { &file } else { argument });
            let mut command = world.command(&named.collect::<Vec<_>>());
            ProgramOutput::from(command.current_dir(world.path().join("project")).output().unwrap())
        };
        for place in beside {
            let ran = with(place);
            assert_eq!(ran.code, 0, "{command:?} {place}: {ran:?}");
            drop(SessionCleanup(&world));
        }
        for place in inside {
            let ran = with(place);
            assert!(
                ran.code == 125 && ran.stderr.contains("lies in the workspace"),
                "{command:?} {place}: {ran:?}"
            );
        }
    }
}

#[test]
fn configuration_writable_by_other_users_is_refused() {
    let world = World::new(BELLJAR);
    let path = world.write("rules/policy.yaml", "rules: []");
    let exec = || world.run(&["exec", "--egress", "rules/policy.yaml", "--", "true"]);
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    for (place, usual) in [(path.as_path(), 0o644), (path.parent().unwrap(), 0o755)] {
        set(place, usual | 0o002);
        refused(&exec(), "other users can write");
        set(place, usual);
        exec().succeeded();
    }
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(4711), None).unwrap();
        refused(&exec(), "belongs to user 4711");
    }
}

#[test]
fn home_with_the_users_configuration_is_not_mounted_into_a_sandbox() {
    let world = World::new(BELLJAR);
    world.write("home/project/file", "");
    let exec = |workspace: &str| {
        let mut command = world.command(&["exec", "--workspace", workspace, "--", "true"]);
        ProgramOutput::from(command.env("HOME", world.path().join("home")).output().unwrap())
    };
    // Also if the file doesn't exist yet: a sandbox could create it.
    refused(&exec("home"), "lies in the workspace");
    exec("home/project").succeeded();
    world.write("home/.config/belljar/config.yaml", "egress: {rules: []}");
    refused(&exec("home/.config"), "lies in the workspace");
    exec("home/project").succeeded();
}

#[test]
fn running_program_is_replaced_only_with_approval_and_its_directory_is_not_mounted() {
    let world = World::new(BELLJAR);
    world.write("project/bin/notes.txt", "a\n");
    world.write("project/other/notes.txt", "a\n");
    let program = world.path().join("project/bin/belljar");
    std::fs::copy(BELLJAR, &program).unwrap();
    let run = |arguments: &[&str], script: &str| {
        let all = [&["exec"], arguments, &["--", "sh", "-c", script]].concat();
        ProgramOutput::from(world.command_of(&program, &all).output().unwrap())
    };
    let copy = ["--workspace-copy", "project", "--apply"];
    let ran = run(&copy, "echo evil >bin/belljar");
    assert!(ran.code == 3 && ran.stderr.contains("bin/belljar"), "{ran:?}");
    assert!(ran.stderr.contains("  belljar "), "{ran:?}");
    refused(&run(&["--workspace", "project"], "true"), "lies in the workspace");
    refused(&run(&["--workspace", "project/bin"], "true"), "lies in the workspace");
    // The controls.
    run(&copy, "echo more >bin/notes.txt").succeeded();
    run(&["--workspace", "project/other"], "true").succeeded();
    world.run(&["exec", "--workspace", "project", "--", "true"]).succeeded();
}
