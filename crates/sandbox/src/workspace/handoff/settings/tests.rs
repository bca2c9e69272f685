//! What settings of Git name in a tree.

use super::super::tests::{Trees, asked_in};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

#[test]
fn what_the_settings_of_the_repository_name_takes_a_yes() {
    let trees = Trees::new();
    trees.git("tree", &["init", "--quiet", "."]);
    for path in ["scripts/hooks/pre-commit", "conf/git.inc", "conf/more.inc", "tools/diff.txt", "other/x.txt"]
    {
        trees.write(&format!("layer/{path}"), "x\n");
    }
    assert_eq!(trees.asked(), [""; 0]);
    trees.git("tree", &["config", "core.hooksPath", "scripts/hooks"]);
    trees.git("tree", &["config", "include.path", "../conf/git.inc"]);
    trees.git("tree", &["config", "diff.x.textconv", "sh tools/diff.txt"]);
    trees.write("tree/conf/git.inc", "[include]\n\tpath = more.inc\n");
    assert_eq!(
        trees.asked(),
        ["conf/git.inc git", "conf/more.inc git", "scripts/hooks/pre-commit git", "tools/diff.txt git"]
    );
}

/// A tree that is a repository with one setting, and a layer with changed files.
fn with_setting(name: &str, value: &str, changed: &[&str]) -> Trees {
    let trees = Trees::new();
    trees.git("tree", &["init", "--quiet", "."]);
    trees.git("tree", &["config", name, value]);
    changed.iter().for_each(|path| trees.write(&format!("layer/{path}"), "x\n"));
    trees
}

#[test]
fn file_that_a_setting_runs_takes_a_yes_however_the_command_names_it() {
    for (name, value, path) in [
        ("alias.x", "!sh deploy", "deploy"),
        ("alias.x", "!sh deploy", "sub/deploy"),
        ("alias.x", "!sh \"$(git rev-parse --show-toplevel)/tools/x.txt\"", "tools/x.txt"),
        ("alias.x", "!sh $PWD/tools/x.txt", "tools/x.txt"),
        ("alias.x", "!cd tools && sh ./x.txt", "tools/x.txt"),
        ("alias.x", "bisect run sh deploy", "deploy"),
        ("core.fsmonitor", "sh watch", "watch"),
        ("core.editor", "sh ed", "ed"),
        ("core.pager", "sh pg", "pg"),
        ("core.hooksPath", "a#b", "a#b/x"),
        ("core.hooksPath", "d;h", "d;h/x"),
        ("core.hooksPath", "a\\b", "a\\b/x"),
        ("filter.x.clean", "sh \"$(git rev-parse --show-toplevel)\"/tools/x.txt", "tools/x.txt"),
        ("diff.x.textconv", "sh conv", "conv"),
        ("remote.o.uploadpack", "./tools/x.txt", "tools/x.txt"),
        ("remote.o.receivepack", "sh tools/x.txt", "tools/x.txt"),
        ("remote.o.url", "ext::sh tools/x.txt %S", "tools/x.txt"),
        ("remote.o.url", "./other", "other/config.txt"),
        ("url.ext::sh deploy.insteadOf", "y", "deploy"),
        ("submodule.a.update", "!sh ../tools/x.txt", "tools/x.txt"),
        ("gpg.program", "my tools/gpg", "my tools/gpg"),
    ] {
        let trees = with_setting(name, value, &[path, "docs/other.txt"]);
        assert_eq!(trees.asked(), [format!("{path} git")], "{name} {value}");
        // The control.
        trees.git("tree", &["config", "--unset", name]);
        assert_eq!(trees.asked(), [""; 0], "{name} {value}");
    }
}

#[test]
fn ordinary_setting_makes_no_file_of_its_words_take_a_yes() {
    for (name, value, path) in [
        ("alias.co", "checkout", "checkout"),
        ("alias.m", "checkout main", "src/main/a.txt"),
        ("alias.up", "!git checkout main && git pull origin main", "main/a.txt"),
        ("remote.origin.url", "https://github.com/me/src.git", "src/a.txt"),
        ("remote.origin.url", "git@github.com:me/src.git", "src/a.txt"),
        ("remote.origin.url", "https://github.com/me/src", "src/a.txt"),
        ("remote.origin.fetch", "+refs/heads/main:refs/remotes/origin/main", "src/main/a.txt"),
        ("branch.main.merge", "refs/heads/main", "main/a.txt"),
        ("user.name", "Jane Main", "main/a.txt"),
        ("color.diff.meta", "bold yellow", "bold/a.txt"),
        ("core.pager", "less", "less/a.txt"),
        ("core.autocrlf", "input", "input/a.txt"),
        ("credential.helper", "store", "store/a.txt"),
        ("credential.https://github.com.helper", "!/usr/bin/gh auth git-credential", "src/auth/a.txt"),
        ("filter.lfs.clean", "git-lfs clean -- %f", "clean/a.txt"),
        ("init.defaultBranch", "main", "main/a.txt"),
    ] {
        let trees = with_setting(name, value, &[path]);
        assert_eq!(trees.asked(), [""; 0], "{name} {value}");
    }
}

#[test]
fn settings_of_a_repository_in_the_tree_count_below_it() {
    // A repository, one with its data elsewhere as a submodule has it, and one with a work tree in another one.
    let inits: [&[&[&str]]; 3] = [
        &[&["init", "--quiet", "sub"]],
        &[&["init", "--quiet", "--separate-git-dir", ".git/sub", "sub"]],
        &[&["commit", "--quiet", "--allow-empty", "-m", "one"], &["worktree", "add", "--quiet", "sub"]],
    ];
    for init in inits {
        let trees = Trees::new();
        trees.git("tree", &["init", "--quiet", "."]);
        init.iter().for_each(|arguments| drop(trees.git("tree", arguments)));
        for path in ["sub/hk/x", "sub/a/deploy", "hk/x", "deploy"] {
            trees.write(&format!("layer/{path}"), "x\n");
        }
        assert_eq!(trees.asked(), [""; 0], "the control: {init:?}");
        trees.git("tree", &["config", "extensions.worktreeConfig", "true"]);
        let worktree: &[&str] = if init.len() > 1 { &["config", "--worktree"] } else { &["config"] };
        trees.git("tree/sub", &[worktree, &["core.hooksPath", "hk"]].concat());
        trees.git("tree/sub", &[worktree, &["alias.x", "!sh deploy"]].concat());
        assert_eq!(trees.asked(), ["sub/a/deploy git", "sub/hk/x git"], "{init:?}");
    }
}

#[test]
fn link_on_the_way_to_what_a_setting_names_takes_a_yes_and_so_does_what_it_leads_to() {
    let trees = with_setting("core.hooksPath", "scripts/hooks", &["other/hooks/x"]);
    trees.git("tree", &["config", "alias.x", "!sh $PWD/tools/x.txt"]);
    trees.write("layer/real/x.txt", "x\n");
    assert_eq!(trees.asked(), [""; 0], "the control");
    symlink("other", trees.path("layer/scripts")).unwrap();
    symlink("real", trees.path("layer/tools")).unwrap();
    let asked = trees.asked();
    assert_eq!(asked, ["other/hooks/x git", "real/x.txt git", "scripts git", "tools git"]);
}

#[test]
fn settings_that_can_not_be_read_whole_take_a_yes() {
    let trees = with_setting("alias.x", "!sh deploy", &["a.txt"]);
    assert_eq!(trees.asked(), [""; 0], "the control");
    let config = std::fs::read_to_string(trees.path("tree/.git/config")).unwrap();
    trees.write("tree/.git/config", config + &"# long\n".repeat(200_000));
    assert_eq!(trees.asked(), ["a.txt git"]);
}

/// Where the test that is started below finds its trees.
const TREES: &str = "BELLJAR_TEST_TREES";

#[test]
fn settings_in_the_environment_count() {
    const NAME: &str = "workspace::handoff::settings::tests::settings_in_the_environment_count";
    if let Some(folder) = std::env::var_os(TREES) {
        return assert_eq!(asked_in(Path::new(&folder)), ["deploy git", "hk/x git"]);
    }
    let trees = Trees::new();
    ["deploy", "hk/x", "docs/a.txt"].iter().for_each(|path| trees.write(&format!("layer/{path}"), "x\n"));
    std::fs::create_dir(trees.path("tree/hk")).unwrap();
    assert_eq!(trees.asked(), [""; 0], "the control");
    let variables: [&[(&str, &str)]; 3] = [
        &[
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "core.hooksPath"),
            ("GIT_CONFIG_VALUE_0", "hk"),
            ("GIT_CONFIG_KEY_1", "alias.x"),
            ("GIT_CONFIG_VALUE_1", "!sh deploy"),
        ],
        &[("GIT_CONFIG_PARAMETERS", "'core.hooksPath'='hk' 'alias.x=!sh deploy'")],
        &[("GIT_TEMPLATE_DIR", "hk"), ("GIT_EDITOR", "sh deploy")],
    ];
    for variables in variables {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", NAME]).env(TREES, trees.path("")).envs(variables.iter().copied());
        let ran = command.output().unwrap();
        assert!(String::from_utf8_lossy(&ran.stdout).contains("1 passed"), "{variables:?} {ran:?}");
    }
}
