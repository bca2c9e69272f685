//! Tests of file tools.

use super::Case;
use super::rig::{WorkbenchFactory, folder, run};
use belljar_contract::tool::DomainCode;
use serde_json::json;

pub(crate) const CASES: &[Case] = &[
    ("file_tools_write_read_edit_list_and_remove", whole_life),
    ("read_file_selects_lines_and_flags_truncation", reading),
    ("write_file_rejects_invalid_destinations", writing),
    ("edit_file_replaces_a_unique_text_or_all_occurrences", editing),
    ("list_directory_shows_types_and_stops_at_a_thousand_entries", listing),
    ("delete_file_removes_only_files", removing),
];

fn whole_life(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        let written = bench.done("write_file", json!({ "path": "a.txt", "content": "one\ntwo\n" })).await;
        assert_eq!(written, json!({ "path": "a.txt", "bytes_written": 8, "created": true }));
        let read = bench.done("read_file", json!({ "path": "a.txt" })).await;
        let expected = json!({
            "path": "a.txt", "content": "one\ntwo\n", "size_bytes": 8, "line_count": 2, "truncated": false
        });
        assert_eq!(read, expected);
        let edit = json!({ "path": "a.txt", "old_text": "two", "new_text": "three" });
        let edited = bench.done("edit_file", edit).await;
        assert_eq!(edited, json!({ "path": "a.txt", "replacements": 1, "size_bytes": 10 }));
        let listed = bench.done("list_directory", json!({})).await;
        assert_eq!(listed["content"], "[FILE] a.txt (10 bytes)");
        // One sandbox is kept: changes by one tool are visible to the others.
        assert_eq!(bench.shell("cat a.txt").await, "one\nthree\n");
        let removed = bench.done("delete_file", json!({ "path": "a.txt" })).await;
        assert_eq!(removed, json!({ "path": "a.txt", "size_bytes": 10 }));
        assert_eq!(bench.done("list_directory", json!({})).await["content"], "(empty)");
        let (code, said) = bench.refused("read_file", json!({ "path": "a.txt" })).await;
        assert_eq!(code, DomainCode::NotFound, "{said}");
    });
    Ok(())
}

fn reading(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        bench
            .shell(r"printf 'one\ntwo\nthree\n' >lines; : >empty; mkdir folder; printf '\377\376' >noise")
            .await;
        let lines = |start, end| json!({ "path": "lines", "start_line": start, "end_line": end });
        for (arguments, content) in [
            (lines(json!(2), json!(2)), "two\n"),
            (lines(json!(2), json!(null)), "two\nthree\n"),
            (lines(json!(null), json!(1)), "one\n"),
            (lines(json!(3), json!(99)), "three\n"),
            (lines(json!(4), json!(4)), ""),
        ] {
            let mut arguments = arguments;
            arguments.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            let read = bench.done("read_file", arguments.clone()).await;
            assert_eq!((&read["content"], &read["line_count"]), (&json!(content), &json!(3)), "{arguments}");
        }
        let (code, _) = bench.refused("read_file", lines(json!(3), json!(2))).await;
        assert_eq!(code, DomainCode::InvalidArgument);
        assert!(!bench.lets_through("read_file", &lines(json!(0), json!(1))));
        let empty = bench.done("read_file", json!({ "path": "empty" })).await;
        assert_eq!((&empty["content"], &empty["line_count"]), (&json!(""), &json!(0)));
        let codes = [
            ("folder", DomainCode::ToolFailed),
            ("noise", DomainCode::NotSupported),
            ("none", DomainCode::NotFound),
        ];
        for (path, expected) in codes {
            let (code, said) = bench.refused("read_file", json!({ "path": path })).await;
            assert_eq!(code, expected, "{said}");
        }
        // Two-byte characters, one of which crosses the end of the part that is read.
        bench.shell("python3 -c \"open('large', 'w').write('x' + '\u{e9}' * (1 << 20))\"").await;
        let large = bench.done("read_file", json!({ "path": "large" })).await;
        assert_eq!((&large["truncated"], &large["size_bytes"]), (&json!(true), &json!((2 << 20) + 1)));
        let content = large["content"].as_str().unwrap();
        assert!(content.len() > 900_000 && content.ends_with('\u{e9}'), "{}", content.len());
        // The limit of an answer holds for any content.
        assert!(serde_json::to_vec(&large).unwrap().len() <= 1 << 20);
        assert!(large["notice"].is_string());
        let range = json!({ "path": "large", "start_line": 1 });
        assert_eq!(bench.refused("read_file", range).await.0, DomainCode::LimitExceeded);
        bench.shell("head -c 1048576 /dev/zero | tr '\\0' a >just").await;
        let just = bench.done("read_file", json!({ "path": "just" })).await;
        assert_eq!((&just["truncated"], &just["line_count"]), (&json!(true), &json!(1)));
        let lines = json!({ "path": "just", "start_line": 2 });
        assert_eq!(bench.done("read_file", lines).await["content"], "");
    });
    Ok(())
}

fn writing(benches: &WorkbenchFactory) -> Result<(), String> {
    let place = folder();
    let bench = benches.native_in(place.path());
    run(async {
        let write = |path: &str, content: &str| json!({ "path": path, "content": content });
        bench.done("write_file", write("a", "old")).await;
        bench.shell("chmod 750 a; ln a twin").await;
        let again = bench.done("write_file", write("a", "")).await;
        assert_eq!(again, json!({ "path": "a", "bytes_written": 0, "created": false }));
        assert_eq!(bench.shell("stat -c %a a; cat twin").await, "750\nold");
        let (code, said) = bench.refused("write_file", write("b/c/d", "x")).await;
        assert_eq!(code, DomainCode::NotFound);
        assert!(said.contains("create_directories"), "{said}");
        let made = json!({ "path": "b/c/d", "content": "x", "create_directories": true });
        assert_eq!(bench.done("write_file", made).await["created"], true);
        assert_eq!(std::fs::read(place.path().join("b/c/d")).unwrap(), b"x");
        assert_eq!(bench.refused("write_file", write("b", "x")).await.0, DomainCode::ToolFailed);
        let too_large = "x".repeat((10 << 20) + 1);
        assert_eq!(
            bench.refused("write_file", write("large", &too_large)).await.0,
            DomainCode::LimitExceeded
        );
        let just = &too_large[1..];
        assert_eq!(bench.done("write_file", write("large", just)).await["bytes_written"], 10 << 20);
        assert_eq!(std::fs::read(place.path().join("large")).unwrap(), just.as_bytes());
        // A write that fails leaves no file behind.
        bench.shell("mkdir sealed; chmod 500 sealed").await;
        assert!(bench.call("write_file", write("sealed/x", "x")).await.is_err());
        assert_eq!(bench.shell("ls -A sealed; ls -A . | grep -c belljar || true").await, "0\n");
    });
    Ok(())
}

fn editing(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        bench.shell(r"printf 'a b a\nb\na' >f; chmod 640 f; printf '\377' >noise; mkdir folder").await;
        let edit = |path: &str, old: &str, new: &str, all: bool| json!({ "path": path, "old_text": old, "new_text": new, "all": all });
        let (code, said) = bench.refused("edit_file", edit("f", "a", "c", false)).await;
        assert_eq!(code, DomainCode::Conflict);
        assert!(said.contains("3 times") && said.contains("lines 1, 1, 3"), "{said}");
        assert_eq!(bench.shell("cat f").await, "a b a\nb\na");
        let replaced = bench.done("edit_file", edit("f", "a", "c", true)).await;
        assert_eq!(replaced["replacements"], 3);
        assert_eq!(bench.done("edit_file", edit("f", "c b c\n", "", false)).await["size_bytes"], 3);
        assert_eq!(bench.shell("cat f; stat -c %a f").await, "b\nc640\n");
        assert_eq!(bench.refused("edit_file", edit("f", "x", "y", false)).await.0, DomainCode::NotFound);
        assert_eq!(bench.done("edit_file", edit("f", "b", "b", false)).await["replacements"], 0);
        assert_eq!(
            bench.refused("edit_file", edit("noise", "x", "y", false)).await.0,
            DomainCode::NotSupported
        );
        assert_eq!(
            bench.refused("edit_file", edit("folder", "x", "y", false)).await.0,
            DomainCode::ToolFailed
        );
        assert_eq!(bench.refused("edit_file", edit("none", "x", "x", false)).await.0, DomainCode::NotFound);
        assert!(!bench.lets_through("edit_file", &edit("f", "", "y", false)));
        bench.shell("head -c 1048577 /dev/zero | tr '\\0' a >large; head -c 1048576 large >just").await;
        assert_eq!(
            bench.refused("edit_file", edit("large", "a", "b", true)).await.0,
            DomainCode::LimitExceeded
        );
        // Replacing many occurrences of a short text with a long one must not exceed the limit.
        let long = "b".repeat(1 << 20);
        assert_eq!(
            bench.refused("edit_file", edit("just", "a", &long, true)).await.0,
            DomainCode::LimitExceeded
        );
        assert_eq!(bench.done("edit_file", edit("just", "a", "b", true)).await["replacements"], 1 << 20);
    });
    Ok(())
}

fn listing(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        bench
            .shell(
                "mkdir -p src/deep .git/objects many; echo x >src/a.rs; echo x >src/deep/b.rs; echo x >.git/config
                 ln -s src inner; ln -s /etc outer; ln -s ../.. src/up; mkfifo pipe
                 touch \"$(printf 'two\\nlines')\" \"$(printf 'odd\\377')\"
                 i=0; while [ $i -lt 1001 ]; do : >many/$i; i=$((i+1)); done",
            )
            .await;
        let content = |value: serde_json::Value| value["content"].as_str().unwrap().to_owned();
        let flat = content(bench.done("list_directory", json!({})).await);
        let expected = [
            "[DIR]  .git",
            "[SYMLINK] inner -> src",
            "[DIR]  many",
            r"[FILE] odd\xff (0 bytes)",
            "[SYMLINK] outer -> /etc (out of the workspace)",
            "[OTHER] pipe",
            "[DIR]  src",
            r"[FILE] two\u{a}lines (0 bytes)",
        ];
        assert_eq!(flat.lines().collect::<Vec<_>>(), expected);
        let deep = json!({ "pattern": "*.rs", "recursive": true });
        assert_eq!(
            content(bench.done("list_directory", deep).await),
            "[FILE] src/a.rs (2 bytes)\n[FILE] src/deep/b.rs (2 bytes)"
        );
        let one = content(bench.done("list_directory", json!({ "pattern": "src/*" })).await);
        assert_eq!(
            one,
            "[FILE] src/a.rs (2 bytes)\n[DIR]  src/deep\n[SYMLINK] src/up -> ../.. (out of the workspace)"
        );
        let through =
            content(bench.done("list_directory", json!({ "path": "inner", "pattern": "*.rs" })).await);
        assert_eq!(through, "[FILE] a.rs (2 bytes)");
        let many = bench.done("list_directory", json!({ "path": "many" })).await;
        assert_eq!((&many["entries"], &many["truncated"]), (&json!(1000), &json!(true)));
        let all =
            content(bench.done("list_directory", json!({ "recursive": true, "pattern": "**/conf*" })).await);
        assert_eq!(all, "(empty)", "what git keeps is not shown");
        assert_eq!(content(bench.done("list_directory", json!({ "path": ".git" })).await).lines().count(), 2);
        for pattern in ["../*", "/etc/*", "a/../b", "**/x"] {
            let (code, said) = bench.refused("list_directory", json!({ "pattern": pattern })).await;
            assert_eq!(code, DomainCode::InvalidArgument, "{pattern}: {said}");
        }
        for (path, code) in [("none", DomainCode::NotFound), ("src/a.rs", DomainCode::ToolFailed)] {
            assert_eq!(bench.refused("list_directory", json!({ "path": path })).await.0, code, "{path}");
        }
        bench.shell("mkdir closed; chmod 0 closed").await;
        let closed =
            content(bench.done("list_directory", json!({ "recursive": true, "pattern": "closed" })).await);
        assert_eq!(closed, "[DIR]  closed\n[ERROR] 1 directories could not be read");
    });
    Ok(())
}

fn removing(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        bench.shell("mkdir folder; echo x >folder/f; ln -s folder/f link; ln -s nowhere dangling").await;
        for (path, code) in [("folder", DomainCode::ToolFailed), ("none", DomainCode::NotFound)] {
            assert_eq!(bench.refused("delete_file", json!({ "path": path })).await.0, code, "{path}");
        }
        for path in ["link", "dangling"] {
            bench.done("delete_file", json!({ "path": path })).await;
        }
        assert_eq!(bench.shell("ls; cat folder/f").await, "folder\nx\n");
    });
    Ok(())
}
