//! Effects and refusals of `write_file`, `read_file`, `list_tree` and `search_files`.

use crate::scene::{Scene, job, job_within, sh, step};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

fn error_code(entry: &Value) -> &str {
    entry["error"]["type"].as_str().unwrap_or("success")
}

fn paths(entry: &Value) -> Vec<&str> {
    let entries = entry["result"]["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

// === write_file ===

#[test]
fn write_file_sets_mode_creates_parents_and_writes_any_bytes() {
    let scene = Scene::new();
    let args = json!({ "path": "a/b/c", "content": "AP8=", "encoding": "base64", "mode": "0700" });
    let entry = scene.run_step(step("write_file", args));
    assert_eq!(entry["result"], json!({ "path": "a/b/c", "size_bytes": 2, "created": true, "mode": "0700" }));
    assert_eq!(std::fs::read(scene.inside("a/b/c")).unwrap(), [0, 0xff]);
    assert_eq!(std::fs::metadata(scene.inside("a/b/c")).unwrap().permissions().mode() & 0o7777, 0o700);
    let again = json!({ "path": "a/b/c", "content": "x", "overwrite": false });
    assert_eq!(error_code(&scene.run_step(step("write_file", again))), "step_failed");
    let orphan = json!({ "path": "x/y", "content": "x", "create_parents": false });
    assert_eq!(error_code(&scene.run_step(step("write_file", orphan))), "step_failed");
    assert_eq!(std::fs::read(scene.inside("a/b/c")).unwrap(), [0, 0xff]);
}

#[test]
fn full_disk_leaves_the_old_content_and_no_temporary_file() {
    let scene = Scene::new();
    let mounted = scene.inside("small");
    std::fs::create_dir(&mounted).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=64k", "tmpfs"];
    let is_mounted =
        std::process::Command::new("mount").args(mount).arg(&mounted).status().is_ok_and(|s| s.success());
    if !is_mounted {
        eprintln!("needs the right to mount; not tried");
        return;
    }
    scene.write("small/f", "old");
    let big = json!({ "path": "small/f", "content": "x".repeat(100_000) });
    let entry = scene.run_step(step("write_file", big));
    let control = scene.run_step(step("write_file", json!({ "path": "small/g", "content": "fits" })));
    let names: Vec<_> =
        std::fs::read_dir(&mounted).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let content = std::fs::read(mounted.join("f")).unwrap();
    assert!(std::process::Command::new("umount").arg(&mounted).status().unwrap().success());
    assert_eq!(error_code(&entry), "constraint_violation", "{entry}");
    assert_eq!(content, b"old");
    assert_eq!(error_code(&control), "success");
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn runner_killed_during_a_write_leaves_the_old_or_new_content() {
    let scene = Scene::new();
    let contents = ["a".repeat(300_000), "b".repeat(300_000)];
    let writes = (0..100).map(|at| step("write_file", json!({ "path": "f", "content": contents[at % 2] })));
    let job = job(writes.collect());
    for kill_after in 0..20 {
        let mut child = scene.start(&job);
        let mut log = std::io::BufReader::new(child.stdout.take().unwrap());
        for _ in 0..=kill_after {
            std::io::BufRead::read_line(&mut log, &mut String::new()).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if let Ok(content) = std::fs::read_to_string(scene.inside("f")) {
            assert!(contents.contains(&content), "a mixture of {} bytes", content.len());
        }
        let result = std::fs::read(scene.beside("result.json")).unwrap_or_else(|_| b"{}".to_vec());
        assert!(serde_json::from_slice::<Value>(&result).is_ok(), "half a result");
    }
}

// === read_file ===

#[test]
fn read_file_returns_whole_file_byte_range_or_lines() {
    let scene = Scene::new();
    scene.write("f", "one\ntwo\nthree");
    scene.write("noise", b"a\xffb\ncd");
    let read = |args: Value| scene.run_step(step("read_file", args))["result"].clone();
    let whole = read(json!({ "path": "f" }));
    assert_eq!(whole["content"], "one\ntwo\nthree");
    assert_eq!((&whole["size_bytes"], &whole["truncated"]), (&json!(13), &json!(false)));
    assert_eq!(read(json!({ "path": "f", "start_line": 2 }))["content"], "two\nthree");
    assert_eq!(read(json!({ "path": "f", "end_line": 1 }))["content"], "one\n");
    assert_eq!(read(json!({ "path": "f", "start_line": 3, "end_line": 9 }))["content"], "three");
    assert_eq!(read(json!({ "path": "f", "start_line": 4 }))["content"], "");
    let cut = read(json!({ "path": "f", "max_bytes": 5 }));
    assert_eq!((&cut["content"], &cut["truncated"]), (&json!("one\nt"), &json!(true)));
    let lines = read(json!({ "path": "f", "start_line": 2, "max_bytes": 4 }));
    assert_eq!((&lines["content"], &lines["truncated"]), (&json!("two\n"), &json!(true)));
    let noise = read(json!({ "path": "noise" }));
    assert_eq!((&noise["content"], &noise["encoding"]), (&json!("Yf9iCmNk"), &json!("base64")));
    assert_eq!(read(json!({ "path": "noise", "start_line": 2 }))["encoding"], "utf-8");
}

#[test]
fn read_beyond_the_job_limit_fails_and_beyond_the_step_limit_truncates() {
    let scene = Scene::new();
    scene.write("f", "0123456789");
    let read = |args: Value| {
        let constraints = json!({ "max_runtime_seconds": 60, "max_output_bytes": 9 });
        scene.run(&job_within(constraints, vec![step("read_file", args)]))
    };
    let over = read(json!({ "path": "f" }));
    assert_eq!(over.outcome(), "constraint_violation");
    assert_eq!(over.step(0)["result"]["content"], "012345678");
    assert!(over.result["failure_message"].as_str().unwrap().contains("max_output_bytes"));
    assert_eq!(read(json!({ "path": "f", "max_bytes": 10 })).outcome(), "constraint_violation");
    assert_eq!(read(json!({ "path": "f", "max_bytes": 9 })).outcome(), "success");
    assert_eq!(read(json!({ "path": "f", "end_line": 1, "max_bytes": 3 })).outcome(), "success");
}

// === types and links ===

#[test]
fn steps_read_and_write_only_regular_files_without_blocking() {
    let scene = Scene::new();
    std::fs::write(scene.beside("secret"), "secret").unwrap();
    let _listener = UnixListener::bind(scene.inside("socket")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.inside("fifo"), rustix::fs::Mode::RWXU).unwrap();
    symlink("../secret", scene.inside("out")).unwrap();
    symlink(scene.inside("real"), scene.inside("absolute")).unwrap();
    symlink("loop", scene.inside("loop")).unwrap();
    scene.write("real", "real");
    symlink("real", scene.inside("in")).unwrap();
    let read = |path: &str| scene.run_step(step("read_file", json!({ "path": path })));
    let write = |path: &str| scene.run_step(step("write_file", json!({ "path": path, "content": "x" })));
    for path in ["socket", "fifo", "out", "absolute", "loop"] {
        assert_eq!(error_code(&read(path)), "policy_violation", "{path}");
        assert_eq!(error_code(&write(path)), "policy_violation", "{path}");
    }
    assert_eq!(read("in")["result"]["content"], "real");
    assert_eq!(error_code(&write("in")), "policy_violation", "a link is not replaced");
    assert_eq!(std::fs::read(scene.beside("secret")).unwrap(), b"secret");
    // The control: without the runner, the link does lead out.
    assert_eq!(std::fs::read(scene.inside("out")).unwrap(), b"secret");
}

#[test]
fn no_path_spelling_escapes_the_workspace() {
    let scene = Scene::new();
    std::fs::write(scene.beside("secret"), "secret").unwrap();
    std::fs::create_dir(scene.beside("workspace-x")).unwrap();
    scene.write("f", "inside");
    let beside = scene.beside("secret").display().to_string();
    let sibling = format!("{}-x/f", scene.beside("workspace").display());
    let long_component = "x".repeat(256);
    let (long, deep) = ("x/".repeat(2049), "../".repeat(1000));
    let forms = [
        "..",
        "../secret",
        "./../secret",
        "a/../../secret",
        "a/..",
        "f/../../secret",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "/workspace/../secret",
        "/workspace-x/f",
        "/proc/self/root/etc/passwd",
        "/proc/self/fd/0",
        "/proc/1/cwd",
        "a//b",
        "",
        "f\u{0}",
        "f\n",
        "f\r",
        "f\u{1b}[31m",
        "f\u{202e}txt",
        "f\u{200f}",
        "f\u{feff}",
        "~/x/../../..",
        &beside,
        &sibling,
        &long_component,
        &long,
        &deep,
        "f/",
        "f/.",
        ".",
    ];
    for form in forms {
        for step_type in ["read_file", "write_file"] {
            let args = match step_type {
                "read_file" => json!({ "path": form }),
                _ => json!({ "path": form, "content": "x" }),
            };
            let ran = scene.run(&job(vec![step(step_type, args)]));
            let outcome = ran.outcome();
            assert!(
                matches!(outcome, "policy_violation" | "schema_validation"),
                "{step_type} {form:?}: {outcome}"
            );
        }
        for (step_type, args) in [
            ("list_tree", json!({ "path": form })),
            ("search_files", json!({ "path": form, "pattern": "secret" })),
            ("run_command", json!({ "argv": ["pwd"], "cwd": form })),
        ] {
            let ran = scene.run(&job(vec![step(step_type, args)]));
            let says_where_it_is = |text: &str| text.contains("secret") && !form.contains("secret");
            assert!(ran.outcome() != "internal_error", "{step_type} {form:?}");
            assert!(!says_where_it_is(&ran.result["steps"].to_string()), "{step_type} {form:?}");
        }
    }
    assert_eq!(std::fs::read(scene.beside("secret")).unwrap(), b"secret");
    assert_eq!(std::fs::read(scene.inside("f")).unwrap(), b"inside");
    assert_eq!(std::fs::read_dir(scene.beside("workspace-x")).unwrap().count(), 0);
    // The control: a harmless form of the same file.
    let control = scene.run_step(step("read_file", json!({ "path": "./f" })));
    assert_eq!(control["result"]["content"], "inside");
}

// === list_tree ===

#[test]
fn list_tree_has_a_stable_order_and_shows_symlinks_without_following_them() {
    let scene = Scene::new();
    scene.write("b/inner", "12345");
    scene.write("a", "");
    scene.write("b.txt", "");
    scene.write("x", "");
    symlink("b", scene.inside("link")).unwrap();
    symlink(".", scene.inside("b/cycle")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.inside("fifo"), rustix::fs::Mode::RWXU).unwrap();
    let entry = scene.run_step(step("list_tree", json!({})));
    let expected = json!([
        { "path": "a", "type": "file" },
        { "path": "b", "type": "directory" },
        { "path": "b/cycle", "type": "symlink", "target": "." },
        { "path": "b/inner", "type": "file" },
        { "path": "b.txt", "type": "file" },
        { "path": "fifo", "type": "other" },
        { "path": "link", "type": "symlink", "target": "b" },
        { "path": "x", "type": "file" },
    ]);
    assert_eq!(entry["result"]["entries"], expected);
    let sized = scene.run_step(step("list_tree", json!({ "path": "b", "sizes": true })));
    assert_eq!(sized["result"]["entries"][1], json!({ "path": "b/inner", "type": "file", "size_bytes": 5 }));
    assert_eq!(sized["result"]["path"], "b");
}

#[test]
fn list_tree_can_be_limited_by_depth_glob_and_count() {
    let scene = Scene::new();
    for path in ["src/main.rs", "src/deep/lib.rs", "README.md"] {
        scene.write(path, "");
    }
    let list = |args: Value| scene.run_step(step("list_tree", args));
    assert_eq!(paths(&list(json!({ "max_depth": 1 }))), ["README.md", "src"]);
    assert_eq!(paths(&list(json!({ "max_depth": 2 }))), ["README.md", "src", "src/deep", "src/main.rs"]);
    assert_eq!(paths(&list(json!({ "glob": "**/*.rs" }))), ["src/deep/lib.rs", "src/main.rs"]);
    let glob_is_below_path = list(json!({ "path": "src", "glob": "*.rs" }));
    assert_eq!(paths(&glob_is_below_path), ["src/main.rs"]);
    let cut = list(json!({ "max_entries": 2 }));
    assert_eq!((paths(&cut), &cut["result"]["truncated"]), (vec!["README.md", "src"], &json!(true)));
    assert_eq!(list(json!({ "max_entries": 5 }))["result"]["truncated"], false);
    assert_eq!(error_code(&list(json!({ "glob": "[" }))), "step_failed");
}

#[test]
fn non_utf8_file_names_are_shown_in_base64() {
    use std::os::unix::ffi::OsStrExt;
    let scene = Scene::new();
    std::fs::write(scene.beside("workspace").join(std::ffi::OsStr::from_bytes(b"\xff")), "hit").unwrap();
    let listed = scene.run_step(step("list_tree", json!({})));
    assert_eq!(
        listed["result"]["entries"],
        json!([{ "path": "/w==", "type": "file", "encoding": "base64" }])
    );
    let found = scene.run_step(step("search_files", json!({ "pattern": "hit" })));
    assert_eq!(
        found["result"]["matches"],
        json!([{ "path": "/w==", "line": 1, "text": "aGl0", "encoding": "base64" }])
    );
}

// === search_files ===

#[test]
fn search_files_returns_lines_with_context() {
    let scene = Scene::new();
    scene.write("src/a.rs", "one\ntwo\nthree\nfour\n");
    scene.write("src/b.txt", "three\r\n");
    scene.write("binary", b"three\0");
    let search = |args: Value| scene.run_step(step("search_files", args))["result"].clone();
    let found = search(json!({ "pattern": "^three$", "context_lines": 1 }));
    let expected = json!([
        { "path": "src/a.rs", "line": 3, "text": "three", "before": ["two"], "after": ["four"] },
        { "path": "src/b.txt", "line": 1, "text": "three" },
    ]);
    assert_eq!(found["matches"], expected);
    assert_eq!((&found["files_searched"], &found["files_skipped"]), (&json!(2), &json!(1)));
    let narrowed = search(json!({ "pattern": "t", "include": "*.rs", "path": "src", "max_matches": 1 }));
    assert_eq!((narrowed["matches"].as_array().unwrap().len(), &narrowed["truncated"]), (1, &json!(true)));
    assert_eq!(search(json!({ "pattern": "four", "path": "src/a.rs" }))["matches"][0]["line"], 4);
    let refused = scene.run_step(step("search_files", json!({ "pattern": "(?=x)" })));
    assert_eq!(error_code(&refused), "step_failed");
}

// === caps ===

#[test]
fn huge_files_and_trees_are_truncated_in_little_memory() {
    let scene = Scene::new();
    let sparse = std::fs::File::create(scene.inside("sparse")).unwrap();
    sparse.set_len(10 << 30).unwrap();
    let deep = scene.inside("deep");
    std::fs::create_dir(&deep).unwrap();
    let mut at: std::os::fd::OwnedFd = std::fs::File::open(&deep).unwrap().into();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&at, "d", rustix::fs::Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, "d", rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
    }
    drop(at);
    let constraints = json!({ "max_runtime_seconds": 60, "max_output_bytes": 30_000_000 });
    let run = |step: Value| scene.run_in_little_memory(&job_within(constraints.clone(), vec![step]));
    let read = run(step("read_file", json!({ "path": "sparse", "max_bytes": 1000 })));
    assert_eq!((read.outcome(), &read.step(0)["result"]["truncated"]), ("success", &json!(true)));
    let listed = run(step("list_tree", json!({})));
    assert_eq!((listed.outcome(), &listed.step(0)["result"]["truncated"]), ("success", &json!(true)));
    let entries = listed.step(0)["result"]["entries"].as_array().unwrap();
    assert!(entries.len() > 2000, "{}", entries.len());
    let searched = run(step("search_files", json!({ "pattern": "x" })));
    assert_eq!((searched.outcome(), &searched.step(0)["result"]["files_skipped"]), ("success", &json!(1)));
    // Too deep for `rm -r` by path.
    let _ = scene.run(&job(vec![sh("rm -rf deep")]));
}

#[test]
fn a_directory_of_very_many_files_is_listed_in_little_memory() {
    let number: usize = std::env::var("BELLJAR_LISTED_FILES").map_or(50_000, |text| text.parse().unwrap());
    let scene = Scene::new();
    for at in 0..number {
        std::fs::File::create(scene.inside(&format!("{at:07}"))).unwrap();
    }
    let run = |args: Value| {
        let constraints = json!({ "max_runtime_seconds": 60, "max_output_bytes": 100_000 });
        let ran = scene.run_in_little_memory(&job_within(constraints, vec![step("list_tree", args)]));
        assert_eq!(ran.outcome(), "success");
        let shown: Vec<String> = paths(ran.step(0)).into_iter().map(str::to_owned).collect();
        (shown, ran.step(0)["result"]["truncated"].clone())
    };
    // Seven bytes a path, one hundred thousand bytes in all.
    let expected: Vec<String> = (0..14_285).map(|at| format!("{at:07}")).collect();
    assert_eq!(run(json!({})), (expected, json!(true)));
    let last_ten = json!({ "glob": format!("{:06}?", number / 10 - 1) });
    assert_eq!(run(last_ten).0.len(), if number <= 1_000_000 { 10 } else { 0 });
}
