//! Files that a configuration or a policy names are checked again when they are used: a sandbox could have created a missing
//! one.

use super::{CALL, has_run, program, refused};
use crate::BELLJAR;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a configuration with a model whose credential has this source.
fn configuration(world: &World, name: &str, credential: &Value) {
    let config = json!({"inference": {
        "providers": [{"name": "p", "kind": "litellm", "url": "http://127.0.0.1:9", "credential": credential}],
        "models": [{"name": "small", "provider": "p"}],
    }});
    world.write(name, config.to_string());
}

/// Runs `before` in a sandbox that writes the project, and then calls the model.
fn ask(world: &World, config: &str, before: &str, variables: &[(&str, String)]) -> ProgramOutput {
    let script = format!("{before}\n{CALL}");
    let with =
        ["exec", "--model", "small", "--config", config, "--workspace", ".", "--", "sh", "-c", &script];
    let mut command = world.command(&with);
    command.current_dir(world.path().join("project")).envs(variables.iter().cloned());
    ProgramOutput::from(command.output().unwrap())
}

pub(super) fn at(world: &World, name: &str) -> String {
    world.path().join(name).display().to_string()
}

/// Returns a script that writes a program to the workspace, which leaves a mark.
fn planted(world: &World, name: &str) -> String {
    let mark = at(world, "mark");
    format!(
        "mkdir -p $(dirname {name}); printf '#!/bin/sh\\necho ran > {mark}\\necho sk-0123456789abcdef\\n' > {name}; \
         chmod 755 {name}"
    )
}

#[test]
fn credential_command_that_a_sandbox_wrote_is_not_run_on_the_host() {
    let world = World::new(BELLJAR);
    world.write("project/file", "");
    program(&world, "own/print");
    let config = &at(&world, "own/config.yaml");
    let project = at(&world, "project");
    let search_path = |first: &str| format!("{project}/{first}:{}", std::env::var("PATH").unwrap());
    let shell = |script: String| json!({"command": ["sh", "-c", script]});
    // Each file is missing at the start.
    for (credential, planted) in [
        (json!({"command": [format!("{project}/tok")]}), "tok"),
        (json!({"command": ["sh", format!("{project}/tok")]}), "tok"),
        (json!({"command": ["env", format!("--chdir={project}"), "./tok"]}), "tok"),
        (shell(format!(". {project}/tok")), "tok"),
        (shell(format!("cd {project} && ./tok")), "tok"),
        (shell(format!(". ${{NONE:-{project}/tok}}")), "tok"),
        (json!({"command": ["sh", "-c", format!(". \\{project}/tok")]}), "tok"),
        (shell(". ${HOME}/project/tok; echo".to_owned()), "tok"),
        (shell(". \"${HOME%/}\"/project/tok".to_owned()), "tok"),
        (shell(". ~/pro[j]ect/tok".to_owned()), "tok"),
    ] {
        configuration(&world, "own/config.yaml", &credential);
        let ran = ask(&world, config, &self::planted(&world, planted), &[]);
        assert!(!has_run(&world), "{credential}: {ran:?}");
        let _ = std::fs::remove_file(world.path().join("project/tok"));
    }
    // A bare name is searched for when it is run.
    configuration(&world, "own/config.yaml", &json!({"command": ["tok-of-venv"]}));
    let variables = [("PATH", search_path(".venv/bin"))];
    ask(&world, config, &planted(&world, ".venv/bin/tok-of-venv"), &variables);
    assert!(!has_run(&world));
    // Nor do its child processes come from there: not by the working directory, the search path or a variable.
    let own = "#!/usr/bin/env unlisted-interpreter\n";
    let path = world.write("own/script", own);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    configuration(&world, "own/config.yaml", &json!({"command": [at(&world, "own/script")]}));
    ask(&world, config, &planted(&world, "bin/unlisted-interpreter"), &[("PATH", search_path("bin"))]);
    assert!(!has_run(&world));
    configuration(
        &world,
        "own/config.yaml",
        &json!({"command": ["python3", "-c", "import keyring_of_nobody"]}),
    );
    let module = format!("echo 'open(\"{}\", \"w\")' > keyring_of_nobody.py", at(&world, "mark"));
    ask(&world, config, &module, &[]);
    assert!(!has_run(&world));
    ask(&world, config, &module, &[("PYTHONPATH", project.clone())]);
    assert!(!has_run(&world));
    // The control: a program out of the sandbox's reach runs, also by its name.
    configuration(&world, "own/config.yaml", &json!({"command": ["print"]}));
    let beside = format!("{}:{}", at(&world, "own"), search_path("bin"));
    ask(&world, config, "true", &[("PATH", beside)]).succeeded();
    assert!(has_run(&world));
}

#[test]
fn credential_file_that_a_sandbox_wrote_is_not_read() {
    let world = World::new(BELLJAR);
    world.write("project/file", "");
    world.write("own/key", "sk-0123456789abcdef");
    let config = &at(&world, "own/config.yaml");
    let told = |credential: &Value, before: &str| {
        configuration(&world, "own/config.yaml", credential);
        let ran = ask(&world, config, before, &[]);
        format!("{}{}", ran.stdout, ran.stderr)
    };
    let key = at(&world, "own/key");
    let linked = told(&json!({"file": at(&world, "project/key")}), &format!("ln -s {key} key"));
    let own = told(&json!({"file": key}), "true");
    // No server listens there, which shows only after a credential is available.
    assert!(own.contains("provider_unreachable"), "{own}");
    assert!(linked.contains("lies in the workspace"), "{linked}");
}

#[test]
fn files_named_by_a_policy_are_checked_like_those_of_a_configuration() {
    let world = World::new(BELLJAR);
    program(&world, "project/print");
    program(&world, "own/print");
    world.write("project/ca.pem", "");
    world.write("own/open", "sk-0123456789abcdef");
    std::fs::set_permissions(world.path().join("own/open"), PermissionsExt::from_mode(0o666)).unwrap();
    let credential = |from: Value| {
        json!({
            "rules": [{"host": "localhost", "credentials": ["house"]}],
            "credentials": [{"name": "house", "from": from}],
        })
    };
    let exec = |policy: &Value| {
        world.write("own/policy.yaml", policy.to_string());
        let with = ["exec", "--egress", "own/policy.yaml", "--workspace", "project", "--", "true"];
        world.run(&with)
    };
    for name in ["project/print", "project/missing"] {
        refused(&exec(&credential(json!({"command": [at(&world, name)]}))), "lies in the workspace");
        refused(&exec(&credential(json!({"file": at(&world, name)}))), "lies in the workspace");
    }
    refused(
        &exec(&json!({"rules": [], "authorities": at(&world, "project/ca.pem")})),
        "lies in the workspace",
    );
    refused(&exec(&credential(json!({"file": at(&world, "own/open")}))), "other users can write");
    // The control.
    let ran = exec(&credential(json!({"command": [at(&world, "own/print")]})));
    ran.succeeded();
}

#[test]
fn configuration_in_a_search_location_is_created_only_with_approval() {
    let world = World::new(BELLJAR);
    world.write("dotfiles/file", "");
    world.write("own/file", "");
    let apply = |directory: &str, path: &str, variables: &[(&str, String)]| {
        let script = format!("mkdir -p $(dirname {path}); echo 'egress: {{rules: []}}' > {path}");
        let mut command =
            world.command(&["exec", "--workspace-copy", directory, "--apply", "--", "sh", "-c", &script]);
        ProgramOutput::from(command.envs(variables.iter().cloned()).output().unwrap())
    };
    let asked = |ran: &ProgramOutput| ran.code == 3 && ran.stderr.contains("Belljar obeys");
    let of_user = [("XDG_CONFIG_HOME", at(&world, "dotfiles"))];
    let ran = apply("dotfiles", "belljar/config.yaml", &of_user);
    assert!(asked(&ran), "{ran:?}");
    // Nor through a link in the place of its directory.
    let link = "ln -s elsewhere belljar; mkdir elsewhere; echo 'egress: {rules: []}' > elsewhere/config.yaml";
    let mut command =
        world.command(&["exec", "--workspace-copy", "dotfiles", "--apply", "--", "sh", "-c", link]);
    let ran = ProgramOutput::from(command.envs(of_user.iter().cloned()).output().unwrap());
    assert!(asked(&ran), "{ran:?}");
    let named = [("BELLJAR_CONFIG", at(&world, "own/my.cfg"))];
    // A configuration that is named and missing is an error, so no sandbox runs that could create it.
    assert_eq!(apply("own", "my.cfg", &named).code, 125);
    world.write("own/my.cfg", "audit: {anchors: []}");
    let ran = apply("own", "my.cfg", &named);
    assert!(asked(&ran), "{ran:?}");
    // Files that a discovered configuration names count, too, even if it is missing.
    configuration(&world, "etc/belljar/config.yaml", &json!({"command": ["sh", at(&world, "own/tok")]}));
    let found = [("XDG_CONFIG_HOME", at(&world, "etc"))];
    let ran = apply("own", "tok", &found);
    assert!(asked(&ran), "{ran:?}");
    // The control: other names beside them.
    apply("dotfiles", "belljar/other.yaml", &of_user).succeeded();
    apply("own", "other.cfg", &named).succeeded();
    assert!(world.path().join("own/other.cfg").exists());
    assert_eq!(world.read("own/my.cfg"), "audit: {anchors: []}");
}

#[test]
fn program_that_another_user_can_put_on_the_search_path_is_not_run() {
    let world = World::new(BELLJAR);
    world.write("project/file", "");
    let path = world.write("own/script", "#!/bin/sh\nunlisted-helper\n");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    program(&world, "shared/unlisted-helper");
    configuration(&world, "own/config.yaml", &json!({"command": [at(&world, "own/script")]}));
    let asked = |mode| {
        std::fs::set_permissions(world.path().join("shared"), PermissionsExt::from_mode(mode)).unwrap();
        let search_path = format!("{}:{}", at(&world, "shared"), std::env::var("PATH").unwrap());
        ask(&world, &at(&world, "own/config.yaml"), "true", &[("PATH", search_path)])
    };
    // With the sticky bit other users can't replace files, but create new ones.
    for mode in [0o777, 0o1777] {
        asked(mode);
        assert!(!has_run(&world), "{mode:o}");
    }
    asked(0o755);
    assert!(has_run(&world));
}

#[test]
fn provider_socket_served_by_a_sandbox_is_refused() {
    let world = World::new(BELLJAR);
    world.write("project/file", "");
    world.write("own/file", "");
    let asked = |place: &str| {
        let config = json!({"inference": {
            "providers": [{"name": "p", "kind": "litellm", "url": format!("unix:{}", at(&world, place))}],
            "models": [{"name": "small", "provider": "p"}],
        }});
        world.write("own/config.yaml", config.to_string());
        let path = world.path().join(place);
        let _ = std::fs::remove_file(&path);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let asking = std::thread::scope(|scope| {
            let accepted = scope.spawn(|| {
                let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
                while std::time::Instant::now() < deadline {
                    if listener.accept().is_ok() {
                        return true;
                    }
                    if std::fs::metadata(world.path().join("own/over")).is_ok() {
                        return false;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                false
            });
            let ran = ask(&world, &at(&world, "own/config.yaml"), "true", &[]);
            world.write("own/over", "");
            (accepted.join().unwrap(), ran)
        });
        std::fs::remove_file(world.path().join("own/over")).unwrap();
        asking
    };
    let (reached, ran) = asked("project/llm.sock");
    assert!(!reached, "{ran:?}");
    // The control.
    let (reached, ran) = asked("own/llm.sock");
    assert!(reached, "{ran:?}");
}

#[test]
fn apply_changes_belljars_own_files_only_with_approval() {
    let world = World::new(BELLJAR);
    let apply = |path: &str| {
        let script = format!("mkdir -p $(dirname {path}); echo changed > {path}");
        let mut command =
            world.command(&["exec", "--workspace-copy", "home", "--apply", "--", "sh", "-c", &script]);
        ProgramOutput::from(
            command.env("BELLJAR_STATE_DIR", world.path().join("home/state")).output().unwrap(),
        )
    };
    world.write("home/file", "");
    apply("first").succeeded();
    assert!(world.path().join("home/state").is_dir());
    for path in ["state/agents.db", "state/git/a/repository.git/config"] {
        let ran = apply(path);
        assert!(ran.code == 3 && !world.path().join("home").join(path).exists(), "{path}: {ran:?}");
    }
    // The control.
    apply("stately").succeeded();
}

#[test]
fn part_of_a_workspace_mounted_elsewhere_is_detected() {
    let world = World::new(BELLJAR);
    if !rustix::process::geteuid().is_root() {
        belljar_testkit::skip::skip("obeyed by mount", "mounting needs root");
        return;
    }
    world.write("project/conf/policy.yaml", "rules: []");
    world.write("own/mounted/none", "");
    world.write("project/links/none", "");
    world.write("elsewhere/policy.yaml", "rules: []");
    let exec = |source: &str| exec_mounted(&world, source, "own/mounted");
    refused(&exec("project/conf"), "lies in the workspace");
    exec("elsewhere").succeeded();
    // Nor through a link there that a sandbox may have created.
    std::os::unix::fs::symlink(
        at(&world, "elsewhere/policy.yaml"),
        world.path().join("project/links/policy.yaml"),
    )
    .unwrap();
    refused(&exec("project/links"), "lies in the workspace");
    // Nor by a bind mount of the file alone.
    std::fs::remove_dir_all(world.path().join("own/mounted")).unwrap();
    world.write("own/mounted/policy.yaml", "rules: []");
    let exec_file = |source: &str| exec_mounted(&world, source, "own/mounted/policy.yaml");
    refused(&exec_file("project/conf/policy.yaml"), "lies in the workspace");
    exec_file("elsewhere/policy.yaml").succeeded();
}

/// Runs a command that obeys a policy, in a mount namespace in which `source` is mounted on `place`.
fn exec_mounted(world: &World, source: &str, place: &str) -> ProgramOutput {
    let (source, place) = (at(world, source), at(world, place));
    let run = world.command(&[
        "exec",
        "--egress",
        "own/mounted/policy.yaml",
        "--workspace",
        "project",
        "--",
        "true",
    ]);
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount --bind \"$0\" \"$1\" && shift && exec \"$@\"", &source, &place]);
    command.arg(run.get_program()).args(run.get_args());
    for (name, value) in run.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.current_dir(run.get_current_dir().unwrap_or(Path::new("/")));
    ProgramOutput::from(command.output().unwrap())
}
