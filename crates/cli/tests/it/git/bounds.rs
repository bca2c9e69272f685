//! Limits of what clones and pushes use and leave on the host, whatever a server sends and an agent requests.

use super::rig::GitFixture;
use super::tools::{call, done, folder, refused, rig};
use crate::BELLJAR;
use crate::session::{SessionCleanup, create, exec};
use belljar_testkit::git::{git, refs};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns every file below a folder, with its size in bytes.
fn sizes(below: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    let mut pending = vec![below.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.metadata().unwrap() {
                metadata if metadata.is_dir() => pending.push(entry.path()),
                metadata => drop(found.insert(entry.path(), metadata.len())),
            }
        }
    }
    // For each branch there is a note of the first attempt to push it.
    found.retain(|path, _| !path.file_name().unwrap().to_str().unwrap().starts_with("push-"));
    found
}

#[test]
fn push_leaves_no_objects_in_the_hosts_clone_whether_refused_or_made() {
    let Some(rig) = rig("push_leaves_no_objects_in_the_hosts_clone_whether_refused_or_made") else {
        return;
    };
    let session = create(&rig.world, &[]);
    let _ended = SessionCleanup(&rig.world);
    done(&rig, &session, "git_clone", &json!({ "url": rig.url, "directory": "app" }));
    let clones = folder(&rig, &session).join("clones");
    let push = |branch: &str| json!({ "directory": "app", "branch": branch, "message": "Fix it" });
    let leave = |script: &str| exec(&rig.world, &session, &format!("cd /workspace/app && {script}"));
    // The first push creates the lock file.
    assert_eq!(refused(&rig, &session, "git_push", &push("belljar/none")).0, "conflict", "no difference");
    let before = sizes(&clones);
    leave("echo 'x: ; touch y' > Makefile").succeeded();
    for at in 0..3 {
        leave("head -c 1000000 /dev/urandom > random").succeeded();
        let (code, message) = refused(&rig, &session, "git_push", &push(&format!("belljar/{at}")));
        assert!(code == "permission_denied" && message.contains("Makefile"), "{message}");
        assert_eq!(sizes(&clones), before, "refused {at}");
    }
    assert_eq!(refs(&rig.bare), ["refs/heads/main"]);
    // The control: the same content is pushed once it is approved, and pushing it again finds it.
    let trusting = |branch: &str| call(&rig, &session, ("git_push", &push(branch)), &["--trust", "Makefile"]);
    for outcome in ["pushed", "already_there"] {
        let (code, told) = trusting("belljar/one");
        assert_eq!((code, &told["data"]["outcome"]), (0, &json!(outcome)), "{told}");
        assert_eq!(sizes(&clones), before, "{outcome}");
    }
    assert_eq!(git(&rig.bare, &["cat-file", "-s", "belljar/one:random"]).trim(), "1000000");
    git(&rig.bare, &["fsck", "--strict", "--no-dangling"]);
    // A push that the server refuses leaves no files, either.
    leave("head -c 1000000 /dev/urandom > random").succeeded();
    let (_, told) = trusting("belljar/one");
    assert_eq!(told["domain_code"], Value::from("conflict"), "{told}");
    assert_eq!(sizes(&clones), before, "taken");
}

#[test]
fn session_clone_limit_holds_even_if_the_agent_removes_clones() {
    let Some(rig) = rig("session_clone_limit_holds_even_if_the_agent_removes_clones") else {
        return;
    };
    let session = create(&rig.world, &[]);
    let _ended = SessionCleanup(&rig.world);
    let clone = |directory: &str| json!({ "url": rig.url, "directory": directory });
    let kept = || std::fs::read_dir(folder(&rig, &session).join("clones")).unwrap().count();
    for at in 0..16 {
        done(&rig, &session, "git_clone", &clone(&format!("d{at}")));
        exec(&rig.world, &session, &format!("rm -r /workspace/d{at}")).succeeded();
    }
    let before = rig.server.requests().len();
    let (code, message) = refused(&rig, &session, "git_clone", &clone("one-more"));
    assert!(
        code == "limit_exceeded" && message.contains("d15") && message.contains("another session"),
        "{message}"
    );
    assert_eq!((kept(), rig.server.requests().len()), (16, before));
    // The control: a clone replaces another, and can be pushed from; and another session has its own quota.
    done(&rig, &session, "git_clone", &clone("d3"));
    exec(&rig.world, &session, "echo b > /workspace/d3/b.txt").succeeded();
    let push = json!({ "directory": "d3", "branch": "belljar/one", "message": "Fix it" });
    done(&rig, &session, "git_push", &push);
    assert_eq!((kept(), refs(&rig.bare).len()), (16, 2));
    done(&rig, &create(&rig.world, &[]), "git_clone", &clone("one-more"));
}

/// Makes a branch of nested directories, each with 16 names for the same one: 16^8 paths, in a few objects.
fn make_endless(rig: &GitFixture) {
    let object = |arguments: &[&str]| git(&rig.bare, arguments).trim().to_owned();
    let mut inner = format!("100644 blob {}", object(&["rev-parse", "main:README.md"]));
    for _ in 0..8 {
        let list = rig.world.path().join("list");
        let lines: String = (0..16).map(|at| format!("{inner}\t{at:0>200}\n")).collect();
        std::fs::write(&list, lines).unwrap();
        let list = std::fs::File::open(list).unwrap();
        let made = Command::new("git").arg("-C").arg(&rig.bare).arg("mktree").stdin(list).output().unwrap();
        let tree = String::from_utf8(made.stdout).unwrap();
        inner = format!("040000 tree {}", tree.trim());
    }
    let commit = object(&["commit-tree", "-m", "endless", &inner["040000 tree ".len()..]]);
    git(&rig.bare, &["update-ref", "refs/heads/endless", &commit]);
}

#[test]
fn repository_that_exceeds_the_memory_limit_is_aborted() {
    let Some(rig) = GitFixture::start("repository_that_exceeds_the_memory_limit_is_aborted") else { return };
    make_endless(&rig);
    let ran = rig.clone_from(&format!("{}#endless", rig.url));
    assert!(
        ran.code == 125 && ran.stderr.contains("git read-tree needed more than 2 GiB of memory"),
        "{ran:?}"
    );
    // The control: the other branch of this server.
    rig.world.run(&["git", "clone", &rig.url, "other", "--allow-network", "127.0.0.0/8"]).succeeded();
}

#[test]
fn clone_is_aborted_before_it_fills_the_disk() {
    const NAME: &str = "clone_is_aborted_before_it_fills_the_disk";
    if !rustix::process::geteuid().is_root() {
        return skip("a small file system", "mounting one needs root");
    }
    // Git writes sparse files for zeros, so the content isn't zeros.
    let large = "a".repeat(32 << 20);
    let names: Vec<String> = (0..8).map(|at| format!("large{at}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), large.as_str())).collect();
    let Some(rig) = GitFixture::with(NAME, World::new(BELLJAR), &files) else { return };
    let clone = |size: &str| {
        std::fs::create_dir_all(rig.world.path().join("small")).unwrap();
        let clone = format!("{BELLJAR} git clone {} small/work --allow-network 127.0.0.0/8", rig.url);
        let script = format!("mount -t tmpfs -o size={size} none small && {clone}");
        let mut command = rig.world.command_of("unshare".as_ref(), &["--mount", "sh", "-ec", &script]);
        ProgramOutput::from(command.output().unwrap())
    };
    let ran = clone("200m");
    assert!(
        ran.code == 125 && ran.stderr.contains("it has filled the disk up to what is kept free"),
        "{ran:?}"
    );
    // The control.
    clone("700m").succeeded();
}

#[test]
fn push_changes_no_untouched_file_despite_git_attributes() {
    let files = [
        (".gitattributes", "*.bat text eol=crlf\n*.ps1 text working-tree-encoding=UTF-16LE\nver.c ident\n"),
        ("run.bat", "echo a\necho b\n"),
        ("setup.ps1", "e\0c\0h\0o\0\n\0"),
        ("ver.c", "/* $Id$ */\n"),
        ("plain.txt", "a\n"),
    ];
    let name = "push_changes_no_untouched_file_despite_git_attributes";
    let Some(rig) = GitFixture::with(name, World::new(BELLJAR), &files) else { return };
    rig.clone().succeeded();
    assert!(rig.push(&["--branch", "belljar/none"]).stdout == "Nothing to push.\n");
    assert_eq!(git(&rig.work("."), &["status", "--porcelain"]), "");
    rig.leaves("plain.txt", "b\n");
    rig.push(&["--branch", "belljar/one"]).succeeded();
    let changed = git(&rig.bare, &["diff-tree", "-r", "--name-only", "--no-commit-id", "belljar/one"]);
    assert_eq!(changed, "plain.txt\n");
}
