//! The end of a run: with a question, with flags, or with neither.

use super::{folders, ids, list, only};
use crate::BELLJAR;
use belljar_testkit::job::{job, shell};
use belljar_testkit::terminal::at_a_terminal;
use belljar_testkit::world::{ProgramOutput, User, World};
use serde_json::{Value, json};

const EXEC: [&str; 3] = ["exec", "--workspace-copy", "source"];

fn exec(world: &World, options: &[&str], script: &str) -> ProgramOutput {
    world.run(&[&EXEC, options, &["--", "sh", "-c", script]].concat())
}

#[test]
fn changes_of_a_command_are_kept_shown_applied_and_then_removed() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let ran = exec(world, &[], "echo after > file; echo new > other").succeeded();
        let id = only(world);
        assert!(ran.stderr.contains(&format!("The changes are kept as {id} for 14 days")), "{ran:?}");
        assert!(ran.stderr.contains(&format!("belljar changes apply {id}")), "{ran:?}");
        assert_eq!(world.read("source/file"), "before\n");
        let kept = list(world).remove(0);
        let source = world.path().join("source").display().to_string();
        assert_eq!(
            (&kept["kind"], &kept["files"], &kept["source"]),
            (&json!("exec"), &json!(2), &json!(source))
        );
        assert_eq!(kept["was_cut_off"], false);
        let shown = world.run(&["changes", "show", &id]).succeeded().stdout;
        assert!(shown.contains("M file\n") && shown.contains("A other\n"), "{shown}");
        let diff = world.run(&["changes", "diff", &id[..30]]).succeeded().stdout;
        assert!(diff.contains("-before\n+after\n") && diff.contains("+new\n"), "{diff}");
        let part = world.run(&["changes", "diff", &id, "other"]).succeeded().stdout;
        assert!(!part.contains("before") && part.contains("+new\n"), "{part}");
        // Apply a part first: the rest stays.
        world.run(&["changes", "apply", &id, "other"]).succeeded();
        assert_eq!(
            (world.read("source/file"), world.read("source/other")),
            ("before\n".into(), "new\n".into())
        );
        let left = world.run(&["changes", "diff", &id, "--json"]).succeeded().json();
        assert_eq!(left["files"], json!([{ "path": "file", "change": "modified" }]));
        let applied = world.run(&["changes", "apply", &id, "--json"]).succeeded().json();
        assert_eq!(applied["state"], "applied");
        assert_eq!(world.read("source/file"), "after\n");
        assert_eq!((ids(world), folders(world)), (Vec::<String>::new(), Vec::new()));
        let gone = world.run(&["changes", "show", &id]);
        assert!(gone.code == 125 && gone.stderr.contains("belljar changes list"), "{gone:?}");
    });
}

#[test]
fn unchanged_or_discarded_run_keeps_nothing() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        exec(world, &[], "cat file").succeeded();
        assert_eq!(folders(world), Vec::<String>::new());
        let ran = exec(world, &["--discard"], "echo after > file").succeeded();
        assert!(
            ran.stderr.contains("+after") && ran.stderr.contains("The changes are discarded."),
            "{ran:?}"
        );
        assert_eq!(folders(world), Vec::<String>::new());
        assert_eq!(world.run(&[&EXEC[..], &["--", "no-such-program"]].concat()).code, 127);
        assert_eq!(folders(world), Vec::<String>::new());
        // The control.
        exec(world, &[], "echo after > file").succeeded();
        only(world);
    });
}

#[test]
fn failed_or_untrusted_run_loses_no_changes() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let ran = exec(world, &["--apply"], "echo after > file; exit 3");
        let id = only(world);
        assert!(ran.code == 3 && ran.stderr.contains(&format!("kept as {id}")), "{ran:?}");
        world.run(&["changes", "rm", &id]).succeeded();
        let ran = exec(world, &["--apply"], "echo after > file; echo 'all:' > Makefile");
        let id = only(world);
        assert!(ran.code == 3 && ran.stderr.contains(&format!("kept as {id}")), "{ran:?}");
        assert_eq!(world.read("source/file"), "before\n");
        let refused = world.run(&["changes", "apply", &id]);
        assert!(refused.code == 3 && refused.stderr.contains("Makefile"), "{refused:?}");
        world.run(&["changes", "apply", &id, "--trust", "Makefile"]).succeeded();
        assert_eq!(world.read("source/Makefile"), "all:\n");
    });
}

#[test]
fn job_result_states_what_happened_to_its_changes() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        world.write("job.json", job(&json!([shell("echo after > file")])).to_string());
        let run = |options: &[&str]| -> Value {
            let all = ["run", "--json", "--workspace-copy", "source", "job.json"];
            world.run(&[&all[..], options].concat()).succeeded().json()
        };
        let kept = run(&[]);
        let id = only(world);
        assert_eq!((&kept["changes"]["state"], &kept["changes"]["id"]), (&json!("kept"), &json!(id)));
        world.run(&["changes", "rm", &id]).succeeded();
        assert_eq!(run(&["--discard"])["changes"]["state"], "discarded");
        let applied = run(&["--apply"]);
        assert_eq!((&applied["changes"]["state"], applied["changes"].get("id")), (&json!("applied"), None));
        assert_eq!(world.read("source/file"), "after\n");
        assert_eq!(folders(world), Vec::<String>::new());
    });
}

/// Runs a command at a terminal, and types an answer to its question.
fn answered(world: &World, script: &str, typed: &str) -> String {
    let ran =
        at_a_terminal(world, &format!("{BELLJAR} exec --workspace-copy source -- sh -c '{script}'"), typed);
    ran.succeeded().stdout
}

#[test]
fn user_at_a_terminal_is_asked_what_to_do_with_the_changes() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    for typed in ["k\n", ""] {
        let shown = answered(&world, "echo after >file", typed);
        let id = only(&world);
        assert!(shown.contains(&format!("kept as {id}")), "{shown}");
        world.run(&["changes", "rm", &id]).succeeded();
    }
    assert!(answered(&world, "echo after >file", "what\nd\n").contains("The changes are discarded."));
    assert_eq!((world.read("source/file"), folders(&world)), ("before\n".to_owned(), Vec::new()));
    assert!(answered(&world, "echo after >file", "a\n").contains("The changes are applied."));
    assert_eq!((world.read("source/file"), folders(&world)), ("after\n".to_owned(), Vec::new()));
}

#[test]
fn files_that_are_not_shown_need_a_separate_approval() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    let script = "echo after >file; head -c 100 /dev/zero >binary";
    let shown = answered(&world, script, "a\nn\n");
    assert!(shown.contains("A binary  (not shown: 100 bytes, sha256 cd00e292c5970d3c5e2f0ffa5171e555bc46bfc4faddfb4a418b6840b86e79a3)"), "{shown}");
    let id = only(&world);
    assert_eq!(world.read("source/file"), "before\n");
    // A digest identifies the shown content.
    let json = world.run(&["changes", "diff", &id, "--json"]).succeeded().json();
    assert_eq!(json["files"][0]["unshown"]["size_bytes"], 100);
    let digest = json["digest"].as_str().unwrap();
    let apply =
        |options: &[&str]| world.run(&[&["changes", "apply", &id, "--reviewed", digest], options].concat());
    let refused = apply(&[]);
    assert!(
        refused.code == 3 && refused.stderr.contains("does not show the content of: binary"),
        "{refused:?}"
    );
    assert_eq!(refused.stdout, "");
    // The JSON output contains errors, too.
    let refused = apply(&["--json"]).json();
    assert_eq!(refused["error"]["exit_code"], 3);
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("does not show the content of"),
        "{refused}"
    );
    let unknown = world.run(&["changes", "show", "none", "--json"]).json();
    assert!(unknown["error"]["message"].as_str().unwrap().contains("none"), "{unknown}");
    assert_eq!(world.read("source/file"), "before\n");
    apply(&["--unshown"]).succeeded();
    assert_eq!(world.read("source/file"), "after\n");
    // The controls: an approval at the terminal, and changes that are shown completely.
    assert!(
        answered(&world, "rm file; rm binary; head -c 9 /dev/zero >other", "a\ny\n").contains("are applied")
    );
    assert!(answered(&world, "echo text >another", "a\n").contains("are applied"));
    assert_eq!(world.read("source/another"), "text\n");
}

#[test]
fn changes_with_a_missing_source_are_listed_and_readable_in_their_folder() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    exec(&world, &[], "echo after > file").succeeded();
    let id = only(&world);
    std::fs::rename(world.path().join("source"), world.path().join("moved")).unwrap();
    world.write("source/file", "another directory\n");
    let refused = world.run(&["changes", "apply", &id]);
    assert!(refused.code == 125 && refused.stderr.contains("no longer exists"), "{refused:?}");
    assert_eq!(world.read("source/file"), "another directory\n");
    let shown = world.run(&["changes", "show", &id]).succeeded().stdout;
    assert!(shown.contains(&format!("state/kept/{id}")), "{shown}");
    std::fs::remove_dir_all(world.path().join("source")).unwrap();
    std::fs::rename(world.path().join("moved"), world.path().join("source")).unwrap();
    world.run(&["changes", "apply", &id]).succeeded();
    assert_eq!(world.read("source/file"), "after\n");
}

#[test]
fn file_behind_a_symlink_with_a_trusted_name_needs_approval() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/rules.txt", "all:\n");
        world.write("source/other.txt", "before\n");
        world.write("source/hooks/README", "before\n");
        std::os::unix::fs::symlink("rules.txt", world.path().join("source/Makefile")).unwrap();
        std::fs::create_dir(world.path().join("source/.git")).unwrap();
        std::os::unix::fs::symlink("../hooks", world.path().join("source/.git/hooks")).unwrap();
        let run = |script: &str, options: &[&str]| {
            let options = [&["exec", "--workspace-copy", "source", "--apply"], options].concat();
            world.run(&[&options[..], &["--", "sh", "-c", script]].concat())
        };
        for (script, path, link) in [
            ("echo evil >> rules.txt", "rules.txt", "the link Makefile leads to it"),
            ("echo evil > hooks/pre-commit", "hooks/pre-commit", "git settings name hooks"),
        ] {
            let ran = run(script, &[]);
            assert_eq!(ran.code, 3, "{ran:?}");
            assert!(ran.stderr.contains(path) && ran.stderr.contains(link), "{ran:?}");
            assert!(!world.path().join("source/hooks/pre-commit").exists());
            assert_eq!(world.read("source/rules.txt"), "all:\n");
        }
        // The controls.
        run("echo after > other.txt", &[]).succeeded();
        assert_eq!(world.read("source/other.txt"), "after\n");
        run("echo more >> rules.txt", &["--trust", "rules.txt"]).succeeded();
        assert_eq!(world.read("source/rules.txt"), "all:\nmore\n");
    });
}

#[test]
fn pipes_and_sockets_are_neither_shown_nor_applied() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/replaced", "before\n");
        world.write("source/removed", "before\n");
        let script = "mkfifo new; rm replaced; mkfifo replaced; rm removed; echo after > file; \
                      python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'";
        let ran = exec(world, &["--apply"], script).succeeded();
        assert!(ran.stderr.contains("  D replaced\n"), "{ran:?}");
        let names = std::fs::read_dir(world.path().join("source")).unwrap();
        let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["file"]);
        // The control: special files alone are no change.
        exec(world, &["--apply"], "mkfifo new").succeeded();
        assert_eq!(ids(world), Vec::<String>::new());
    });
}

#[test]
fn created_and_removed_directories_are_listed_and_need_approval_in_a_repository() {
    World::as_everyone(BELLJAR, |world| {
        for path in ["source/.git/HEAD", "source/empty/file"] {
            world.write(path, "ref: refs/heads/main\n");
        }
        std::fs::remove_file(world.path().join("source/empty/file")).unwrap();
        let is_there = |path: &str| world.path().join("source").join(path).exists();
        let ran = exec(world, &["--apply"], "rmdir empty; mkdir -p new/sub").succeeded();
        for line in ["2 directories changed in the copy", "D empty/\n", "A new/sub/\n", "changes are applied"]
        {
            assert!(ran.stderr.contains(line), "{line}: {ran:?}");
        }
        assert!(is_there("new/sub") && !is_there("empty"));
        let ran = exec(world, &["--apply"], "mkdir .git/index.lock");
        assert!(ran.code == 3 && ran.stderr.contains("A .git/index.lock/\n"), "{ran:?}");
        assert!(!is_there(".git/index.lock"));
        let id = only(world);
        assert_eq!(list(world)[0]["files"], 1);
        let diff = world.run(&["changes", "diff", &id]).succeeded();
        assert!(diff.stdout.is_empty() && diff.stderr.contains(".git/index.lock/  new"), "{diff:?}");
        let stat = world.run(&["changes", "diff", &id, "--stat"]).succeeded().stdout;
        assert!(stat.contains("new directory") && stat.contains("1 directory changed"), "{stat}");
        let shown = world.run(&["changes", "diff", &id, "--json"]).succeeded().json();
        assert_eq!(shown["files"], json!([{ "path": ".git/index.lock/", "change": "created" }]));
        // The control: with an approval it is created.
        world.run(&["changes", "apply", &id, "--trust", ".git/index.lock/"]).succeeded();
        assert!(is_there(".git/index.lock"));
    });
}

#[test]
fn unreadable_file_does_not_abort_the_review() {
    World::as_everyone(BELLJAR, |world| {
        let secret = world.write("source/secret", "before\n");
        std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
        let ran = exec(world, &[], "rm -f secret; echo new >secret; echo other >other").succeeded();
        let id = only(world);
        assert!(ran.stderr.contains(&format!("kept as {id}")), "{ran:?}");
        for shown in [ran.stderr, world.run(&["changes", "diff", &id]).succeeded().stdout] {
            assert!(shown.contains("+++ b/other\n@@ -0,0 +1 @@\n+other\n"), "{shown}");
            // The control: root reads every file.
            let is_read = world.user() == User::Own && rustix::process::geteuid().is_root();
            assert_eq!(shown.contains("+new\n"), is_read, "{shown}");
            assert_eq!(shown.contains("Binary files a/secret and b/secret differ\n"), !is_read, "{shown}");
        }
    });
}

#[test]
fn changes_path_is_accepted_without_its_dot_and_unknown_paths_are_refused() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    exec(&world, &[], "echo after >file; mkdir d; echo new >d/b").succeeded();
    let id = only(&world);
    for command in ["diff", "apply"] {
        for path in ["nosuch", "d/../file", "/file"] {
            let refused = world.run(&["changes", command, &id, path]);
            let is_told = refused.stderr.contains("nothing was changed at");
            assert!(refused.code == 125 && is_told && refused.stdout.is_empty(), "{path}: {refused:?}");
        }
    }
    let diff = |path: &str| world.run(&["changes", "diff", &id, path]).succeeded().stdout;
    assert!(diff("./d/b").contains("+new") && !diff("./d/b").contains("+after"));
    assert_eq!(diff("./d/./b"), diff("d/b"));
    assert!(diff(".").contains("+after"), "the whole diff");
    world.write("source/file", "person\n");
    let apply = |path: &str| world.run(&["changes", "apply", &id, "--overwrite", path]);
    let refused = apply("nosuch");
    assert!(refused.code == 125 && refused.stderr.contains("nothing was changed at"), "{refused:?}");
    assert_eq!(world.read("source/file"), "person\n");
    apply("./file").succeeded();
    assert_eq!(world.read("source/file"), "after\n");
}
