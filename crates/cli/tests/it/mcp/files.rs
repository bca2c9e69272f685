//! Files of sessions.

use super::McpConversation;
use crate::BELLJAR;
use belljar_testkit::world::World;
use serde_json::json;

#[test]
fn files_are_read_in_parts_and_written_whole_or_by_replacement() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/text", "ä first\nsecond\n");
        let mut talk = McpConversation::begin(world, &["--workspace", "source"]);
        let session = talk.open();
        let read = |talk: &mut McpConversation, more: serde_json::Value| {
            let mut arguments = json!({ "session": session, "path": "text" });
            more.as_object().unwrap().iter().for_each(|(name, value)| arguments[name] = value.clone());
            talk.done("read", &arguments)
        };
        let whole = read(&mut talk, json!({}));
        assert_eq!((&whole["content"], &whole["size"]), (&json!("ä first\nsecond\n"), &json!(16)));
        assert_eq!(whole["next_offset"], json!(null));
        let part = read(&mut talk, json!({ "offset": 9, "limit": 3 }));
        assert_eq!((&part["content"], &part["next_offset"]), (&json!("sec"), &json!(12)));
        let bytes = read(&mut talk, json!({ "limit": 1, "encoding": "base64" }));
        assert_eq!((&bytes["content"], &bytes["next_offset"]), (&json!("ww=="), &json!(1)));
        assert_eq!(read(&mut talk, json!({ "offset": 99 }))["content"], "");
        let edit = json!({ "session": session, "path": "text", "old": "second", "new": "2nd" });
        assert_eq!(talk.done("write", &edit)["replaced"], 1);
        assert_eq!(talk.refused("write", &edit).0, "conflict");
        let several = json!({ "session": session, "path": "text", "old": "t", "new": "T" });
        let twice = json!({ "session": session, "path": "twice", "content": "tt" });
        assert_eq!(talk.done("write", &twice)["created"], true);
        let mut several = several;
        several["path"] = json!("twice");
        assert_eq!(talk.refused("write", &several).0, "conflict");
        several["all"] = json!(true);
        assert_eq!(talk.done("write", &several)["replaced"], 2);
        let binary =
            json!({ "session": session, "path": "a/b/-c d", "content": "AP8K", "encoding": "base64" });
        assert_eq!(talk.done("write", &binary), json!({ "created": true, "size": 3 }));
        assert_eq!(
            talk.shell(&session, "cat text twice; od -An -tx1 'a/b/-c d'"),
            "ä first\n2nd\nTT 00 ff 0a\n"
        );
        assert_eq!(
            talk.refused("read", &json!({ "session": session, "path": "a/b/-c d" })).0,
            "invalid_argument"
        );
        assert_eq!(world.read("source/text"), "ä first\nsecond\n");
    });
}

#[test]
fn written_file_keeps_its_permissions_and_leaves_no_temporary_file() {
    let world = World::new(BELLJAR);
    world.write("source/script", "#!/bin/sh\necho one\n");
    let mut talk = McpConversation::begin(&world, &["--workspace", "source"]);
    let session = talk.open();
    talk.shell(&session, "chmod 751 script; ln -s script link");
    let content = json!({ "session": session, "path": "link", "content": "#!/bin/sh\necho two\n" });
    talk.done("write", &content);
    let told =
        talk.shell(&session, "stat -c %a script; readlink link; ./script; ls -A | sort | tr '\\n' ' '");
    assert_eq!(told, "751\nscript\ntwo\nlink script ");
}

#[test]
fn path_resolves_in_the_sandbox_and_not_on_the_host() {
    let world = World::new(BELLJAR);
    world.write("source/file", "inside\n");
    let secret = world.write("secret", "of the host's\n").display().to_string();
    let mut talk = McpConversation::begin(&world, &["--workspace", "source"]);
    let session = talk.open();
    talk.shell(&session, &format!("ln -s {secret} link; ln -s /proc/1/root root"));
    for path in [&secret, "link", "../secret", "root/etc/shadow", "/etc/shadow", "/proc/1/root/root"] {
        let envelope = talk.call("read", &json!({ "session": session, "path": path }));
        assert_eq!(envelope["status"], "error", "{path}: {envelope}");
    }
    // The control: a process outside of the sandbox reads it.
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "of the host's\n");
    let written = json!({ "session": session, "path": secret, "content": "of the sandbox's\n" });
    let _ = talk.call("write", &written);
    assert_eq!(world.read("secret"), "of the host's\n");
    for (path, code) in [
        ("none", "not_found"),
        (".", "invalid_argument"),
        ("", "invalid_argument"),
        ("a\u{0}b", "invalid_argument"),
    ] {
        assert_eq!(talk.refused("read", &json!({ "session": session, "path": path })).0, code, "{path:?}");
    }
    assert_eq!(talk.done("read", &json!({ "session": session, "path": "file" }))["content"], "inside\n");
}

#[test]
fn directories_are_listed_in_parts_with_any_file_names() {
    let world = World::new(BELLJAR);
    world.write("source/file", "12345");
    let mut talk = McpConversation::begin(&world, &["--workspace", "source"]);
    let session = talk.open();
    talk.shell(&session, "mkdir dir .hidden; ln -s file link; touch \"$(printf 'a\\nb c')\"; mkfifo pipe");
    let listed = talk.done("list", &json!({ "session": session }));
    assert_eq!(
        listed,
        json!([
            { "name": ".hidden", "kind": "directory" },
            { "name": "a\nb c", "shown": "a\\u{a}b c", "kind": "file", "size": 0 },
            { "name": "dir", "kind": "directory" },
            { "name": "file", "kind": "file", "size": 5 },
            { "name": "link", "kind": "symlink" },
            { "name": "pipe", "kind": "other" },
        ])
    );
    let part = talk.call("list", &json!({ "session": session, "offset": 3, "limit": 1 }));
    assert_eq!(part["pagination"], json!({ "total": 6, "offset": 3, "limit": 1 }));
    assert_eq!(part["data"][0]["name"], "file");
    assert_eq!(talk.refused("list", &json!({ "session": session, "path": "file" })).0, "invalid_argument");
    let pipe = talk.refused("read", &json!({ "session": session, "path": "pipe" })).0;
    assert_eq!(pipe, "invalid_argument", "the server doesn't wait for a writer");
}
