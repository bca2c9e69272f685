//! `belljar exec`

use crate::BELLJAR;
use belljar_testkit::world::World;
use std::io::Write;
use std::process::Stdio;

#[test]
fn exit_code_is_the_commands_own() {
    World::as_everyone(BELLJAR, |world| {
        for (script, code) in [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143)] {
            assert_eq!(world.run(&["exec", "--", "sh", "-c", script]).code, code, "{script}");
        }
    });
}

#[test]
fn missing_and_non_executable_programs_have_distinct_exit_codes() {
    let world = World::new(BELLJAR);
    assert_eq!(world.run(&["exec", "--", "no-such-program"]).code, 127);
    assert_eq!(world.run(&["exec", "--", "/etc/passwd"]).code, 126);
}

#[test]
fn timeout_kills_all_processes_including_those_in_another_session() {
    World::as_everyone(BELLJAR, |world| {
        world.write("workspace/marker", "");
        let workspace = world.path().join("workspace");
        let script = "setsid sh -c 'sleep 3; echo survived > /workspace/marker' & sleep 60";
        let workspace_argument = workspace.to_str().unwrap();
        let arguments =
            ["exec", "--timeout", "1s", "--workspace", workspace_argument, "--", "sh", "-c", script];
        assert_eq!(world.run(&arguments).code, 124);
        // Longer than the surviving process would need.
        assert_eq!(world.run(&["exec", "--", "sleep", "4"]).code, 0);
        assert_eq!(world.read("workspace/marker"), "");
    });
}

#[test]
fn input_and_output_pass_through_unchanged() {
    let world = World::new(BELLJAR);
    let mut command = world.command(&["exec", "--", "sh", "-c", "cat; echo error >&2"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let sent: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    let mut input = child.stdin.take().unwrap();
    let to_send = sent.clone();
    let writer = std::thread::spawn(move || input.write_all(&to_send).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert_eq!(output.stdout, sent);
    assert_eq!(output.stderr, b"error\n");
}

#[test]
fn file_input_and_output_are_relayed_and_their_paths_are_hidden_inside() {
    let world = World::new(BELLJAR);
    let input = world.write("secret-name-in", "from a file");
    let output = world.write("secret-name-out", "");
    let mut command = world.command(&["exec", "--", "sh", "-c", "cat; ls -l /proc/self/fd"]);
    command.stdin(std::fs::File::open(input).unwrap());
    command.stdout(std::fs::File::create(output).unwrap());
    assert!(command.status().unwrap().success());
    let written = world.read("secret-name-out");
    assert!(written.starts_with("from a file"), "{written}");
    assert!(!written.contains("secret-name"), "{written}");
}

#[test]
fn sandbox_gets_its_own_terminal() {
    let world = World::new(BELLJAR);
    let inner =
        format!("{BELLJAR} exec -- sh -c 'test -t 0 && test -t 1 && tty && stty -a < /dev/tty | head -n 1'");
    // `script` gives belljar a terminal.
    let mut command = std::process::Command::new("script");
    command.args(["--quiet", "--return", "--command", &inner, "/dev/null"]);
    command.env("BELLJAR_STATE_DIR", world.path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let seen = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{seen}");
    // The first PTY of the sandbox's own devpts, whatever number the host's has.
    assert!(seen.contains("/dev/pts/0"), "{seen}");
}

#[test]
fn variables_are_set_and_none_of_the_host_is_inherited() {
    let world = World::new(BELLJAR);
    let mut command = world.command(&["exec", "--env", "GIVEN=value", "--env", "TAKEN", "--", "env"]);
    let output = command.env("TAKEN", "from here").env("SECRET", "do not leak").output().unwrap();
    let seen = String::from_utf8(output.stdout).unwrap();
    assert!(seen.contains("GIVEN=value\n") && seen.contains("TAKEN=from here\n"), "{seen}");
    assert!(!seen.contains("SECRET") && !seen.contains("BELLJAR_STATE_DIR"), "{seen}");
}

#[test]
fn mounts_are_read_only_and_at_another_path_on_request() {
    World::as_everyone(BELLJAR, |world| {
        let tool = world.write("tool/run", "#!/bin/sh\necho lent\n");
        std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let folder = world.path().join("tool");
        let lend = format!("{}:/opt/tool", folder.display());
        let ran = world.run(&["exec", "--ro", &lend, "--", "sh", "-c", "/opt/tool/run; touch /opt/tool/x"]);
        assert_eq!(ran.stdout, "lent\n", "{}", ran.stderr);
        assert!(ran.stderr.contains("Read-only file system"), "{}", ran.stderr);
        assert!(!folder.join("x").exists());
    });
}

#[test]
fn mount_point_behind_a_workspace_symlink_is_not_created() {
    let world = World::new(BELLJAR);
    world.write("workspace/file", "");
    world.write("lent", "");
    let outside = world.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, world.path().join("workspace/link")).unwrap();
    let workspace = world.path().join("workspace").display().to_string();
    let lend = format!("{}:/workspace/link/planted", world.path().join("lent").display());
    let ran = world.run(&["exec", "--workspace", &workspace, "--ro", &lend, "--", "true"]);
    assert_eq!(ran.code, 125, "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(outside).unwrap().count(), 0);
}

#[test]
fn timings_name_every_stage() {
    let ran = World::new(BELLJAR).run(&["exec", "--timings", "--", "true"]).succeeded();
    for stage in ["clone", "identity", "root", "devices", "network", "landlock", "seccomp", "exec", "total"] {
        assert!(ran.stderr.contains(stage), "{stage} in {}", ran.stderr);
    }
}
