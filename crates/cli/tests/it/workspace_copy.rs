//! A workspace that is a copy: the source stays unchanged; the changes are shown, kept, applied or discarded.

use crate::BELLJAR;
use belljar_testkit::job::{job, shell};
use belljar_testkit::wait;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

const CHANGES: &str = "echo more >> kept; rm gone; chmod +x mode; mkdir new; echo n > 'new/a b'; \
                       rm -r folder; echo now a file > folder; ln -s kept link; echo same > same; \
                       rm -r replaced; mkdir replaced; echo r > replaced/inner; printf 'a\\0b' > binary";

/// Creates a source with a file for every kind of change, and files that stay unchanged.
pub(crate) fn lay_out(world: &World) -> String {
    for (name, content) in [
        ("kept", "line\n"),
        ("gone", "soon\n"),
        ("mode", "m\n"),
        ("same", "same\n"),
        ("folder/below", "f\n"),
        ("replaced/old", "o\n"),
        ("untouched/deep/file", "u\n"),
    ] {
        world.write(&format!("source/{name}"), content);
    }
    world.path().join("source").display().to_string()
}

#[test]
fn source_and_its_timestamps_are_never_changed() {
    World::as_everyone(BELLJAR, |world| {
        let source = lay_out(world);
        let before = world.picture("source");
        let ran = world.run(&["exec", "--workspace-copy", &source, "--", "sh", "-ec", CHANGES]).succeeded();
        assert!(ran.stderr.contains("The changes are kept as "), "{}", ran.stderr);
        assert_eq!(world.picture("source"), before);
        assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
    });
}

#[test]
fn only_actual_changes_are_listed_and_all_of_them() {
    World::as_everyone(BELLJAR, |world| {
        let source = lay_out(world);
        world.write("job.json", job(&json!([shell(CHANGES)])).to_string());
        let ran = world.run(&["run", "--json", "--workspace-copy", &source, "job.json"]).succeeded();
        let changes = ran.json()["changes"].clone();
        let files: Vec<String> = changes["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| format!("{} {}", file["change"].as_str().unwrap(), file["path"].as_str().unwrap()))
            .collect();
        assert_eq!(
            files,
            [
                "created binary",
                "created folder",
                "deleted folder/below",
                "deleted gone",
                "modified kept",
                "created link",
                "mode_changed mode",
                "created new/a b",
                "created replaced/inner",
                "deleted replaced/old",
            ]
        );
    });
}

#[test]
fn apply_makes_the_source_equal_to_the_copy() {
    World::as_everyone(BELLJAR, |world| {
        let source = lay_out(world);
        let apply =
            ["exec", "--apply", "--trust", "mode", "--workspace-copy", &source, "--", "sh", "-ec", CHANGES];
        world.run(&apply).succeeded();
        // Make the changes by hand on equal files.
        let expected = World::new(BELLJAR);
        let by_hand = lay_out(&expected);
        assert!(Command::new("sh").args(["-ec", CHANGES]).current_dir(&by_hand).status().unwrap().success());
        let differ = Command::new("diff").args(["-r", &source, &by_hand]).output().unwrap();
        assert!(differ.status.success(), "{}", String::from_utf8_lossy(&differ.stdout));
        let modes = |folder: &str| {
            let find = Command::new("find").args([folder, "-printf", "%P %y %m %l\\n"]).output().unwrap();
            let mut lines: Vec<String> =
                String::from_utf8(find.stdout).unwrap().lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(modes(&source), modes(&by_hand));
    });
}

#[test]
fn diff_is_a_patch_that_git_applies_to_the_same_result() {
    let world = World::new(BELLJAR);
    let source = lay_out(&world);
    let text_only = CHANGES.replace("printf 'a\\0b' > binary", "printf 'no newline' > tail");
    world.write("job.json", job(&json!([shell(&text_only)])).to_string());
    let ran = world.run(&["run", "--json", "--workspace-copy", &source, "job.json"]).succeeded();
    world.write("changes.diff", ran.json()["changes"]["diff"].as_str().unwrap());
    let git = Command::new("git").args(["apply", "../changes.diff"]).current_dir(&source).output().unwrap();
    assert!(git.status.success(), "{git:?}");
    let by_hand = World::new(BELLJAR);
    let expected = lay_out(&by_hand);
    assert!(Command::new("sh").args(["-ec", &text_only]).current_dir(&expected).status().unwrap().success());
    let differ = Command::new("diff").args(["-r", &source, &expected]).output().unwrap();
    assert!(differ.status.success(), "{}", String::from_utf8_lossy(&differ.stdout));
}

#[test]
fn kept_changes_are_in_the_runs_folder() {
    let world = World::new(BELLJAR);
    let source = lay_out(&world);
    world.write("job.json", job(&json!([shell("echo more >> kept")])).to_string());
    let ran = world.run(&["run", "--keep", "--workspace-copy", &source, "job.json"]).succeeded();
    let folder = ran.stderr.lines().find_map(|line| line.strip_prefix("The run is kept in ")).unwrap();
    assert_eq!(std::fs::read_to_string(format!("{folder}/private/upper/kept")).unwrap(), "line\nmore\n");
    assert!(std::fs::metadata(format!("{folder}/private/job/result.json")).unwrap().is_file());
}

#[test]
fn source_changes_made_in_the_meantime_are_not_overwritten() {
    let world = World::new(BELLJAR);
    let source = lay_out(&world);
    let before = world.picture("source");
    let mut command = world.command(&["exec", "--apply", "--workspace-copy", &source, "--", "sh", "-c"]);
    // The command reports when it has written, and waits until the source has changed.
    let command = command.arg("echo theirs > kept; echo written; cat");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0; 8];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    world.write("source/kept", "mine\n");
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(world.read("source/kept"), "mine\n");
    assert_eq!(world.picture("source").len(), before.len());
}

#[test]
fn directories_without_permissions_are_removed_with_the_run() {
    World::as_everyone(BELLJAR, |world| {
        let source = lay_out(world);
        let script = "mkdir -p a/b/c; touch a/b/c/d; chmod 0 a/b/c a/b a";
        let discard = ["exec", "--discard", "--workspace-copy", &source, "--", "sh", "-ec", script];
        world.run(&discard).succeeded();
        assert_eq!(crate::changes::folders(world), Vec::<String>::new());
        world.run(&["exec", "--workspace-copy", &source, "--", "sh", "-ec", script]).succeeded();
        world.run(&["changes", "rm", &crate::changes::only(world)]).succeeded();
        assert_eq!(crate::changes::folders(world), Vec::<String>::new());
    });
}

#[test]
fn tree_of_ten_thousand_levels_is_removed_with_the_run() {
    let world = World::new(BELLJAR);
    let source = lay_out(&world);
    let script = "import os\nfor _ in range(10_000):\n    os.mkdir('d'); os.chdir('d')\n";
    let ran = world.run(&["exec", "--discard", "--workspace-copy", &source, "--", "python3", "-c", script]);
    assert_eq!(crate::changes::folders(&world), Vec::<String>::new(), "{}", ran.stderr);
}

/// Creates a path of 5,000 bytes step by step, because it is too long for one call.
const DEEP: &str = "import os\nfor _ in range(500):\n    os.mkdir('long-name'); os.chdir('long-name')\n";

#[test]
fn change_with_a_path_too_long_to_report_fails_only_the_job() {
    World::as_everyone(BELLJAR, |world| {
        let source = lay_out(world);
        let before = world.picture("source");
        world.write(
            "job.json",
            job(&json!([{ "type": "run_command", "args": { "argv": ["python3", "-c", DEEP] } }])).to_string(),
        );
        let ran = world.run(&["run", "--json", "--workspace-copy", &source, "job.json"]);
        assert_eq!((ran.code, &ran.json()["failure_code"]), (1, &json!("constraint_violation")), "{ran:?}");
        let error = ran.json()["failure_message"].to_string();
        assert!(error.contains("exceeds the maximum path length"), "{error}");
        let ran = world.run(&["exec", "--workspace-copy", &source, "--", "python3", "-c", DEEP]);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert_eq!(world.picture("source"), before);
        // Everything is kept, and a person can remove even that.
        for id in crate::changes::ids(world) {
            let shown = world.run(&["changes", "show", &id]).succeeded().stdout;
            assert!(shown.contains("Longer than a path may be"), "{shown}");
            world.run(&["changes", "rm", &id]).succeeded();
        }
        assert_eq!(crate::changes::folders(world), Vec::<String>::new());
    });
}

#[test]
fn copy_is_of_the_intended_directory_despite_concurrent_renames() {
    World::as_everyone(BELLJAR, |world| {
        let source = lay_out(world);
        world.write("other/kept", "another\n");
        world.write(
            "job.json",
            job(&json!([shell("touch /job/artifacts/here; sleep 1; echo more >> kept")])).to_string(),
        );
        let child = world
            .command(&["run", "--json", "--workspace-copy", &source, "job.json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let runs = world.path().join("state/runs");
        wait::until(|| {
            let mut runs = std::fs::read_dir(&runs).into_iter().flatten().flatten();
            runs.any(|run| run.path().join("private/job/artifacts/here").exists())
        });
        std::fs::rename(&source, world.path().join("moved")).unwrap();
        std::fs::rename(world.path().join("other"), &source).unwrap();
        let ran = ProgramOutput::from(child.wait_with_output().unwrap()).succeeded();
        let diff = ran.json()["changes"]["diff"].as_str().unwrap().to_owned();
        assert!(diff.contains(" line\n+more\n"), "{diff}");
    });
}

#[test]
fn sparse_file_is_applied_as_one() {
    World::as_everyone(BELLJAR, |world| {
        let source = lay_out(world);
        let script =
            "truncate -s 1T holes; printf end | dd of=holes bs=1 seek=1000000000000 conv=notrunc 2>/dev/null";
        world.run(&["exec", "--apply", "--workspace-copy", &source, "--", "sh", "-c", script]).succeeded();
        let metadata = world.path().join("source/holes").metadata().unwrap();
        assert_eq!(metadata.len(), 1 << 40);
        assert!(metadata.blocks() < 1000, "{}", metadata.blocks());
        let mut file = std::fs::File::open(world.path().join("source/holes")).unwrap();
        file.seek(SeekFrom::Start(1_000_000_000_000)).unwrap();
        let mut end = [0; 4];
        file.read_exact(&mut end).unwrap();
        assert_eq!(&end, b"end\0");
    });
}

#[test]
fn run_that_has_filled_the_disk_is_still_removed() {
    if !rustix::process::geteuid().is_root() {
        return belljar_testkit::skip::skip("a small file system", "mounting one needs root");
    }
    let world = World::new(BELLJAR);
    let source = lay_out(&world);
    let state = world.path().join("state").display().to_string();
    std::fs::create_dir(&state).unwrap();
    // Uses up the inodes by directories and files, in a mount namespace of the test's own.
    let fill = "i=0; while mkdir d$i && touch d$i/f; do i=$((i+1)); done 2>/dev/null; test $i -gt 20";
    let script = format!(
        "mount -t tmpfs -o size=16m,nr_inodes=200,mode=755 none {state} && \
         {BELLJAR} exec --discard --workspace-copy {source} -- sh -c '{fill}' && ls {state}/runs"
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", &script]).env("BELLJAR_STATE_DIR", &state);
    let ran = ProgramOutput::from(command.output().unwrap()).succeeded();
    assert_eq!(ran.stdout, "", "{}", ran.stderr);
}
