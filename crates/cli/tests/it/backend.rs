//! `--backend`: sandboxes that need more than this kernel.

use crate::BELLJAR;
use crate::models::configure;
use crate::session::{SessionCleanup, exec, keeper_of, list};
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::skip::skip;
use belljar_testkit::wait::until;
use belljar_testkit::world::{ProgramOutput, World};
use std::io::Write;
use std::process::Stdio;

const CREATE: &[&str] = &["session", "create"];
const EXEC: &[&str] = &["exec"];

fn refused(ran: &ProgramOutput, why: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (125, ""), "{ran:?}");
    assert!(ran.stderr.contains(why), "{ran:?}");
}

#[test]
fn unknown_backends_and_options_of_another_backend_are_refused() {
    let world = World::new(BELLJAR);
    for (command, program) in [(CREATE, &[][..]), (EXEC, &["--", "true"])] {
        let run = |options: &[&str]| world.run(&[command, options, program].concat());
        refused(&run(&["--backend", "podman"]), "[possible values: native, docker, subprocess]");
        refused(&run(&["--backend", "docker"]), "--image <IMAGE>");
        refused(&run(&["--backend", "docker", "--image=--privileged"]), "invalid image name");
        refused(&run(&["--backend", "docker", "--image=-v /:/host"]), "invalid image name");
        refused(&run(&["--image", IMAGE]), "--image is for --backend docker");
        refused(
            &run(&["--backend", "subprocess", "--docker-socket", "x"]),
            "--docker-socket is for --backend docker",
        );
    }
    let ran = world.run(&["exec", "--backend", "subprocess", "--timings", "--", "true"]);
    refused(&ran, "--timings is for the native backend, not for subprocess");
    assert!(!world.path().join("state").exists());
}

#[test]
fn missing_engine_is_reported_with_a_hint() {
    World::as_everyone(BELLJAR, |world| {
        let docker = ["--backend", "docker", "--image", IMAGE, "--docker-socket", "no-engine"];
        for (command, program) in [(CREATE, &[][..]), (EXEC, &["--", "true"])] {
            let ran = world.run(&[command, &docker, program].concat());
            refused(&ran, "the docker backend is not available: no engine answers at ");
            assert!(
                ran.stderr.contains("/no-engine") && ran.stderr.contains("\nHint: with --backend native")
            );
        }
    });
}

#[test]
fn limit_that_the_backend_cannot_enforce_is_refused() {
    World::as_everyone(BELLJAR, |world| {
        let subprocess = ["exec", "--backend", "subprocess"];
        let run = |options: &[&str]| world.run(&[&subprocess, options, &["--", "true"]].concat());
        for (option, layer) in [("--memory=1g", "memory_limit"), ("--pids=100", "process_limit")] {
            refused(&run(&[option]), &format!("the subprocess backend can't give {layer}"));
        }
        refused(&run(&["--require", "network_namespace"]), "can't give network_namespace");
        assert_eq!(run(&["--memory=none", "--open-files=100"]).code, 0);
    });
}

#[test]
fn command_and_session_run_without_namespaces() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        world.write("source/file", "before\n");
        let subprocess = ["--backend", "subprocess", "--workspace-copy", "source"];
        exec_tells_and_applies(world, &subprocess);
        let id = world.run(&[CREATE, &subprocess].concat()).succeeded().stdout.trim().to_owned();
        assert_eq!(exec(world, &id, "cat file; echo more > file").succeeded().stdout, "after\n");
        changes_are_told_committed_and_undone(world, &id, "subprocess");
        world.run(&["session", "end", "--discard", &id]).succeeded();
        assert_eq!(world.read("source/file"), "after\n");
        assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
    });
}

/// Changes `source/file` from `before` to `after`.
fn exec_tells_and_applies(world: &World, backend: &[&str]) {
    let run =
        |options: &[&str], script| world.run(&[EXEC, backend, options, &["--", "sh", "-c", script]].concat());
    let ran = run(&[], "cat file; echo after > file; echo said >&2; exit 3");
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "before\n"), "{ran:?}");
    assert!(ran.stderr.contains("said\n") && ran.stderr.contains("+after"), "{ran:?}");
    assert!(ran.stderr.contains("The changes are kept as "), "{ran:?}");
    world.run(&["changes", "rm", &crate::changes::only(world)]).succeeded();
    assert_eq!(world.read("source/file"), "before\n");
    // A background process is stopped before changes are reported, and is gone afterwards.
    let ran = run(&["--apply"], "echo after > file; (while :; do echo x >> other; done) & exit 0");
    assert!(ran.succeeded().stderr.contains("applied"));
    assert_eq!(world.read("source/file"), "after\n");
    // A change that requires a missing approval isn't lost.
    let ran = run(&["--apply"], "echo 'all:' > Makefile");
    assert!(ran.code == 3 && ran.stderr.contains("build       Makefile"), "{ran:?}");
    let id = crate::changes::only(world);
    assert!(ran.stderr.contains(&format!("The changes are kept as {id}")), "{ran:?}");
    assert!(!world.path().join("source/Makefile").exists());
    world.run(&["changes", "apply", &id, "--trust", "Makefile"]).succeeded();
    assert_eq!(world.read("source/Makefile"), "all:\n");
    std::fs::remove_file(world.path().join("source/Makefile")).unwrap();
    assert_eq!(crate::changes::folders(world), Vec::<String>::new());
    run(&["--apply", "--trust", "Makefile"], "echo 'all:' > Makefile").succeeded();
    std::fs::remove_file(world.path().join("source/Makefile")).unwrap();
    assert_eq!(run(&[], "kill -TERM $$").code, 143);
    assert_eq!(run(&["--timeout", "1s"], "sleep 600").code, 124);
    let program = |name| world.run(&[EXEC, backend, &["--", name]].concat()).code;
    assert_eq!((program("no-such-program"), program("/etc/passwd")), (127, 126));
}

/// The model is called through the container's own sockets, which the host serves.
fn models_are_called_from_a_container(world: &World, docker: &[&str]) {
    const CALL: &str = r#"exec perl -MIO::Socket::INET -e '
        my $to = IO::Socket::INET->new(PeerAddr => "127.0.0.1:8080") or die;
        my $body = q({"model": "small", "messages": []});
        print $to "POST /v1/chat/completions HTTP/1.0\r\nContent-Length: ", length $body, "\r\n\r\n$body";
        print <$to>'"#;
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(world, &server);
    let models = ["--model", "small", "--config", &config];
    let ran = world.run(&[EXEC, docker, &models, &["--", "sh", "-c", CALL]].concat()).succeeded();
    assert!(ran.stdout.starts_with("HTTP/1.1 200 OK") && ran.stdout.contains("hello"), "{ran:?}");
    assert!(ran.stderr.contains("1 call of models, "), "{ran:?}");
    assert_eq!(server.request_count(), 1);
    world.run(&["audit", "verify"]).succeeded();
    let without = world.run(&[EXEC, docker, &["--", "sh", "-c", CALL]].concat());
    assert_ne!(without.code, 0, "{without:?}");
}

/// A session on a copy of `source`, in whose `file` it has written `more`, reports its changes, commits them, and discards
/// them.
fn changes_are_told_committed_and_undone(world: &World, id: &str, backend: &str) {
    let changed = || {
        let told = world.run(&["session", "diff", id, "--json"]).succeeded().json();
        let files = told["files"].as_array().unwrap().iter();
        files.map(|file| format!("{} {}", file["change"], file["path"]).replace('"', "")).collect::<Vec<_>>()
    };
    let in_session = |script| exec(world, id, script).succeeded().stdout;
    assert_eq!(changed(), ["modified file"]);
    world.run(&["session", "commit", id]).succeeded();
    let committed = world.read("source/file");
    assert!(committed.ends_with("more\n") && changed().is_empty(), "{committed}");
    // Later changes of the source by others are no changes of the session, not even after its commit.
    world.write("source/theirs", "theirs\n");
    world.write("source/file", "theirs\n");
    assert!(changed().is_empty());
    assert_eq!(in_session("cat file"), committed);
    // Neither side's work is lost when both change a file.
    in_session("echo ours > file; echo n > new; rm -f gone");
    assert_eq!(changed(), ["modified file", "created new"]);
    let refused = world.run(&["session", "commit", id]);
    assert!(refused.code == 125 && refused.stderr.contains("changed in the meantime: file"), "{refused:?}");
    assert_eq!(world.read("source/file"), "theirs\n");
    world.run(&["session", "discard", id, "file"]).succeeded();
    assert_eq!((in_session("cat file").as_str(), changed()), ("theirs\n", vec!["created new".to_owned()]));
    in_session("sleep 600 > /dev/null 2>&1 &");
    assert_eq!(world.run(&["session", "discard", id]).code, 125);
    world.run(&["session", "discard", id, "--force"]).succeeded();
    assert!(changed().is_empty());
    in_session("! test -e new && ! test -e theirs");
    let ran = world.run(&["session", "fork", id]);
    refused_fork(&ran);
    let listed = list(world);
    assert_eq!((listed.len(), &listed[0]["backend"]), (1, &backend.into()));
    std::fs::remove_file(world.path().join("source/theirs")).unwrap();
    world.write("source/file", "after\n");
}

fn refused_fork(ran: &ProgramOutput) {
    refused(ran, "cannot fork: the session must have exactly one sandbox, made by the native backend");
}

#[test]
fn command_and_session_run_in_a_container_of_an_image() {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip("command_and_session_run_in_a_container_of_an_image", &reason),
    };
    let world = &World::new(BELLJAR);
    let _sessions = SessionCleanup(world);
    let socket = engine.socket().display().to_string();
    let docker = ["--backend", "docker", "--image", IMAGE, "--docker-socket", &socket];
    let containers = || engine.command(&["ps", "--all", "--quiet"]).unwrap().lines().count();
    world.write("source/file", "before\n");
    let copy = [&docker[..], &["--workspace-copy", "source"]].concat();
    exec_tells_and_applies(world, &copy);
    let on_disk = |most: &str, then: &str| {
        let fill = format!("dd if=/dev/zero of=big bs=1M count=200 2>/dev/null; {then}");
        let command = ["--disk", most, "--workspace-copy", "source", "--", "sh", "-c", &fill];
        world.run(&[EXEC, &docker, &command].concat())
    };
    // Disk usage is checked at intervals: up to 5 s while other tests give as much of the disk back as it takes.
    let ran = on_disk("64m", "sleep 60");
    assert!(ran.code != 0 && ran.stderr.contains("disk"), "{ran:?}");
    // The control: a quota that suffices.
    on_disk("1g", "sleep 1").succeeded();
    let ran = world.run(
        &[EXEC, &docker[..2], &["--image", "no-such/image", "--docker-socket", &socket, "--", "true"]]
            .concat(),
    );
    refused(&ran, "the engine has no image no-such/image");
    models_are_called_from_a_container(world, &docker);
    assert_eq!(containers(), 0);

    let id =
        world.run(&[CREATE, &copy, &["-e", "GIVEN=value"]].concat()).succeeded().stdout.trim().to_owned();
    let ran = exec(world, &id, "cat file; echo $GIVEN; cat /etc/debian_version; echo more > file; exit 3");
    assert_eq!(ran.code, 3);
    assert!(ran.stdout.starts_with("after\nvalue\n12."), "{ran:?}");
    assert_eq!(exec(world, &id, "cat file").succeeded().stdout, "more\n");
    input_passes_through_and_a_caller_that_goes_takes_its_command_along(world, &id);
    changes_are_told_committed_and_undone(world, &id, "docker");
    assert_eq!(containers(), 1);
    world.run(&["session", "end", "--discard", &id]).succeeded();
    assert_eq!((containers(), world.read("source/file").as_str()), (0, "after\n"));

    // The sandbox of a killed keeper ends by itself, and the next command removes its files.
    let id = world.run(&[CREATE, &docker].concat()).succeeded().stdout.trim().to_owned();
    let keeper = keeper_of(&world.path().join("state/runs").join(&id));
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
    until(|| engine.command(&["ps", "--quiet"]).unwrap().is_empty());
    world.run(&[EXEC, &docker, &["--", "true"]].concat()).succeeded();
    assert_eq!(containers(), 0);
    assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
}

fn input_passes_through_and_a_caller_that_goes_takes_its_command_along(world: &World, id: &str) {
    let mut cat = world
        .command(&["session", "exec", id, "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    cat.stdin.take().unwrap().write_all(b"through").unwrap();
    assert_eq!(ProgramOutput::from(cat.wait_with_output().unwrap()).succeeded().stdout, "through");
    let sleeps = || exec(world, id, "grep -qs ^sleep /proc/[0-9]*/cmdline").code == 0;
    let mut caller = world.command(&["session", "exec", id, "--", "sleep", "600"]).spawn().unwrap();
    until(sleeps);
    caller.kill().unwrap();
    caller.wait().unwrap();
    until(|| !sleeps());
}
