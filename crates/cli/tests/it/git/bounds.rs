//! What an agent's pushes and clones leave on the host: as much as is documented, however often it makes them.

use super::tools::{call, done, folder, refused, rig};
use crate::session::{Sessions, create, exec};
use belljar_testkit::git::{git, refs};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file below a folder, with how large it is.
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
    // Of each branch it is noted when a push of it was first tried.
    found.retain(|path, _| !path.file_name().unwrap().to_str().unwrap().starts_with("push-"));
    found
}

#[test]
fn a_push_leaves_no_objects_in_the_hosts_clone_whether_it_is_refused_or_made() {
    let Some(rig) = rig("a_push_leaves_no_objects_in_the_hosts_clone_whether_it_is_refused_or_made") else {
        return;
    };
    let session = create(&rig.world, &[]);
    let _ended = Sessions(&rig.world);
    done(&rig, &session, "git_clone", &json!({ "url": rig.url, "directory": "app" }));
    let clones = folder(&rig, &session).join("clones");
    let push = |branch: &str| json!({ "directory": "app", "branch": branch, "message": "Fix it" });
    let leave = |script: &str| exec(&rig.world, &session, &format!("cd /workspace/app && {script}"));
    // The first push makes the lock.
    assert_eq!(refused(&rig, &session, "git_push", &push("belljar/none")).0, "conflict", "nothing differs");
    let before = sizes(&clones);
    leave("echo 'x: ; touch y' > Makefile").succeeded();
    for at in 0..3 {
        leave("head -c 1000000 /dev/urandom > random").succeeded();
        let (code, message) = refused(&rig, &session, "git_push", &push(&format!("belljar/{at}")));
        assert!(code == "permission_denied" && message.contains("Makefile"), "{message}");
        assert_eq!(sizes(&clones), before, "refused {at}");
    }
    assert_eq!(refs(&rig.bare), ["refs/heads/main"]);
    // The control: the same gets there once somebody says yes, whole, and the same again finds it.
    let trusting = |branch: &str| call(&rig, &session, ("git_push", &push(branch)), &["--trust", "Makefile"]);
    for outcome in ["pushed", "already_there"] {
        let (code, told) = trusting("belljar/one");
        assert_eq!((code, &told["data"]["outcome"]), (0, &json!(outcome)), "{told}");
        assert_eq!(sizes(&clones), before, "{outcome}");
    }
    assert_eq!(git(&rig.bare, &["cat-file", "-s", "belljar/one:random"]).trim(), "1000000");
    git(&rig.bare, &["fsck", "--strict", "--no-dangling"]);
    // What the server refuses leaves nothing, either.
    leave("head -c 1000000 /dev/urandom > random").succeeded();
    let (_, told) = trusting("belljar/one");
    assert_eq!(told["domain_code"], Value::from("conflict"), "{told}");
    assert_eq!(sizes(&clones), before, "taken");
}

#[test]
fn a_session_keeps_so_many_clones_however_many_of_them_the_agent_removes() {
    let Some(rig) = rig("a_session_keeps_so_many_clones_however_many_of_them_the_agent_removes") else {
        return;
    };
    let session = create(&rig.world, &[]);
    let _ended = Sessions(&rig.world);
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
    // The control: one takes the place of another, and is pushed from; and another session has room.
    done(&rig, &session, "git_clone", &clone("d3"));
    exec(&rig.world, &session, "echo b > /workspace/d3/b.txt").succeeded();
    let push = json!({ "directory": "d3", "branch": "belljar/one", "message": "Fix it" });
    done(&rig, &session, "git_push", &push);
    assert_eq!((kept(), refs(&rig.bare).len()), (16, 2));
    done(&rig, &create(&rig.world, &[]), "git_clone", &clone("one-more"));
}
