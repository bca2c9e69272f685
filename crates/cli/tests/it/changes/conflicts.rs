//! Changes that conflict with concurrent changes of the source.

use super::{folders, only};
use crate::BELLJAR;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;
use std::cell::RefCell;
use std::io::{BufRead as _, Read, Write as _};
use std::path::Path;
use std::process::Stdio;

/// Runs a command on a copy of `source`, and calls `meanwhile` when the command has written and not yet ended.
fn overtaken(world: &World, options: &[&str], script: &str, meanwhile: impl Fn()) -> ProgramOutput {
    let script = format!("{script}; echo written; cat");
    let all = [&["exec", "--workspace-copy", "source"], options, &["--", "sh", "-c", &script]].concat();
    let mut child = world
        .command(&all)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 8];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    meanwhile();
    drop(child.stdin.take());
    ProgramOutput::from(child.wait_with_output().unwrap())
}

#[test]
fn changes_without_conflict_are_applied_and_the_rest_is_kept() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/both", "before\n");
        world.write("source/only", "before\n");
        world.write("source/folder/file", "before\n");
        let script = "echo run > both; echo run > only; rm -r folder; echo run > new";
        let ran = overtaken(world, &["--apply"], script, || {
            world.write("source/both", "person\n");
            world.write("source/folder/another", "person\n");
        });
        assert_eq!(ran.code, 5, "{ran:?}");
        let id = only(world);
        assert!(
            ran.stderr.contains("  ! both\n") && ran.stderr.contains(&format!("kept as {id}")),
            "{ran:?}"
        );
        let read = |name: &str| world.read(&format!("source/{name}"));
        assert_eq!(
            (read("both"), read("only"), read("new")),
            ("person\n".into(), "run\n".into(), "run\n".into())
        );
        // A directory with another person's work is left whole.
        assert_eq!((read("folder/file"), read("folder/another")), ("before\n".into(), "person\n".into()));
        let diff = world.run(&["changes", "diff", &id]).succeeded().stdout;
        assert!(diff.contains("-before\n+run\n") && !diff.contains("b/only"), "{diff}");
        let again = world.run(&["changes", "apply", &id, "--json"]);
        assert_eq!((again.code, &again.json()["state"]), (5, &json!("conflict")), "{again:?}");
        world.run(&["changes", "apply", &id, "both", "--overwrite", "both"]).succeeded();
        assert_eq!(read("both"), "run\n");
        world.run(&["changes", "rm", &id]).succeeded();
        assert_eq!(read("folder/another"), "person\n");
        assert_eq!(folders(world), Vec::<String>::new());
    });
}

#[test]
fn concurrent_source_changes_are_reported_apart_from_the_runs_changes() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        world.write("source/other", "before\n");
        world.write("source/folder/gone", "before\n");
        let ran = overtaken(world, &[], "echo run > file", || {
            world.write("source/other", "person\n");
            std::fs::remove_file(world.path().join("source/folder/gone")).unwrap();
        });
        assert!(ran.stderr.contains("  ! other\n") && ran.stderr.contains("  ! folder/\n"), "{ran:?}");
        let id = only(world);
        let told = world.run(&["changes", "diff", &id, "--json"]).succeeded().json();
        assert_eq!(told["files"], json!([{ "path": "file", "change": "modified" }]));
        assert_eq!(told["changed_in_source"], json!(["folder/", "other"]));
        let applied = world.run(&["changes", "apply", &id, "--json"]).succeeded().json();
        assert_eq!(
            (&applied["state"], &applied["changed_in_source"]),
            (&json!("applied"), &json!(["folder/", "other"]))
        );
        assert_eq!(world.read("source/other"), "person\n");
    });
}

#[test]
fn files_changed_on_both_sides_are_merged_when_the_user_asks() {
    World::as_everyone(BELLJAR, |world| {
        let lines = |first: &str, last: &str| format!("{first}\ntwo\nthree\nfour\nfive\nsix\n{last}\n");
        world.write("source/apart", lines("one", "seven"));
        world.write("source/same", "one\n");
        let script = "sed -i s/seven/run/ apart; echo run > same";
        let ran = overtaken(world, &["--apply"], script, || {
            // Not in place: that would change every copy that shares the file's blocks.
            replace(world, "source/apart", &lines("person", "seven"));
            replace(world, "source/same", "person\n");
        });
        assert_eq!(ran.code, 5, "{ran:?}");
        let id = only(world);
        // The diff is against the state at the start of the run.
        let diff = world.run(&["changes", "diff", &id]).succeeded().stdout;
        assert!(diff.contains("-seven\n+run\n") && !diff.contains("person"), "{diff}");
        let merged = world.run(&["changes", "apply", &id, "--merge", "--json"]);
        assert_eq!((merged.code, &merged.json()["merged"]), (5, &json!(["apart"])), "{merged:?}");
        assert_eq!(world.read("source/apart"), lines("person", "run"));
        assert_eq!(world.read("source/same"), "person\n");
        let marked = world.run(&["changes", "apply", &id, "--merge=markers", "--json"]).succeeded();
        assert_eq!(marked.json()["merged_with_markers"], json!(["same"]));
        let same = world.read("source/same");
        assert!(same.contains("<<<<<<<") && same.contains("person\n") && same.contains("run\n"), "{same}");
        assert_eq!(folders(world), Vec::<String>::new());
    });
}

fn replace(world: &World, name: &str, content: &str) {
    let new = world.write("replacement", content);
    std::fs::rename(new, world.path().join(Path::new(name))).unwrap();
}

#[test]
fn run_on_a_small_directory_sees_no_later_change_of_it() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "v1\n");
        world.write("source/gone", "v1\n");
        let script = "cat file; echo ready; read go; cat file gone; echo v3 > file";
        let all = ["exec", "--workspace-copy", "source", "--", "sh", "-c", script];
        let mut child = world.command(&all).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = [0; 9];
        child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(&said, b"v1\nready\n");
        world.write("source/file", "v2\n");
        std::fs::remove_file(world.path().join("source/gone")).unwrap();
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let mut rest = String::new();
        child.stdout.as_mut().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "v1\nv1\n");
        assert!(child.wait().unwrap().success());
        let diff = world.run(&["changes", "diff", &only(world)]).succeeded().stdout;
        assert!(diff.contains("-v1\n+v3\n"), "{diff}");
    });
}

/// Creates more names than a snapshot supports, so that a run works on an overlay.
fn fill_for_overlay(world: &World) {
    (0..100).for_each(|number| drop(world.write(&format!("source/fill/{number}"), "before\n")));
}

/// Maps a file, writes to it, and writes again after it has read a line.
const MAPS: &str = "
import mmap, sys
file = open(sys.argv[1], 'r+b')
mapped = mmap.mmap(file.fileno(), 0)
mapped[0:5] = b'first'
print('mapped', flush=True)
for line in sys.stdin:
    mapped[0:5] = b'HOST!'
    print('written', flush=True)
";

#[test]
fn file_mapped_writable_by_a_host_program_conflicts() {
    let world = World::new(BELLJAR);
    fill_for_overlay(&world);
    let file = world.write("source/mapped", "before\n");
    world.write("source/read", "before\n");
    let mut program = std::process::Command::new("python3")
        .args(["-c", MAPS, file.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (to, from) = (program.stdin.take().unwrap(), program.stdout.take().unwrap());
    let lines = RefCell::new(std::io::BufReader::new(from).lines());
    assert_eq!(lines.borrow_mut().next().unwrap().unwrap(), "mapped");
    // The page is dirty before the run begins, so that the file's times don't change during it.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let ran = overtaken(&world, &["--apply"], "echo run > mapped; echo run > read", || {
        (&to).write_all(b"write\n").unwrap();
        assert_eq!(lines.borrow_mut().next().unwrap().unwrap(), "written");
    });
    assert_eq!((ran.code, world.read("source/mapped")), (5, "HOST!e\n".to_owned()), "{ran:?}");
    assert_eq!(world.read("source/read"), "run\n", "the control");
    drop(to);
    program.wait().unwrap();
    // Once it is no longer mapped, an approved overwrite writes it.
    world.run(&["changes", "apply", &only(&world), "--overwrite", "mapped"]).succeeded();
    assert_eq!(world.read("source/mapped"), "run\n");
}

#[test]
fn file_deleted_by_the_user_does_not_come_back_from_an_overlay() {
    World::as_everyone(BELLJAR, |world| {
        fill_for_overlay(world);
        for name in ["source/secret", "source/folder/file"] {
            world.write(name, "before\n");
        }
        let script = "echo run > secret.new; mv secret.new secret; echo run >> folder/file; echo run > new";
        let ran = overtaken(world, &["--apply"], script, || {
            std::fs::remove_file(world.path().join("source/secret")).unwrap();
            std::fs::rename(world.path().join("source/folder"), world.path().join("source/renamed")).unwrap();
        });
        assert_eq!(ran.code, 5, "{ran:?}");
        let exists = |name: &str| world.path().join("source").join(name).exists();
        assert!(!exists("secret") && !exists("folder") && exists("renamed/file"), "{ran:?}");
        assert_eq!(world.read("source/new"), "run\n", "the control");
        let again = world.run(&["changes", "apply", &only(world), "--overwrite", "secret"]);
        assert_eq!(again.code, 5, "the renamed directory still conflicts: {again:?}");
        assert_eq!(world.read("source/secret"), "run\n");
    });
}
