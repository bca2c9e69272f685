//! Effects of `apply_unified_diff` on the files of a workspace.

use crate::scene::{Scene, job_within, step};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn apply(scene: &Scene, diff: &str) -> Value {
    scene.run_step(step("apply_unified_diff", json!({ "diff": diff })))
}

fn error_code(entry: &Value) -> &str {
    entry["error"]["type"].as_str().unwrap_or("success")
}

/// Everything below a directory: paths, modes and contents.
fn snapshot(directory: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let content = match metadata.file_type() {
            kind if kind.is_dir() => {
                waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            kind if kind.is_symlink() => {
                std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            }
            kind if kind.is_file() => std::fs::read(&path).unwrap(),
            _ => Vec::new(),
        };
        let below = path.strip_prefix(directory).unwrap().display().to_string();
        found.push((below, metadata.permissions().mode(), content));
    }
    found.sort();
    found
}

const EDIT_A: &str = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+A\n";

const EVERY_KIND_OF_CHANGE: &str = "\
diff --git a/edited b/edited
--- a/edited
+++ b/edited
@@ -1,2 +1,2 @@
 one
-two
+TWO
diff --git a/deep/gone b/deep/gone
deleted file mode 100644
--- a/deep/gone
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/new/er/file b/new/er/file
new file mode 100755
--- /dev/null
+++ b/new/er/file
@@ -0,0 +1 @@
+new
diff --git a/old name b/renamed
similarity index 100%
rename from old name
rename to renamed
diff --git a/template b/copy
similarity index 100%
copy from template
copy to copy
diff --git a/script b/script
old mode 100644
new mode 100755
diff --git a/was-folder/inside b/was-folder/inside
deleted file mode 100644
--- a/was-folder/inside
+++ /dev/null
@@ -1 +0,0 @@
-inside
diff --git a/was-folder b/was-folder
new file mode 100644
--- /dev/null
+++ b/was-folder
@@ -0,0 +1 @@
+file now
diff --git a/was-file b/was-file
deleted file mode 100644
--- a/was-file
+++ /dev/null
@@ -1 +0,0 @@
-file
diff --git a/was-file/inside b/was-file/inside
new file mode 100644
--- /dev/null
+++ b/was-file/inside
@@ -0,0 +1 @@
+folder now
";

#[test]
fn every_kind_of_change_has_the_same_result_as_git_apply() {
    let scene = Scene::new();
    let (ours, gits) = (scene.beside("workspace"), scene.beside("for-git"));
    std::fs::create_dir(&gits).unwrap();
    let files = [
        ("edited", "one\ntwo\n"),
        ("deep/gone", "gone\n"),
        ("old name", "renamed\n"),
        ("template", "template\n"),
        ("script", "#!/bin/sh\n"),
        ("was-folder/inside", "inside\n"),
        ("was-file", "file\n"),
    ];
    for root in [&ours, &gits] {
        for (name, content) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }
    std::fs::write(scene.beside("diff"), EVERY_KIND_OF_CHANGE).unwrap();
    let git = Command::new("git").arg("apply").arg(scene.beside("diff")).current_dir(&gits).status().unwrap();
    assert!(git.success());
    let entry = apply(&scene, EVERY_KIND_OF_CHANGE);
    assert_eq!(error_code(&entry), "success", "{entry}");
    assert_eq!(snapshot(&ours), snapshot(&gits));
    let told: Vec<(&str, &str)> = entry["result"]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (file["path"].as_str().unwrap(), file["change"].as_str().unwrap()))
        .collect();
    let expected = [
        ("edited", "modified"),
        ("deep/gone", "deleted"),
        ("new/er/file", "created"),
        ("renamed", "renamed"),
        ("copy", "copied"),
        ("script", "mode_changed"),
        ("was-folder/inside", "deleted"),
        ("was-folder", "created"),
        ("was-file", "deleted"),
        ("was-file/inside", "created"),
    ];
    assert_eq!(told, expected);
    assert_eq!(entry["result"]["files"][3]["from"], "old name");
}

#[test]
fn quoted_git_names_are_unquoted() {
    let scene = Scene::new();
    let (ours, gits) = (scene.beside("workspace"), scene.beside("for-git"));
    std::fs::create_dir(&gits).unwrap();
    for root in [&ours, &gits] {
        std::fs::write(root.join("old\tname"), "a\n").unwrap();
    }
    let diff = concat!(
        "diff --git \"a/old\\tname\" \"b/old\\tname\"\n",
        "--- \"a/old\\tname\"\n+++ \"b/old\\tname\"\n@@ -1 +1 @@\n-a\n+A\n",
        "diff --git \"a/two\\nlines\" \"b/two\\nlines\"\nnew file mode 100644\n",
        "--- /dev/null\n+++ \"b/two\\nlines\"\n@@ -0,0 +1 @@\n+b\n",
    );
    std::fs::write(scene.beside("diff"), diff).unwrap();
    let git = Command::new("git").arg("apply").arg(scene.beside("diff")).current_dir(&gits).status().unwrap();
    assert!(git.success());
    let entry = apply(&scene, diff);
    assert_eq!(error_code(&entry), "success", "{entry}");
    assert_eq!(snapshot(&ours), snapshot(&gits));
    let told: Vec<&str> = entry["result"]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    assert_eq!(told, ["old\tname", "two\nlines"]);
    // The control: a quoted name that leads out is refused as any other.
    let out = diff.replace("two\\nlines", "..\\057two");
    assert_eq!(error_code(&apply(&scene, &out)), "policy_violation");
}

#[test]
fn patch_changes_no_file_if_one_does_not_fit() {
    let scene = Scene::new();
    scene.write("a.txt", "a\n");
    scene.write("b.txt", "something else\n");
    let before = snapshot(&scene.beside("workspace"));
    let second = EDIT_A.replace("a.txt", "b.txt");
    for diff in [format!("{EDIT_A}{second}"), format!("{second}{EDIT_A}")] {
        let entry = apply(&scene, &diff);
        assert_eq!(error_code(&entry), "step_failed");
        assert_eq!(snapshot(&scene.beside("workspace")), before);
    }
    // The control: the half that fits does apply by itself.
    assert_eq!(error_code(&apply(&scene, EDIT_A)), "success");
}

#[test]
fn hostile_patch_is_refused_as_a_whole() {
    let scene = Scene::new();
    scene.write("a.txt", "a\n");
    scene.write("folder/f", "a\n");
    scene.write(".git/config", "a\n");
    std::fs::write(scene.beside("secret"), "a\n").unwrap();
    symlink("..", scene.inside("out")).unwrap();
    symlink("folder", scene.inside("in")).unwrap();
    symlink("../secret", scene.inside("link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.inside("fifo"), rustix::fs::Mode::RWXU).unwrap();
    let before = snapshot(scene.beside("").as_path());
    let create = |path: &str, mode: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
        )
    };
    let edit = |path: &str| EDIT_A.replace("a.txt", path);
    let hostile = [
        edit("../secret"),
        edit("folder/../../secret"),
        "--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+A\n".to_owned(),
        edit("out/secret"),
        edit("in/f"),
        edit("link"),
        edit("fifo"),
        edit(".git/config"),
        create(".git/hooks/pre-commit", "100755"),
        create("new", "120000"),
        create("new", "160000"),
        create("new", "104755"),
        create("rtl\u{202e}txt", "100644"),
        "diff --git a/a.txt b/../a\nsimilarity index 100%\nrename from a.txt\nrename to ../a\n".to_owned(),
        "diff --git a/a.txt b/a.txt\nGIT binary patch\nliteral 1\nIcmZPo\n\n".to_owned(),
    ];
    for diff in hostile {
        for whole in [diff.clone(), format!("{EDIT_A}{diff}")] {
            let entry = apply(&scene, &whole);
            assert_eq!(error_code(&entry), "policy_violation", "{whole}\n{entry}");
            for name in ["job.json", "status.json", "result.json"] {
                std::fs::remove_file(scene.beside(name)).unwrap();
            }
            let _ = std::fs::remove_dir(scene.beside("artifacts"));
            assert_eq!(snapshot(scene.beside("").as_path()), before, "{whole}");
        }
    }
}

#[test]
fn allowed_paths_hold_for_paths_inside_a_diff() {
    let scene = Scene::new();
    scene.write("src/a.txt", "a\n");
    scene.write("a.txt", "a\n");
    let constraints =
        json!({ "max_runtime_seconds": 60, "max_output_bytes": 1000, "allowed_paths": ["src"] });
    let run = |diff: String| {
        scene.run(&job_within(constraints.clone(), vec![step("apply_unified_diff", json!({ "diff": diff }))]))
    };
    assert_eq!(run(EDIT_A.to_owned()).outcome(), "policy_violation");
    let rename_out =
        "diff --git a/src/a.txt b/b\nsimilarity index 100%\nrename from src/a.txt\nrename to b\n";
    assert_eq!(run(rename_out.to_owned()).outcome(), "policy_violation");
    assert_eq!(run(EDIT_A.replace("a.txt", "src/a.txt")).outcome(), "success");
}

#[test]
fn patched_file_keeps_permissions_the_patch_does_not_mention() {
    let scene = Scene::new();
    let path = scene.write("a.txt", "a\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(error_code(&apply(&scene, EDIT_A)), "success");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
    let executable = "diff --git a/a.txt b/a.txt\nold mode 100644\nnew mode 100755\n";
    assert_eq!(error_code(&apply(&scene, executable)), "success");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
}

#[test]
fn patch_is_rolled_back_when_a_late_change_fails() {
    let scene = Scene::new();
    scene.write("a.txt", "a\n");
    scene.write("deep/gone", "gone\n");
    // The last file goes where the runner can make a draft but, since it is a mount point, not put it in place.
    let mount_point = scene.write("mounted", "a\n");
    let mount = |arguments: &[&std::ffi::OsStr]| {
        Command::new("mount").args(arguments).status().is_ok_and(|s| s.success())
    };
    if !mount(&["--bind".as_ref(), mount_point.as_os_str(), mount_point.as_os_str()]) {
        eprintln!("needs the right to mount; not tried");
        return;
    }
    let before = snapshot(&scene.beside("workspace"));
    let delete = "--- a/deep/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n";
    let create = "--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+new\n";
    let entry = apply(&scene, &format!("{EDIT_A}{delete}{create}{}", EDIT_A.replace("a.txt", "mounted")));
    let after = snapshot(&scene.beside("workspace"));
    assert!(Command::new("umount").arg(&mount_point).status().unwrap().success());
    assert_eq!(error_code(&entry), "step_failed", "{entry}");
    assert_eq!(after, before);
}

/// A patch that turns `before` into `after` in each of that many files, in ten directories.
fn large_patch(files: usize, before: &str, after: &str) -> (Vec<String>, String) {
    let names: Vec<String> = (0..files).map(|at| format!("d{}/f{at:04}", at * 10 / files)).collect();
    let sections = names
        .iter()
        .map(|name| format!("--- a/{name}\n+++ b/{name}\n@@ -1,2 +1,2 @@\n keep\n-{before}\n+{after}\n"));
    (names.clone(), sections.collect())
}

#[test]
fn a_patch_of_many_files_applies_to_all_of_them() {
    let scene = Scene::new();
    let (names, diff) = large_patch(300, "old", "new");
    for name in &names {
        scene.write(name, "keep\nold\n");
    }
    assert_eq!(error_code(&apply(&scene, &diff)), "success");
    for name in &names {
        assert_eq!(std::fs::read_to_string(scene.inside(name)).unwrap(), "keep\nnew\n");
    }
    assert_eq!(snapshot(&scene.beside("workspace")).len(), 1 + 10 + 300, "and nothing is left beside them");
}

#[test]
fn patch_too_large_for_the_disk_changes_nothing() {
    let scene = Scene::new();
    let workspace = scene.beside("workspace");
    let mount = ["-t", "tmpfs", "-o", "size=3m", "tmpfs"];
    if !Command::new("mount").args(mount).arg(&workspace).status().is_ok_and(|status| status.success()) {
        eprintln!("needs the right to mount; not tried");
        return;
    }
    let long = "x".repeat(9000);
    let (names, diff) = large_patch(300, "old", &long);
    let (_, shorter) = large_patch(300, "old", "new");
    for name in &names {
        scene.write(name, "keep\nold\n");
    }
    let before = snapshot(&workspace);
    let entry = apply(&scene, &diff);
    let after = snapshot(&workspace);
    let control = apply(&scene, &shorter);
    assert!(Command::new("umount").arg(&workspace).status().unwrap().success());
    assert_eq!(error_code(&entry), "constraint_violation", "{entry}");
    assert!(after == before);
    assert_eq!(error_code(&control), "success");
}
