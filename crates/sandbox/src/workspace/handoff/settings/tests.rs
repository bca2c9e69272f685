//! Tests of the files that settings of Git name in a tree.

use super::super::tests::{ReviewTrees, asked_in};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn what_the_settings_of_the_repository_name_takes_a_yes() {
    let trees = ReviewTrees::new();
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
fn with_setting(name: &str, value: &str, changed: &[&str]) -> ReviewTrees {
    let trees = ReviewTrees::new();
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
        ("gitflow.path.hooks", "tools/hooks", "tools/hooks/x"),
        ("tool.runfile", "sh deploy", "deploy"),
        ("pager.cat-file", "sh deploy", "deploy"),
        ("alias.x", "!python3 -m tools.release", "tools/release.py"),
        ("alias.x", "!node tools/release", "tools/release.js"),
        ("alias.x", "!awk -ffmt x", "fmt"),
        ("alias.x", "!git --exec-path=tools foo", "tools/git-foo"),
        ("alias.x", "!git send-email --to-cmd=tocmd", "tocmd"),
        ("alias.x", "!$PWD/tools/gh pr list", "tools/gh"),
    ] {
        let trees = with_setting(name, value, &[path, "docs/other.txt"]);
        assert_eq!(trees.asked(), [format!("{path} git")], "{name} {value}");
        // The control.
        trees.git("tree", &["config", "--unset", name]);
        assert_eq!(trees.asked(), [""; 0], "{name} {value}");
    }
}

#[test]
fn what_a_setting_names_below_a_home_directory_takes_a_yes_however_that_is_called() {
    let trees = ReviewTrees::new();
    trees.git("tree", &["init", "--quiet", "."]);
    ["tools/x.txt", "hk/x", "conf.inc", "docs/a.txt"]
        .iter()
        .for_each(|path| trees.write(&format!("layer/{path}"), "x\n"));
    let tree = trees.path("tree").canonicalize().unwrap();
    // The way from any home directory by the root.
    let up = |home: &str| format!("{home}/{}..{}", "../".repeat(20), tree.display());
    let mut homes = vec!["~".to_owned()];
    homes.extend(belljar_trusted::accounts::own().map(|own| format!("~{}", own.name)));
    for home in homes {
        for (name, path, asked) in [
            ("core.hooksPath", "hk", "hk/x git"),
            ("include.path", "conf.inc", "conf.inc git"),
            ("alias.x", "tools/x.txt", "tools/x.txt git"),
        ] {
            let run = if name == "alias.x" { "!sh " } else { "" };
            trees.git("tree", &["config", name, &format!("{run}{}/{path}", up(&home))]);
            assert_eq!(trees.asked(), [asked], "{name} {home}");
            trees.git("tree", &["config", name, &format!("{run}{}x/{path}", up(&home))]);
            assert_eq!(trees.asked(), [""; 0], "the control: {name} {home}");
            trees.git("tree", &["config", "--unset", name]);
        }
    }
    for home in ["$HOME", "${HOME}", "\"$HOME\"", "${HOME%/}"] {
        for (name, run) in [("alias.x", "!sh "), ("core.editor", "sh "), ("core.sshCommand", "ssh -F ")] {
            trees.git("tree", &["config", name, &format!("{run}{}/tools/x.txt", up(home))]);
            assert_eq!(trees.asked(), ["tools/x.txt git"], "{name} {home}");
            trees.git("tree", &["config", "--unset", name]);
        }
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
        let trees = ReviewTrees::new();
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

/// Variable that names the trees for the process that is started below.
const TREES: &str = "BELLJAR_TEST_TREES";

#[test]
fn review_in_a_process_of_its_own() {
    let Some(folder) = std::env::var_os(TREES).map(PathBuf::from) else { return };
    std::fs::write(folder.join("asked"), asked_in(&folder).join("\n")).unwrap();
}

/// Returns the paths that need an approval in a process with these variables, whose user has the home directory `home`.
fn asked_with(trees: &ReviewTrees, variables: &[(&str, &str)]) -> Vec<String> {
    const NAME: &str = "workspace::handoff::settings::tests::review_in_a_process_of_its_own";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", NAME]).env(TREES, trees.path("")).env("HOME", trees.path("home"));
    command.env_remove("GIT_CONFIG_GLOBAL").env_remove("XDG_CONFIG_HOME");
    let ran = command.env("GIT_CONFIG_SYSTEM", "/dev/null").envs(variables.iter().copied()).output().unwrap();
    assert!(ran.status.success(), "{variables:?} {ran:?}");
    let asked = std::fs::read_to_string(trees.path("asked")).unwrap();
    asked.lines().map(str::to_owned).collect()
}

#[test]
fn settings_in_the_environment_count() {
    let trees = ReviewTrees::new();
    ["deploy", "hk/x", "docs/a.txt"].iter().for_each(|path| trees.write(&format!("layer/{path}"), "x\n"));
    std::fs::create_dir(trees.path("tree/hk")).unwrap();
    assert_eq!(asked_with(&trees, &[]), [""; 0], "the control");
    let variables: [&[(&str, &str)]; 7] = [
        &[
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "core.hooksPath"),
            ("GIT_CONFIG_VALUE_0", "hk"),
            ("GIT_CONFIG_KEY_1", "alias.x"),
            ("GIT_CONFIG_VALUE_1", "!sh deploy"),
        ],
        &[("GIT_CONFIG_PARAMETERS", "'core.hooksPath'='hk' 'alias.x=!sh deploy'")],
        &[("GIT_TEMPLATE_DIR", "hk"), ("GIT_EDITOR", "sh deploy")],
        &[("GIT_EXEC_PATH", "hk"), ("MANPAGER", "sh deploy")],
        &[("LESSKEYIN", "hk/x"), ("LESSCLOSE", "sh deploy %s %s")],
        &[("LESSKEYIN_SYSTEM", "hk/x"), ("BROWSER", "sh deploy")],
        &[("GIT_SSL_CAPATH", "hk"), ("GIT_MAN_VIEWER", "sh deploy")],
    ];
    for variables in variables {
        assert_eq!(asked_with(&trees, variables), ["deploy git", "hk/x git"], "{variables:?}");
    }
}

/// Makes a link below the home directory to a path of the folder.
fn link_from_home(trees: &ReviewTrees, link: &str, target: &str) {
    let link = trees.path("home").join(link);
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(trees.path(target), link).unwrap();
}

#[test]
fn file_of_settings_that_leads_into_the_tree_takes_a_yes() {
    for (link, target, changed) in [
        (".gitconfig", "tree/main", "main"),
        (".gitconfig", "tree/new/main", "new/main"),
        (".config/git", "tree/conf", "conf/config"),
        (".config/git/attributes", "tree/attrs", "attrs"),
    ] {
        for is_there in [true, false] {
            let trees = ReviewTrees::new();
            if is_there && !changed.contains("new") {
                trees.write(&format!("tree/{changed}"), "\n");
            }
            trees.write(&format!("layer/{changed}"), "x\n");
            trees.write("layer/other", "x\n");
            assert_eq!(asked_with(&trees, &[]), [""; 0], "the control: {link}");
            link_from_home(&trees, link, target);
            assert_eq!(asked_with(&trees, &[]), [format!("{changed} git")], "{link} {is_there}");
        }
    }
    let trees = ReviewTrees::new();
    ["gset", "other"].iter().for_each(|path| trees.write(&format!("layer/{path}"), "x\n"));
    let absolute = trees.path("tree/gset");
    for path in [absolute.to_str().unwrap(), "gset"] {
        assert_eq!(asked_with(&trees, &[("GIT_CONFIG_GLOBAL", path)]), ["gset git"], "{path}");
    }
    assert_eq!(asked_with(&trees, &[("GIT_CONFIG_GLOBAL", "/proc/self/cwd/gset")]), ["gset git"]);
    assert_eq!(asked_with(&trees, &[("GIT_CONFIG_GLOBAL", "/dev/null")]), [""; 0]);
}

#[test]
fn hook_that_a_link_outside_of_the_tree_leads_to_takes_a_yes() {
    let trees = ReviewTrees::new();
    let all = ["scripts/pc", "scripts/pp", "scripts/up", "scripts/all/x", "scripts/other"];
    all.iter().for_each(|path| trees.write(&format!("layer/{path}"), "x\n"));
    let git = |arguments: &[&str]| drop(trees.git("", arguments));
    git(&["init", "--quiet", "."]);
    std::fs::create_dir_all(trees.path(".git/hooks")).unwrap();
    assert_eq!(asked_with(&trees, &[]), [""; 0], "the control");
    symlink("../../tree/scripts/pc", trees.path(".git/hooks/pre-commit")).unwrap();
    assert_eq!(asked_with(&trees, &[]), ["scripts/pc git"]);
    link_from_home(&trees, "hooks/pre-push.d/x", "tree/scripts/pp");
    link_from_home(&trees, "hooks/all", "tree/scripts/all");
    link_from_home(&trees, "template/hooks/update", "tree/scripts/up");
    assert_eq!(asked_with(&trees, &[]), ["scripts/pc git"], "no setting names them");
    git(&["config", "core.hooksPath", "~/hooks"]);
    assert_eq!(asked_with(&trees, &[]), ["scripts/all/x git", "scripts/pc git", "scripts/pp git"]);
    git(&["config", "init.templateDir", "~/template"]);
    let asked = ["scripts/all/x git", "scripts/pc git", "scripts/pp git", "scripts/up git"];
    assert_eq!(asked_with(&trees, &[]), asked);
}

#[test]
fn tree_that_is_itself_a_directory_of_hooks_takes_a_yes_for_all() {
    let trees = with_setting("core.abbrev", "12", &["pre-commit", "sub/x"]);
    assert_eq!(asked_with(&trees, &[]), [""; 0], "the control");
    link_from_home(&trees, "hooks", "tree");
    for path in [".", "~/hooks", trees.path("tree").to_str().unwrap()] {
        trees.git("tree", &["config", "core.hooksPath", path]);
        assert_eq!(asked_with(&trees, &[]), ["pre-commit git", "sub/x git"], "{path}");
    }
    // The tree is below it, and no link leads there.
    std::fs::remove_file(trees.path("home/hooks")).unwrap();
    trees.git("tree", &["config", "core.hooksPath", trees.path("").to_str().unwrap()]);
    assert_eq!(asked_with(&trees, &[]), [""; 0]);
}

#[test]
fn path_of_a_setting_is_followed_as_the_kernel_does() {
    let trees =
        with_setting("core.abbrev", "12", &["local/deep/gset", "rel/conf", "rel/v1/conf", "new/conf"]);
    std::fs::create_dir_all(trees.path("tree/rel/v1")).unwrap();
    symlink("rel/v1", trees.path("tree/cur")).unwrap();
    link_from_home(&trees, "dl", "tree");
    assert_eq!(asked_with(&trees, &[]), [""; 0], "the control");
    trees.git("tree", &["config", "include.path", "~/dl/local/deep/gset"]);
    assert_eq!(asked_with(&trees, &[]), ["local/deep/gset git"], "its directory is yet to be made");
    trees.git("tree", &["config", "include.path", "../cur/../conf"]);
    assert_eq!(asked_with(&trees, &[]), ["rel/conf git"], "up from where the link leads");
    std::fs::create_dir_all(trees.path("layer/new/v2")).unwrap();
    symlink("new/v2", trees.path("layer/cur")).unwrap();
    assert_eq!(
        asked_with(&trees, &[]),
        ["cur git", "new/conf git", "rel/conf git"],
        "from there now and then"
    );
}
