//! A link or a program that a sandbox may have created doesn't decide which directory is mounted or written.

use super::{at_use, refused};
use crate::BELLJAR;
use crate::agents::small::{CALL, SmallAgentWorld};
use crate::session::{SessionCleanup, create, exec};
use belljar_testkit::wait::until;
use belljar_testkit::world::{ProgramOutput, World};
use std::os::unix::fs::{PermissionsExt, symlink};

const SANDBOXS: &str = "so a sandbox may have made the link";

/// Every way in which a path is mounted or written; `@` stands for it.
const WAYS: [&[&str]; 7] = [
    &["exec", "--workspace", "@", "--", "true"],
    &["exec", "--workspace-copy", "@", "--", "true"],
    &["exec", "--workspace-copy", "@", "--apply", "--", "sh", "-c", "echo new > written"],
    &["exec", "--ro", "@:/lent", "--", "cat", "/lent/key"],
    &["exec", "--ro", "@/key:/lent", "--", "cat", "/lent"],
    &["session", "create", "--workspace", "@"],
    &["session", "create", "--workspace-copy", "@"],
];

fn runs(world: &World, path: &str) -> Vec<ProgramOutput> {
    let with = |way: &&[&str]| -> Vec<String> { way.iter().map(|word| word.replace('@', path)).collect() };
    let run = |words: Vec<String>| world.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    WAYS.iter().map(with).map(run).collect()
}

#[test]
fn symlink_made_by_a_sandbox_is_not_followed_even_after_the_sandbox_ended() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        world.write("project/inner/key", "inner");
        world.write("secret/key", "key of the host");
        let secret = at_use::at(world, "secret");
        let plant = format!("ln -s {secret} out; ln -s inner current");
        world.run(&["exec", "--workspace", "project", "--", "sh", "-c", &plant]).succeeded();
        let all_refused = |path: &str| {
            for (ran, way) in runs(world, path).iter().zip(WAYS) {
                assert!(!ran.stdout.contains("key of the host"), "{way:?}: {ran:?}");
                refused(ran, SANDBOXS);
                assert!(ran.stderr.contains(&secret), "{way:?} names the path to give instead: {ran:?}");
            }
            let new = format!("{path}/new");
            refused(&world.run(&["git", "clone", "https://host.invalid/a.git", &new]), SANDBOXS);
            assert_eq!(std::fs::read_dir(&secret).unwrap().count(), 1);
        };
        all_refused("project/out");
        // Nor by another name of the directory, nor by a link of the user that leads there.
        std::fs::rename(world.path().join("project"), world.path().join("moved")).unwrap();
        symlink(at_use::at(world, "moved"), world.path().join("own")).unwrap();
        all_refused("moved/out");
        all_refused("own/out");
        // The controls: a link that stays in its directory, and the user's own.
        for path in ["moved/current", "own/inner"] {
            for ran in runs(world, path) {
                ran.succeeded();
            }
        }
        symlink(&secret, world.path().join("link")).unwrap();
        let ran = world.run(&["exec", "--ro", "link:/lent", "--", "cat", "/lent/key"]).succeeded();
        assert_eq!(ran.stdout, "key of the host");
    });
}

#[test]
fn symlink_of_a_live_session_or_a_repository_is_not_followed() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("project/file", "");
    world.write("secret/key", "key of the host");
    let id = create(&world, &["--workspace", "project"]);
    exec(&world, &id, &format!("ln -s {} out", at_use::at(&world, "secret"))).succeeded();
    for ran in runs(&world, "project/out") {
        refused(&ran, SANDBOXS);
    }
    // Git reads settings from the directory of a new clone.
    let ran = world.run(&["git", "clone", "https://host.invalid/a.git", "project/new"]);
    refused(&ran, "lies in the workspace");
    // A cloned repository brings its links along; no sandbox has worked there.
    world.write("cloned/.git/HEAD", "");
    symlink("../secret", world.path().join("cloned/out")).unwrap();
    for ran in runs(&world, "cloned/out") {
        refused(&ran, SANDBOXS);
    }
    std::fs::remove_dir_all(world.path().join("cloned/.git")).unwrap();
    for ran in runs(&world, "cloned/out") {
        ran.succeeded();
    }
}

/// Runs an agent that is found by its name in this directory.
fn agent_in(small: &SmallAgentWorld<'_>, directory: &str) -> ProgramOutput {
    let mut command = small.command(&["--discard"]);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", at_use::at(small.world, directory));
    ProgramOutput::from(command.env("PATH", path).output().unwrap())
}

#[test]
fn agent_program_is_loaded_from_no_directory_that_a_sandbox_writes() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    let small = SmallAgentWorld::agent(&world, &["unlisted-agent"]);
    let script = |path: &str, text: &str| {
        let path = world.write(path, format!("#!/usr/bin/env python3\n{text}"));
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    };
    script("own/unlisted-agent", CALL);
    script("tree/bin/unlisted-agent", "print('of the sandbox')\n");
    script("secret/deploy", "TOKEN = 'secret of the host'\nprint(TOKEN)\n");
    let id = create(&world, &["--workspace", "tree"]);
    let ran = agent_in(&small, "tree/bin");
    assert!(ran.stderr.contains("there is no program unlisted-agent") && ran.stdout.is_empty(), "{ran:?}");
    // Nor through a link elsewhere.
    std::fs::create_dir(world.path().join("links")).unwrap();
    symlink(at_use::at(&world, "tree/bin/unlisted-agent"), world.path().join("links/unlisted-agent"))
        .unwrap();
    let ran = agent_in(&small, "links");
    assert!(ran.stderr.contains("lies in the workspace") && ran.stdout.is_empty(), "{ran:?}");
    // Nor does a link that a sandbox left decide which file of the host is mounted.
    let plant = format!("mkdir left; ln -s {} left/unlisted-agent", at_use::at(&world, "secret/deploy"));
    exec(&world, &id, &plant).succeeded();
    world.run(&["session", "end", &id]).succeeded();
    let mut last = None;
    // The keeper exits shortly afterwards.
    until(|| {
        let ran = agent_in(&small, "tree/left");
        let is_told = ran.stderr.contains(SANDBOXS);
        last = Some(ran);
        is_told
    });
    assert!(!format!("{last:?}").contains("secret of the host"), "{last:?}");
    // Nor does the first line of a program that a sandbox left.
    script("tree/script/unlisted-agent", "");
    world.write("tree/script/unlisted-agent", format!("#!{}\n", at_use::at(&world, "secret/deploy")));
    let ran = agent_in(&small, "tree/script");
    assert!(ran.stderr.contains("which a sandbox has written") && ran.stdout.is_empty(), "{ran:?}");
    // The control.
    let ran = agent_in(&small, "own");
    assert!(ran.code == 0 && ran.stdout.contains("hello"), "{ran:?}");
}

/// Accepts connections, and keeps the received data.
const SERVE: &str = "import socket\n\
    server = socket.socket(socket.AF_UNIX)\n\
    server.bind('engine.sock')\n\
    server.listen(8)\n\
    open('ready', 'w').close()\n\
    while True:\n  \
      taken, _ = server.accept()\n  \
      with open('sent', 'a') as sent: sent.write(repr(taken.recv(4096)))\n  \
      taken.close()\n";

#[test]
fn engine_socket_served_by_a_sandbox_is_sent_nothing() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        world.write("project/file", "");
        world.write("own/file", "");
        let id = create(world, &["--workspace", "project"]);
        world.write("project/serve.py", SERVE);
        let serve = "python3 serve.py > log 2>&1 & while ! test -e ready; do sleep 0.01; done";
        exec(world, &id, serve).succeeded();
        let ask = |socket: &str| {
            let with =
                ["exec", "--backend", "docker", "--image", "none", "--docker-socket", socket, "--", "true"];
            world.run(&with)
        };
        refused(&ask("project/engine.sock"), "lies in the workspace");
        std::fs::hard_link(world.path().join("project/engine.sock"), world.path().join("own/linked.sock"))
            .unwrap();
        refused(&ask("own/linked.sock"), "has 2 names");
        std::fs::remove_file(world.path().join("own/linked.sock")).unwrap();
        std::fs::rename(world.path().join("project/engine.sock"), world.path().join("own/moved.sock"))
            .unwrap();
        refused(&ask("own/moved.sock"), "of a sandbox");
        let sent = std::fs::read_to_string(world.path().join("project/sent")).unwrap_or_default();
        assert_eq!(sent.replace("b''", ""), "");
        // The control: a server of the host is used.
        let server = std::os::unix::net::UnixListener::bind(world.path().join("own/engine.sock")).unwrap();
        world.give(&world.path().join("own/engine.sock"));
        let asked = std::thread::spawn(move || {
            let requests = server.incoming().flatten().map(|mut taken| {
                let mut begin = [0; 4];
                std::io::Read::read(&mut taken, &mut begin).map(|_| begin)
            });
            requests.flatten().find(|begin| begin == b"GET ").is_some()
        });
        refused(&ask("own/engine.sock"), "no engine answers");
        assert!(asked.join().unwrap());
    });
}
