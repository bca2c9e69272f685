//! The reviewed content is the written content, whatever a program in the sandbox does meanwhile.

use crate::BELLJAR;
use crate::session::{SessionCleanup, create, exec};
use belljar_testkit::terminal::at_a_terminal;
use belljar_testkit::wait::until;
use belljar_testkit::world::{ProgramOutput, World};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;

/// Writes harmless changes, and others as soon as a file named `flip` exists, or when it is continued after a pause.
const FLIP: &str = r#"
import os, signal, sys, time
os.chdir('/workspace')
def put(kind):
    open('app.py', 'w').write('print("%s")\n' % kind)
    open('Makefile', 'w').write('all:\n\techo %s\n' % kind)
put('harmless')
flipped = False
def flip(*_):
    global flipped
    flipped = True
signal.signal(signal.SIGCONT, flip)
open('ready', 'w')
while not (flipped or os.path.exists('/tmp/flip')):
    time.sleep(0.01)
put('never-shown')
open('/tmp/flipped', 'w')
time.sleep(600)
"#;

/// Creates a session with such a program, and waits for its harmless changes.
fn begin(world: &World) -> String {
    world.write("source/app.py", "print('one')\n");
    let id = create(world, &["--workspace-copy", "source", "--name", "s"]);
    let start = format!(
        "cat > /tmp/flip.py <<'END'\n{FLIP}\nEND\nsetsid python3 /tmp/flip.py </dev/null >/dev/null 2>&1 &"
    );
    exec(world, "s", &start).succeeded();
    until(|| exec(world, "s", "test -e ready").code == 0);
    id
}

/// Triggers the program's other changes, if the pause of a review hasn't done so already.
fn flip(world: &World) {
    exec(world, "s", "touch /tmp/flip").succeeded();
    until(|| exec(world, "s", "test -e /tmp/flipped").code == 0);
}

fn digest(world: &World) -> String {
    world.run(&["session", "diff", "s", "--digest"]).succeeded().stdout.trim().to_owned()
}

#[test]
fn commit_of_another_state_than_the_reviewed_one_is_refused() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        begin(world);
        let shown = world.run(&["session", "diff", "s", "--json"]).succeeded().json();
        let diff = shown["diff"].as_str().unwrap();
        assert!(diff.contains("+print(\"harmless\")") && !diff.contains("never-shown"), "{diff}");
        let reviewed = shown["digest"].as_str().unwrap();
        flip(world);
        let before = world.picture("source");
        let commit = |options: &[&str]| world.run(&[&["session", "commit", "s"], options].concat());
        for trust in [&["--trust", "Makefile"][..], &["--trust-all"]] {
            let ran = commit(&[&["--reviewed", reviewed], trust].concat());
            assert!(ran.code == 125 && ran.stderr.contains("no longer those that were reviewed"), "{ran:?}");
            // Without a digest it is unknown which state is trusted.
            let ran = commit(trust);
            assert!(ran.code == 125 && ran.stderr.contains("--reviewed"), "{ran:?}");
        }
        assert_eq!(commit(&["--reviewed", "sha256:12"]).code, 125);
        assert_eq!(world.picture("source"), before);
        // The control: the current state, after a review.
        let ran = commit(&["--reviewed", &digest(world), "--trust", "Makefile", "--json"]).succeeded();
        assert!(ran.json()["digest"].as_str().unwrap().starts_with("sha256:"));
        assert_eq!(world.read("source/app.py"), "print(\"never-shown\")\n");
    });
}

#[test]
fn user_at_the_terminal_commits_exactly_what_was_shown() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    begin(&world);
    let inner = format!("{BELLJAR} session commit s");
    let script = ["--quiet", "--return", "--command", &inner, "/dev/null"];
    let mut command = world.command_of("script".as_ref(), &script);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut typed, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
    let asks = |shown: &[u8]| String::from_utf8_lossy(shown).contains("Approve them? [y/n]");
    while !asks(&shown) {
        let read = output.read(&mut piece).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&piece[..read]);
    }
    let text = String::from_utf8_lossy(&shown).into_owned();
    assert!(text.contains("harmless") && !text.contains("never-shown"), "{text}");
    flip(&world);
    typed.write_all(b"y\n").unwrap();
    let ran = ProgramOutput::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(world.read("source/app.py"), "print(\"harmless\")\n");
    assert!(world.read("source/Makefile").contains("harmless"));
    // Later changes stay changes.
    let left = world.run(&["session", "diff", "s"]).succeeded().stdout;
    assert!(left.contains("+print(\"never-shown\")"), "{left}");
}

#[test]
fn nothing_is_written_if_the_user_declines() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("source/file", "before\n");
    create(&world, &["--workspace-copy", "source", "--name", "s"]);
    exec(&world, "s", "echo after > file").succeeded();
    let commit = |typed: &str| at_a_terminal(&world, &format!("{BELLJAR} session commit s"), typed);
    for typed in ["n\n", "", "what\nno\n"] {
        let ran = commit(typed);
        assert!(ran.code == 3 && ran.stdout.contains("Nothing was written."), "{typed:?}: {ran:?}");
        assert_eq!(world.read("source/file"), "before\n");
    }
    let ran = commit("y\n");
    assert!(ran.code == 0 && ran.stdout.contains("+after"), "{ran:?}");
    assert_eq!(world.read("source/file"), "after\n");
}

#[test]
fn key_typed_before_the_question_is_not_an_answer() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("source/file", "before\n");
    create(&world, &["--workspace-copy", "source", "--name", "s"]);
    exec(&world, "s", "echo after > file").succeeded();
    for (typed, code, content) in [("n\n", 3, "before\n"), ("y\n", 0, "after\n")] {
        let inner = format!("until [ -e go ]; do sleep 0.01; done; {BELLJAR} session commit s");
        let script = ["--quiet", "--return", "--command", &inner, "/dev/null"];
        let mut command = world.command_of("script".as_ref(), &script);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (mut shown, mut piece) = (String::new(), [0; 4096]);
        let mut wait_for = |awaited: &str| {
            while !shown.contains(awaited) {
                let read = output.read(&mut piece).unwrap();
                assert!(read > 0, "{shown}");
                shown.push_str(&String::from_utf8_lossy(&piece[..read]));
            }
        };
        // The terminal has the input once it is echoed.
        input.write_all(b"y\n").unwrap();
        wait_for("y\r\n");
        world.write("go", "");
        wait_for("[y/n] ");
        input.write_all(typed.as_bytes()).unwrap();
        let ran = ProgramOutput::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, world.read("source/file").as_str()), (code, content), "{ran:?}");
        std::fs::remove_file(world.path().join("go")).unwrap();
    }
}

#[test]
fn frozen_states_are_inaccessible_and_removed_with_their_review() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("source/file", "before\n");
    let id = create(&world, &["--workspace-copy", "source", "--name", "s"]);
    exec(&world, "s", "echo after > file").succeeded();
    let first = digest(&world);
    assert_eq!(digest(&world), first, "the same changes have the same digest");
    let reviews = world.path().join("state/runs").join(&id).join("reviews");
    assert_eq!(reviews.metadata().unwrap().mode() & 0o777, 0o700);
    until(|| std::fs::read_dir(&reviews).unwrap().count() == 0);
}

/// Permission changes in a sandbox: every file is opened to all users.
const OPEN_UP: &str = "chmod 777 private; echo more >> private/inner; chmod 666 private/inner key; echo more >> key; \
                       chmod 755 run; echo new > made; chmod 666 made; mkdir folder; chmod 777 folder; umask 0; echo n > private/new";

fn with_private_files(world: &World, source: &str) {
    for (name, mode) in [("private/inner", 0o600), ("key", 0o600), ("run", 0o640)] {
        let path = world.write(&format!("{source}/{name}"), "one\n");
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let private = world.path().join(source).join("private");
    std::fs::set_permissions(private, PermissionsExt::from_mode(0o700)).unwrap();
}

fn modes(world: &World, source: &str) -> Vec<String> {
    ["private", "private/inner", "private/new", "key", "run", "made", "folder"]
        .iter()
        .map(|name| {
            let mode = world.path().join(source).join(name).metadata().unwrap().mode() & 0o7777;
            format!("{name} {mode:o}")
        })
        .collect()
}

#[test]
fn change_gives_other_users_no_permissions_that_the_source_did_not_give() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let expected = [
            "private 700",
            "private/inner 600",
            "private/new 600",
            "key 600",
            "run 750",
            "made 644",
            "folder 755",
        ];
        for (number, options) in [&[][..], &["--backend", "subprocess"]].iter().enumerate() {
            let source = format!("committed{number}");
            with_private_files(world, &source);
            let id = create(world, &[options, &["--workspace-copy", &source][..]].concat());
            exec(world, &id, OPEN_UP).succeeded();
            let shown = world.run(&["session", "diff", &id]).succeeded().stdout;
            assert!(shown.contains("diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"), "{shown}");
            crate::session_workspace::commit_trusting(world, &id, &["--trust", "run"]).succeeded();
            assert_eq!(modes(world, &source), expected, "{options:?}");
            assert_eq!(
                world.run(&["session", "diff", &id]).succeeded().stdout,
                "",
                "nothing is left to commit"
            );
            let source = format!("applied{number}");
            with_private_files(world, &source);
            let exec = ["--workspace-copy", &source, "--apply", "--trust", "run", "--", "sh", "-c", OPEN_UP];
            world.run(&[&["exec"], *options, &exec[..]].concat()).succeeded();
            assert_eq!(modes(world, &source), expected, "{options:?}");
        }
    });
}

#[test]
fn other_users_of_the_machine_cannot_access_a_session() {
    if !rustix::process::geteuid().is_root() {
        belljar_testkit::skip::skip("other_users_of_the_machine_cannot_access_a_session", "needs root");
        return;
    }
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    let as_another = |script: &str| {
        let options = ["--reuid=4711", "--regid=4711", "--clear-groups", "sh", "-c", script];
        ProgramOutput::from(world.command_of("/usr/bin/setpriv".as_ref(), &options).output().unwrap())
    };
    for options in [&[][..], &["--backend", "subprocess"]] {
        world.write("source/file", "secret\n");
        let id = create(&world, &[options, &["--workspace-copy", "source"][..]].concat());
        exec(&world, &id, "echo secret > new; chmod 777 . new; ls -ld .").succeeded();
        let run = world.path().join("state/runs").join(&id);
        let mut directories = vec![run.clone()];
        let mut found = 0;
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(&directory).unwrap().flatten() {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                found += usize::from(entry.file_name() == "new");
                if kind.is_dir() {
                    let planted = path.join("planted");
                    let ran = as_another(&format!("echo x > {}", planted.display()));
                    assert_ne!(ran.code, 0, "{}", path.display());
                    directories.push(path);
                } else if kind.is_file() {
                    let ran = as_another(&format!("cat {0}; echo x >> {0}", path.display()));
                    assert!(ran.code != 0 && !ran.stdout.contains("secret"), "{}: {ran:?}", path.display());
                }
            }
        }
        assert_eq!(found, 1, "the layer was examined");
        let told = world.run(&["session", "diff", &id, "--json"]).succeeded().json();
        assert_eq!(told["files"], serde_json::json!([{ "path": "new", "change": "created" }]));
        // The control: a directory that any user may write.
        let open = world.path().join("open");
        std::fs::create_dir_all(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        as_another(&format!("echo x > {}/planted", open.display())).succeeded();
    }
}

#[test]
fn new_empty_directories_are_shown_and_need_approval_before_a_commit() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        world.write("source/.git/refs/heads/gone", "");
        std::fs::remove_file(world.path().join("source/.git/refs/heads/gone")).unwrap();
        create(world, &["--workspace-copy", "source", "--name", "s"]);
        exec(world, "s", "rm -rf .git/refs; mkdir .git/index.lock").succeeded();
        let shown = world.run(&["session", "diff", "s"]).succeeded();
        for line in [".git/index.lock/  new", ".git/refs/heads/  removed", "belljar: digest sha256:"] {
            assert!(shown.stderr.contains(line), "{line}: {shown:?}");
        }
        let before = world.picture("source");
        let ran = world.run(&["session", "commit", "s"]);
        assert!(ran.code == 3 && ran.stderr.contains(".git/refs/"), "{ran:?}");
        assert_eq!(world.picture("source"), before);
        // The control: with an approval of the shown state.
        let ran = world
            .run(&["session", "commit", "s", "--reviewed", &digest(world), "--trust", ".git/"])
            .succeeded();
        assert!(
            ran.stdout.contains("A .git/index.lock/") && ran.stdout.contains("D .git/refs/heads/"),
            "{ran:?}"
        );
        let is_there = |path: &str| world.path().join("source").join(path).exists();
        assert!(is_there(".git/index.lock") && !is_there(".git/refs"));
    });
}
