//! Tests of the context of a change: links, repositories, settings, and the place of the tree.

use super::super::UnknownOutside;
use super::*;

fn context(links: &[(&str, &str)], paths: &[&str]) -> TreeContext {
    let mut all = TreeLinks::default();
    links.iter().for_each(|(path, target)| all.insert(path.as_bytes(), target.as_bytes()));
    let mut context = TreeContext::default();
    context.add_links(&all, &mut UnknownOutside);
    paths.iter().for_each(|path| context.add_path(path));
    context
}

fn file() -> Option<ChangeEntryKind> {
    Some(ChangeEntryKind::File { is_executable: false })
}

fn kinds(context: &TreeContext, path: &str, after: Option<ChangeEntryKind>) -> Vec<&'static str> {
    let found = review_in_tree([ChangedPath::new(path, None, after)], context);
    found.iter().map(|finding| finding.kind.code()).collect()
}

#[test]
fn link_on_the_path_counts_as_a_name() {
    let links = [("way", "sub"), ("Makefile", "way/rules.txt"), ("plain", "sub")];
    let link = |target: &str| Some(ChangeEntryKind::Link { target: target.to_owned() });
    assert_eq!(kinds(&context(&links, &[]), "way", link("sub")), ["build"]);
    assert_eq!(kinds(&context(&links, &[]), "sub/rules.txt", file()), ["build"]);
    // Controls.
    assert_eq!(kinds(&context(&links, &[]), "plain", link("sub")), [""; 0]);
    assert_eq!(kinds(&context(&links, &[]), "sub/other", file()), [""; 0]);
}

#[test]
fn link_that_leaves_the_tree_through_another_requires_approval() {
    let link = |target: &str| Some(ChangeEntryKind::Link { target: target.to_owned() });
    let links =
        [("exist", "/etc"), ("l", "exist/passwd"), ("into", "way/hooks"), ("way", ".git"), ("m", "docs/x")];
    for (path, target) in [("l", "exist/passwd"), ("into", "way/hooks")] {
        assert_eq!(kinds(&context(&links, &[]), path, link(target)), ["link"], "{path}");
    }
    assert_eq!(kinds(&context(&links, &[]), "m", link("docs/x")), [""; 0]);
    // A link within the tree makes another one lead out of it.
    let links = [("b", "."), ("old", "b/../x"), ("c", ".")];
    assert_eq!(kinds(&context(&links, &[]), "b", link(".")), ["link"]);
    assert_eq!(kinds(&context(&links, &[]), "c", link(".")), [""; 0]);
}

#[test]
fn everything_in_a_possible_repository_requires_approval() {
    let bare = ["fixtures/a.git/HEAD", "fixtures/a.git/objects", "fixtures/a.git/refs"];
    for path in ["fixtures/a.git/config", "fixtures/a.git/hooks/update", "Fixtures/a.git/Config"] {
        assert_eq!(kinds(&context(&[], &bare), path, file()), ["git"], "{path}");
    }
    assert_eq!(kinds(&context(&[], &["HEAD", "objects", "refs"]), "config", file()), ["git"]);
    assert_eq!(kinds(&context(&[], &["a/Head", "a/commondir"]), "a/config", file()), ["git"]);
    // Controls.
    for path in ["fixtures/config", "fixtures/a.git2/config", "config"] {
        assert_eq!(kinds(&context(&[], &bare), path, file()), [""; 0], "{path}");
    }
    for names in
        [&["a/HEAD", "a/objects"][..], &["a/HEAD", "a/refs"], &["a/objects", "a/refs", "a/commondir"], &[]]
    {
        assert_eq!(kinds(&context(&[], names), "a/config", file()), [""; 0], "{names:?}");
    }
    let own = [".git/HEAD", ".git/objects", ".git/refs"];
    assert_eq!(kinds(&context(&[], &own), ".git/objects/ab", Some(ChangeEntryKind::Directory)), [""; 0]);
}

#[test]
fn names_of_parent_directories_of_the_tree_count() {
    for (place, path) in [
        ("/home/me/app/.github/workflows", "ci.yml"),
        ("/home/me/app/.github", "workflows/ci.yml"),
        ("/home/me/app/.VSCode", "tasks.json"),
        ("/home/me/app/node_modules/a", "index.js"),
        ("/home/me/app/config", "boot.rb"),
        ("/home/me/app/.git/hooks", "pre-commit"),
    ] {
        let mut context = TreeContext::default();
        assert_eq!(kinds(&context, path, file()), [""; 0], "the control: {path}");
        context.set_place(place, false);
        assert!(!kinds(&context, path, file()).is_empty(), "{place} {path}");
    }
    let mut context = TreeContext::default();
    context.set_place("/home/me/app", false);
    for path in ["src/main.rs", "settings.rb", "a/b"] {
        assert_eq!(kinds(&context, path, file()), [""; 0], "{path}");
    }
    context.set_place("/srv/git/app/hooks", true);
    assert_eq!(kinds(&context, "update", file()), ["git"]);
}

#[test]
fn paths_named_by_git_settings_require_approval_with_all_below() {
    let mut context = TreeContext::default();
    ["scripts/hooks", "conf/git.inc"].iter().for_each(|path| context.add_named(path));
    for path in ["scripts/hooks/pre-commit", "conf/git.inc", "Conf/GIT.inc"] {
        assert_eq!(kinds(&context, path, file()), ["git"], "{path}");
    }
    for path in ["scripts/hooks2", "conf/git.txt", "scripts/other.txt"] {
        assert_eq!(kinds(&context, path, file()), [""; 0], "{path}");
    }
}

#[test]
fn links_to_setting_paths_and_their_targets_require_approval() {
    let link = |target: &str| Some(ChangeEntryKind::Link { target: target.to_owned() });
    let mut context = context(&[("scripts", "other")], &[]);
    assert_eq!(kinds(&context, "other/hooks/pre-commit", file()), [""; 0], "the control");
    context.add_named("scripts/hooks");
    assert_eq!(kinds(&context, "other/hooks/pre-commit", file()), ["git"]);
    assert_eq!(kinds(&context, "scripts", link("other")), ["git"]);
    assert_eq!(kinds(&context, "scripted", link("other")), [""; 0]);
    assert_eq!(kinds(&context, "other/file", file()), [""; 0]);
}

#[test]
fn directory_with_two_paths_needs_the_approvals_of_both() {
    let mut context = TreeContext::default();
    context.add_same(".vscode", "editor");
    assert_eq!(kinds(&context, "editor/tasks.json", file()), ["editor"]);
    assert_eq!(kinds(&context, "other/tasks.json", file()), [""; 0]);
}

#[test]
fn linked_workspace_package_does_not_count_as_installed() {
    let links = [("node_modules/a", "../packages/a"), (".venv", "env")];
    assert_eq!(kinds(&context(&links, &[]), "packages/a/index.js", file()), [""; 0]);
    // Controls: installed packages, and a link in place of a directory of its own.
    assert_eq!(kinds(&context(&links, &[]), "node_modules/b/index.js", file()), ["package"]);
    assert_eq!(kinds(&context(&links, &[]), "env/lib/x.py", file()), ["package"]);
    assert_eq!(kinds(&context(&links, &[]), "packages/a/package.json", file()), ["package"]);
}

#[test]
fn path_with_too_many_links_requires_approval() {
    let names: Vec<String> = (0..300).map(|number| format!("link{number}")).collect();
    let links: Vec<_> = names.iter().map(|name| (name.as_str(), "file")).collect();
    assert_eq!(kinds(&context(&links, &[]), "file", file()), ["link"]);
    // Control.
    assert_eq!(kinds(&context(&links, &[]), "other", file()), [""; 0]);
}

#[test]
fn link_to_a_program_or_its_directory_counts_as_a_program() {
    let links = [("bin/make", "../scripts/x"), ("tools", "scripts"), ("notes", "doc/x"), ("texts", "doc")];
    let mut context = context(&links, &[]);
    context.add_program("scripts/x");
    let link = || Some(ChangeEntryKind::Link { target: "x".to_owned() });
    for path in ["bin/make", "tools"] {
        assert_eq!(kinds(&context, path, link()), ["executable"], "{path}");
    }
    // Controls.
    for path in ["notes", "texts"] {
        assert_eq!(kinds(&context, path, link()), [""; 0], "{path}");
    }
}

#[test]
fn hidden_links_count_and_package_links_do_not() {
    let links =
        [(".newtoolrc", "conf/my.conf"), (".oh-my-zsh", "conf/dir"), ("node_modules/.bin/a", "../../a/x.js")];
    for path in ["conf/my.conf", "conf/dir/x.zsh"] {
        assert_eq!(kinds(&context(&links, &[]), path, file()), ["build"], "{path}");
    }
    // Controls.
    for path in ["conf/other.conf", "a/x.js"] {
        assert_eq!(kinds(&context(&links, &[]), path, file()), [""; 0], "{path}");
    }
}

#[test]
fn tree_below_a_hidden_directory_requires_approval() {
    let at = |place: &str, path: &str| {
        let mut context = TreeContext::default();
        context.set_place(place, false);
        kinds(&context, path, file())
    };
    for place in [
        "/home/me/.oh-my-zsh/custom",
        "/home/me/.hammerspoon",
        "/home/me/.local/share/nvim/site/plugin",
        "/home/me/.newtool/a",
        "/home/me/.claude/worktrees/a/.newtool",
    ] {
        assert_eq!(at(place, "plainfile"), ["build"], "{place}");
    }
    for place in [
        "/home/me/app",
        "/home/me/.cache/app",
        "/home/me/.local/state/app",
        "/home/me/.local/share/tool/worktrees/a",
        "/home/me/app/.claude/worktrees/a",
        "/home/me/app/.worktrees/a",
        "/tmp/.tmpAbC123",
    ] {
        assert_eq!(at(place, "plainfile"), [""; 0], "{place}");
    }
    assert_eq!(at("/home/me/app/.claude/worktrees/a", "Makefile"), ["build"]);
    assert_eq!(at("/home/me/app/.claude/commands", "a.txt"), ["agent"]);
    assert_eq!(at("/home/me/.newtool", ".git/index"), ["git"]);
}
