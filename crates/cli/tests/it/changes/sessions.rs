//! Sessions that end with uncommitted changes.

use super::{folders, only};
use crate::BELLJAR;
use crate::session::{SessionCleanup, create, exec, list, parent_of_sleep};
use belljar_testkit::terminal::at_a_terminal;
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// An overlay on the source, and a full copy.
const COPIES: [&[&str]; 2] = [&[], &["--backend", "subprocess"]];

fn ended(world: &World) -> Vec<Value> {
    let all = world.run(&["session", "list", "--all", "--json"]).succeeded().json();
    let all = all.as_array().unwrap().clone();
    all.into_iter().filter(|session| session["state"] == "ended").collect()
}

#[test]
fn session_with_uncommitted_changes_ends_only_with_keep_or_discard() {
    for copies in COPIES {
        World::as_everyone(BELLJAR, |world| {
            let _sessions = SessionCleanup(world);
            world.write("source/file", "before\n");
            let of = |name: &str| {
                create(world, &[copies, &["--workspace-copy", "source", "--name", name]].concat())
            };
            let id = of("work");
            exec(world, "work", "echo after > file").succeeded();
            let refused = world.run(&["session", "end", "work"]);
            assert!(
                refused.code == 125 && refused.stderr.contains("uncommitted changes: file"),
                "{refused:?}"
            );
            assert!(refused.stderr.contains("--discard"), "{refused:?}");
            assert_eq!(exec(world, "work", "cat file").succeeded().stdout, "after\n");
            let told = world.run(&["session", "end", "work", "--keep"]).succeeded();
            assert!(told.stderr.contains(&format!("kept as {id}")), "{told:?}");
            assert!(list(world).is_empty());
            assert_eq!((&ended(world)[0]["id"], &ended(world)[0]["name"]), (&json!(id), &json!("work")));
            let diff = world.run(&["session", "diff", "work"]).succeeded().stdout;
            assert!(diff.contains("-before\n+after\n"), "{diff}");
            world.run(&["session", "commit", "work"]).succeeded();
            assert_eq!((world.read("source/file"), folders(world)), ("after\n".to_owned(), Vec::new()));
            // Discarded changes are gone, and committed changes are not kept again.
            of("other");
            exec(world, "other", "echo other > file").succeeded();
            world.run(&["session", "end", "other", "--discard"]).succeeded();
            of("third");
            exec(world, "third", "echo third > file").succeeded();
            world.run(&["session", "commit", "third"]).succeeded();
            world.run(&["session", "end", "third"]).succeeded();
            assert_eq!((world.read("source/file"), folders(world)), ("third\n".to_owned(), Vec::new()));
        });
    }
}

#[test]
fn session_that_times_out_keeps_its_changes() {
    for limit in [["--idle", "1s"], ["--timeout", "2s"]] {
        World::as_everyone(BELLJAR, |world| {
            let _sessions = SessionCleanup(world);
            world.write("source/file", "before\n");
            let id = create(world, &[&["--workspace-copy", "source"], &limit[..]].concat());
            exec(world, &id, "echo after > file").succeeded();
            until(|| list(world).is_empty());
            until(|| ended(world).len() == 1);
            let told = world.run(&["session", "diff", &id, "--json"]).succeeded().json();
            assert_eq!(told["files"], json!([{ "path": "file", "change": "modified" }]));
            world.run(&["changes", "apply", &id]).succeeded();
            assert_eq!(world.read("source/file"), "after\n");
        });
    }
}

#[test]
fn session_whose_sandbox_is_killed_ends_and_is_listed_with_its_changes() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        world.write("source/file", "before\n");
        let of = |name: &str| create(world, &["--workspace-copy", "source", "--name", name]);
        let (killed, other) = (of("killed"), of("other"));
        let mark = format!("3601.{}", std::process::id());
        exec(world, "killed", &format!("echo after > file; sleep {mark} >/dev/null 2>&1 &")).succeeded();
        exec(world, "other", "echo other > file").succeeded();
        // Like the end by a limit: every process of the sandbox is killed, and no command waits for it.
        let first = parent_of_sleep(&mark);
        rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
        until(|| ended(world).len() == 1);
        assert_eq!((&ended(world)[0]["id"], &ended(world)[0]["name"]), (&json!(killed), &json!("killed")));
        assert_eq!(only(world), killed);
        let diff = world.run(&["session", "diff", "killed"]).succeeded().stdout;
        assert!(diff.contains("-before\n+after\n"), "{diff}");
        let told = world.run(&["session", "end", "killed", "--keep"]).succeeded();
        assert!(told.stderr.contains(&format!("kept as {killed}")), "{told:?}");
        // The control: another session goes on.
        let living = list(world);
        assert_eq!((living.len(), &living[0]["id"]), (1, &json!(other)), "{living:?}");
        world.run(&["session", "commit", "killed"]).succeeded();
        assert_eq!(world.read("source/file"), "after\n");
    });
}

#[test]
fn changes_committed_before_the_session_ended_do_not_conflict_later() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        world.write("source/file", "before\n");
        let id = create(world, &["--workspace-copy", "source"]);
        exec(world, &id, "echo first > file").succeeded();
        world.write("source/other", "person\n");
        let told = world.run(&["session", "commit", &id]).succeeded();
        assert!(
            told.stderr.contains("by something else:\n") && told.stderr.contains("! other\n"),
            "{told:?}"
        );
        exec(world, &id, "echo second > file").succeeded();
        world.run(&["session", "end", &id, "--keep"]).succeeded();
        world.run(&["changes", "apply", &only(world)]).succeeded();
        assert_eq!(world.read("source/file"), "second\n");
        // The control: a person's later change is a conflict.
        let id = create(world, &["--workspace-copy", "source"]);
        exec(world, &id, "echo third > file").succeeded();
        until(|| {
            world.write("source/file", "person\n");
            let told = world.run(&["session", "diff", &id, "--json"]).succeeded().json();
            told["changed_in_source"] == json!(["file"])
        });
        world.run(&["session", "end", &id, "--keep"]).succeeded();
        let ran = world.run(&["session", "commit", &id]);
        assert_eq!((ran.code, world.read("source/file")), (5, "person\n".to_owned()), "{ran:?}");
    });
}

#[test]
fn commit_of_an_ended_session_is_reviewed_like_that_of_a_running_one() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    for ends in [false, true] {
        world.write("source/file", "before\n");
        create(&world, &["--workspace-copy", "source", "--name", "s"]);
        exec(&world, "s", "echo after >file; head -c 100 /dev/zero >binary; echo all: >Makefile").succeeded();
        if ends {
            world.run(&["session", "end", "s", "--keep"]).succeeded();
        }
        let commit = |typed: &str| at_a_terminal(&world, &format!("{BELLJAR} session commit s"), typed);
        // Files that are not shown, and then the whole diff.
        for typed in ["n\n", "y\nn\n", ""] {
            let ran = commit(typed);
            assert!(ran.code == 3 && ran.stdout.contains("+after"), "{ends} {typed:?}: {ran:?}");
            assert!(ran.stdout.contains("A binary  (not shown: 100 bytes"), "{ends}: {ran:?}");
            assert_eq!(world.read("source/file"), "before\n");
        }
        // Without a terminal an approval requires the digest of the reviewed changes.
        let elsewhere = |options: &[&str]| world.run(&[&["session", "commit", "s"], options].concat());
        let refused = elsewhere(&["--trust-all"]);
        assert!(refused.code == 125 && refused.stderr.contains("--reviewed"), "{ends}: {refused:?}");
        let wrong = format!("sha256:{}", "0".repeat(64));
        assert_eq!(elsewhere(&["--reviewed", &wrong, "--unshown", "--trust-all"]).code, 125, "{ends}");
        let digest = world.run(&["session", "diff", "s", "--digest"]).succeeded().stdout;
        let refused = elsewhere(&["--reviewed", digest.trim(), "--trust-all"]);
        assert!(refused.code == 3 && refused.stderr.contains("binary"), "{ends}: {refused:?}");
        assert_eq!(world.read("source/file"), "before\n");
        // Not shown, written, and trusted: an ended session asks about the last two separately.
        let ran = commit(if ends { "y\ny\ny\n" } else { "y\ny\n" });
        assert!(ran.code == 0 && ran.stdout.contains("3 files committed"), "{ends}: {ran:?}");
        assert_eq!(world.read("source/file"), "after\n");
        if !ends {
            world.run(&["session", "end", "s"]).succeeded();
        }
        for name in ["binary", "Makefile"] {
            std::fs::remove_file(world.path().join("source").join(name)).unwrap();
        }
    }
    assert_eq!(folders(&world), Vec::<String>::new());
}

#[test]
fn name_shared_by_two_ended_sessions_selects_neither() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("source/file", "before\n");
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(create(&world, &["--workspace-copy", "source", "--name", "s"]));
        exec(&world, "s", &format!("echo {} >file", ids.len())).succeeded();
        world.run(&["session", "end", "s", "--keep"]).succeeded();
    }
    for command in [["changes", "apply"], ["changes", "rm"], ["session", "commit"]] {
        let refused = world.run(&[&command[..], &["s"]].concat());
        let is_named = ids.iter().all(|id| refused.stderr.contains(id));
        assert!(refused.code == 125 && is_named, "{command:?}: {refused:?}");
    }
    assert_eq!(world.read("source/file"), "before\n");
    // The control: the first is removed by its id, and then the name means the other.
    world.run(&["changes", "rm", &ids[1]]).succeeded();
    world.run(&["changes", "apply", "s"]).succeeded();
    assert_eq!(world.read("source/file"), "1\n");
}

#[test]
fn session_name_that_looks_like_an_id_is_refused() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("source/file", "before\n");
    let kept = ["exec", "--workspace-copy", "source", "--keep", "--", "sh", "-c", "echo wanted > wanted"];
    world.run(&kept).succeeded();
    let id = only(&world);
    for name in [id.as_str(), &id[..8]] {
        let refused = world.run(&["session", "create", "--name", name]);
        assert!(refused.code == 125 && refused.stderr.contains("looks like the id"), "{refused:?}");
    }
    // The control: the id names the kept changes, and other session names are possible.
    create(&world, &["--name", "facade"]);
    let diff = world.run(&["changes", "diff", &id]).succeeded().stdout;
    assert!(diff.contains("+wanted"), "{diff}");
}

#[test]
fn file_committed_by_a_session_and_deleted_by_the_user_does_not_come_back() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        for name in ["source/file", "source/other", "source/removed"] {
            world.write(name, "before\n");
        }
        let id = create(world, &["--workspace-copy", "source"]);
        exec(world, &id, "echo run > file; mkdir new; echo run > new/file; rm removed").succeeded();
        world.run(&["session", "commit", &id]).succeeded();
        std::fs::remove_file(world.path().join("source/file")).unwrap();
        std::fs::remove_dir_all(world.path().join("source/new")).unwrap();
        exec(world, &id, "echo run > other; echo run > removed").succeeded();
        let ran = world.run(&["session", "commit", &id]);
        let exists = |name: &str| world.path().join("source").join(name).exists();
        assert!(
            ran.code == 125
                && ran.stderr.contains("changed in the meantime: file, new")
                && !exists("file")
                && !exists("new"),
            "{ran:?}"
        );
        // The control: once the session has discarded these files, the rest is committed, including its own removals.
        world.run(&["session", "discard", &id, "file", "new"]).succeeded();
        world.run(&["session", "commit", &id]).succeeded();
        assert!(!exists("file") && !exists("new"));
        assert_eq!(["other", "removed"].map(|name| world.read(&format!("source/{name}"))), ["run\n"; 2]);
    });
}
