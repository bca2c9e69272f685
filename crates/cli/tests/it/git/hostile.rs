//! GT1: traps that an agent leaves for the host's git. None of them runs, and no content is pushed without an approval. Each
//! has its control: a git that works in that directory runs it, or the push succeeds without it.

use super::rig::GitFixture;
use belljar_testkit::git::git;
use std::path::Path;
use std::process::Command;

/// A trap, and a command of git in that directory that triggers it.
struct GitTrap {
    name: &'static str,
    /// A script of the agent in the clone; `$RAN` is the path of a file that exists if the trap was triggered.
    leaves: &'static str,
    /// A git command that a person might run there; empty if git itself wouldn't trigger the trap.
    control: &'static str,
}

const fn case(name: &'static str, leaves: &'static str, control: &'static str) -> GitTrap {
    GitTrap { name, leaves, control }
}

/// Programs that git runs by its settings, its hooks, and by content of the tree.
const RUN: &[GitTrap] = &[
    case(
        "hook pre-commit",
        "h=.git/hooks; mkdir -p $h; printf '#!/bin/sh\\ntouch $RAN\\n' >$h/pre-commit; chmod +x $h/pre-commit",
        "git commit -q --allow-empty -m x",
    ),
    case(
        "hook prepare-commit-msg",
        "h=.git/hooks; mkdir -p $h; printf '#!/bin/sh\\ntouch $RAN\\n' >$h/prepare-commit-msg; chmod +x $h/*",
        "git commit -q --allow-empty -m x",
    ),
    case(
        "hook commit-msg",
        "h=.git/hooks; mkdir -p $h; printf '#!/bin/sh\\ntouch $RAN\\n' >$h/commit-msg; chmod +x $h/*",
        "git commit -q --allow-empty -m x",
    ),
    case(
        "hook post-commit",
        "h=.git/hooks; mkdir -p $h; printf '#!/bin/sh\\ntouch $RAN\\n' >$h/post-commit; chmod +x $h/*",
        "git commit -q --allow-empty -m x",
    ),
    case(
        "hook post-index-change",
        "h=.git/hooks; mkdir -p $h; printf '#!/bin/sh\\ntouch $RAN\\n' >$h/post-index-change; chmod +x $h/*",
        "git add -A",
    ),
    case(
        "hook reference-transaction",
        "h=.git/hooks; mkdir -p $h; printf '#!/bin/sh\\ntouch $RAN\\n' >$h/reference-transaction; chmod +x $h/*",
        "git branch x",
    ),
    case(
        "hook pre-push",
        "h=.git/hooks; mkdir -p $h; printf '#!/bin/sh\\ntouch $RAN\\n' >$h/pre-push; chmod +x $h/*",
        "git push -q ../served/origin.git HEAD:refs/heads/control",
    ),
    case(
        "core.hooksPath",
        "mkdir h; printf '#!/bin/sh\\ntouch $RAN\\n' >h/post-commit; chmod +x h/*; git config core.hooksPath h",
        "git commit -q --allow-empty -m x",
    ),
    case("core.fsmonitor", "git config core.fsmonitor 'touch $RAN; false'", "git status"),
    case(
        "core.sshCommand",
        "git config core.sshCommand 'touch $RAN; false'",
        "git ls-remote ssh://127.0.0.1/x",
    ),
    case(
        "core.gitProxy",
        "printf '#!/bin/sh\\ntouch $RAN\\n' >proxy; chmod +x proxy; git config core.gitProxy $PWD/proxy; git config protocol.git.allow always",
        "git ls-remote git://127.0.0.1:1/x",
    ),
    case("core.editor", "git config core.editor 'touch $RAN; false'", "git commit --allow-empty"),
    case(
        "core.pager",
        "git config core.pager 'touch $RAN; cat'",
        "GIT_PAGER_IN_USE=1 script -qec 'git log' /dev/null",
    ),
    case(
        "core.askPass",
        "printf '#!/bin/sh\\ntouch $RAN\\n' >ask; chmod +x ask; git config core.askPass $PWD/ask",
        "env -u GIT_CONFIG_GLOBAL HOME=/nonexistent git -c http.sslVerify=false ls-remote $URL",
    ),
    case(
        "core.alternateRefsCommand",
        "git config core.alternateRefsCommand 'touch $RAN; true'; mkdir -p .git/objects/info; echo $PWD/../served/origin.git/objects >.git/objects/info/alternates",
        "git fetch -q ../served/origin.git",
    ),
    case("diff.external", "git config diff.external 'touch $RAN; true'; echo more >>README.md", "git diff"),
    case(
        "textconv",
        "git config diff.x.textconv 'touch $RAN; cat'; echo '*.md diff=x' >.gitattributes; echo more >>README.md",
        "git diff",
    ),
    case(
        "filter clean",
        "git config filter.x.clean 'touch $RAN; cat'; echo '*.md filter=x' >.gitattributes; echo more >>README.md",
        "git add -A",
    ),
    case(
        "filter process",
        "git config filter.x.process 'touch $RAN; false'; echo '*.md filter=x' >.gitattributes; echo more >>README.md",
        "git add -A",
    ),
    case(
        "filter smudge",
        "git config filter.x.smudge 'touch $RAN; cat'; echo '*.md filter=x' >.gitattributes",
        "rm README.md; git checkout -- README.md",
    ),
    case(
        "filter in info/attributes",
        "git config filter.x.clean 'touch $RAN; cat'; mkdir -p .git/info; echo '*.md filter=x' >.git/info/attributes; echo more >>README.md",
        "git add -A",
    ),
    case(
        "merge driver",
        "git config merge.x.driver 'touch $RAN; true'; mkdir -p .git/info; echo '*.md merge=x' >.git/info/attributes; git checkout -qb o; echo o >README.md; git -c user.name=a -c user.email=a@b commit -qam o; git checkout -q -; echo m >README.md; git -c user.name=a -c user.email=a@b commit -qam m",
        "git merge -q o",
    ),
    case(
        "include.path",
        "printf '[core]\\n\\tfsmonitor = touch $RAN; false\\n' >more; git config include.path ../more",
        "git status",
    ),
    case(
        "includeIf",
        "printf '[core]\\n\\tfsmonitor = touch $RAN; false\\n' >more; git config includeIf.onbranch:**.path ../more",
        "git status",
    ),
    case(
        "config.worktree",
        "git config extensions.worktreeConfig true; printf '[core]\\n\\tfsmonitor = touch $RAN; false\\n' >.git/config.worktree",
        "git status",
    ),
    case("alias", "git config alias.st '!touch $RAN'", "git st"),
    case(
        "credential helper",
        "git config credential.helper '!touch $RAN; false'",
        "git -c http.sslVerify=false ls-remote $URL",
    ),
    case(
        "remote.uploadpack",
        "git config remote.origin.url ../served/origin.git; git config remote.origin.uploadpack 'touch $RAN; git-upload-pack'",
        "git fetch -q origin",
    ),
    case(
        "insteadOf ext",
        "git config protocol.ext.allow always; git config url.ext::sh.insteadOf https; git config remote.x.url 'ext::sh -c touch% $RAN'",
        "git fetch -q x",
    ),
    case(
        "gpg.program",
        "printf '#!/bin/sh\\ntouch $RAN\\nexit 1\\n' >gpg; chmod +x gpg; git config gpg.program $PWD/gpg; git config commit.gpgSign true; git config user.signingKey x",
        "git commit -q --allow-empty -m x",
    ),
    case(
        "gitfile",
        "mv .git elsewhere; printf 'gitdir: elsewhere\\n' >.git; git config core.fsmonitor 'touch $RAN; false'",
        "git status",
    ),
    case(
        "linked .git",
        "mv .git elsewhere; ln -s elsewhere .git; git config core.fsmonitor 'touch $RAN; false'",
        "git status",
    ),
    case(
        "embedded repository",
        "git init -q sub; git -C sub config core.fsmonitor 'touch $RAN; false'; echo x >sub/file",
        "git -C sub status",
    ),
    case(
        "embedded bare repository",
        "git init -q --bare sub; git -C sub config core.fsmonitor 'touch $RAN; false'; git -C sub config core.bare false; git -C sub config core.worktree .",
        "cd sub && git status",
    ),
    case(
        "submodule",
        "printf '[submodule \"s\"]\\n\\tpath = s\\n\\turl = ../served/origin.git\\n' >.gitmodules; git config submodule.s.url $PWD/../served/origin.git; git config submodule.s.update '!touch $RAN'; git -c protocol.file.allow=always update-index --add --cacheinfo 160000,$(git rev-parse HEAD),s",
        "git -c protocol.file.allow=always submodule update",
    ),
];

/// Names and file types that can't be in a tree.
const REFUSED: &[(&str, &str)] = &[
    (".git by case", "mkdir .GIT && echo x >.GIT/config"),
    (".git by case, a file", "echo gitdir: x >.Git"),
    (".git by a short name", "mkdir 'git~1' && echo x >'git~1/config'"),
    (".git with a dot", "mkdir .git. && echo x >.git./config"),
    (".git with a space", "mkdir '.git ' && echo x >'.git /config'"),
    (".git by a stream", "echo x >'.git::$INDEX_ALLOCATION'"),
    (
        ".git with an invisible character",
        "mkdir \"$(printf '.g\\342\\200\\214it')\" && echo x >\"$(printf '.g\\342\\200\\214it')/config\"",
    ),
    (".git behind a backslash", "echo x >'a\\.git'"),
    ("deep below", "mkdir -p a/b/.giT && echo x >a/b/.giT/config"),
    ("a directory alone", "mkdir a && mkdir a/.GIT"),
    ("a line end", "echo x >\"$(printf 'a\\nM 100644 inline b')\""),
    ("a carriage return", "echo x >\"$(printf 'a\\rb')\""),
    ("a control character", "echo x >\"$(printf 'a\\033[31mb')\""),
    ("no UTF-8", "echo x >\"$(printf 'a\\377')\""),
    ("linked .gitmodules", "echo x >m && ln -s m .gitmodules"),
    ("linked .gitattributes", "ln -s /etc/passwd sub && ln -s sub .GitAttributes"),
    ("a link with a line end", "ln -s \"$(printf 'a\\nb')\" link"),
];

fn sh(rig: &GitFixture, script: &str) {
    let ran = rig.world.path().join("ran").display().to_string();
    let mut command: Command = rig.world.command_of(Path::new("sh"), &["-c", script]);
    command.current_dir(rig.work(".")).env("RAN", &ran).env("URL", &rig.url);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_AUTHOR_NAME", "a").env("GIT_AUTHOR_EMAIL", "a@b");
    command.env("GIT_COMMITTER_NAME", "a").env("GIT_COMMITTER_EMAIL", "a@b").env("GIT_TERMINAL_PROMPT", "0");
    // Other programs than the agent's shell read the settings, so they contain the path itself.
    let script = script.replace("$RAN", &ran);
    let mut args: Command = rig.world.command_of(Path::new("sh"), &["-c", &script]);
    args.current_dir(rig.work("."));
    for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        args.env(name, value);
    }
    let _ = args.output().unwrap();
}

fn fresh(rig: &GitFixture) {
    let _ = std::fs::remove_dir_all(rig.work("."));
    let _ = std::fs::remove_file(rig.world.path().join("ran"));
    rig.clone().succeeded();
}

#[test]
fn host_git_runs_nothing_that_an_agent_leaves() {
    let Some(rig) = GitFixture::start("host_git_runs_nothing_that_an_agent_leaves") else { return };
    let mut idle = Vec::new();
    for (at, GitTrap { name, leaves, control }) in RUN.iter().enumerate() {
        fresh(&rig);
        sh(&rig, leaves);
        rig.leaves("work.txt", "work\n");
        let _ = std::fs::remove_file(rig.world.path().join("ran"));
        let branch = format!("belljar/{at}");
        let ran = rig.push(&["--branch", &branch, "--trust-all"]);
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        assert!(!rig.has_run(), "{name}: a program ran");
        assert!(rig.tree(&branch).contains(&"100644 work.txt".to_owned()), "{name}");
        assert!(!rig.tree(&branch).iter().any(|line| line.contains(".git/")), "{name}");
        sh(&rig, control);
        if !rig.has_run() {
            idle.push(*name);
        }
    }
    assert!(idle.is_empty(), "controls that ran no program: {idle:?}");
    git(&rig.bare, &["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn path_that_another_platform_treats_as_a_repository_is_never_pushed() {
    let Some(rig) = GitFixture::start("path_that_another_platform_treats_as_a_repository_is_never_pushed")
    else {
        return;
    };
    for (name, leaves) in REFUSED {
        fresh(&rig);
        sh(&rig, leaves);
        let refused = rig.push(&["--branch", "belljar/one", "--trust-all", "--json"]);
        let told = refused.json();
        assert_eq!((refused.code, told["outcome"].as_str()), (3, Some("refused")), "{name}: {told:#}");
        assert!(
            matches!(told["reason"].as_str(), Some("name_not_allowed" | "link_not_allowed")),
            "{name}: {told:#}"
        );
    }
    assert_eq!(belljar_testkit::git::refs(&rig.bare), ["refs/heads/main"]);
    // The control: harmless similar names are pushed.
    fresh(&rig);
    sh(&rig, "echo x >git~x; mkdir .gitter && echo x >.gitter/config; echo x >a.git");
    rig.push(&["--branch", "belljar/one", "--trust", ".gitter/"]).succeeded();
    assert_eq!(rig.tree("belljar/one").len(), 5);
}

#[test]
fn nested_repositories_are_left_out_and_reported() {
    let Some(rig) = GitFixture::start("nested_repositories_are_left_out_and_reported") else { return };
    rig.clone().succeeded();
    sh(&rig, "git init -q sub; echo x >sub/file; mkfifo pipe; printf 'gitdir: /x\\n' >src/.git");
    let told = rig.push(&["--branch", "belljar/one", "--json"]).succeeded().json();
    let mut left_out: Vec<&str> =
        told["left_out"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    left_out.sort_unstable();
    assert_eq!(left_out, ["pipe", "src/.git", "sub/.git"]);
    assert_eq!(rig.tree("belljar/one"), ["100644 README.md", "100644 src/a.txt", "100644 sub/file"]);
}

#[test]
fn replacements_grafts_and_agent_commits_do_not_change_what_is_pushed() {
    let test = "replacements_grafts_and_agent_commits_do_not_change_what_is_pushed";
    let Some(rig) = GitFixture::start(test) else { return };
    rig.clone().succeeded();
    sh(
        &rig,
        "echo more >>README.md; git commit -qam agents; git tag v9; git notes add -m n; git replace HEAD~1 HEAD; \
         git rev-parse HEAD >.git/shallow; mkdir -p .git/info; echo \"$(git rev-parse HEAD)\" >.git/info/grafts",
    );
    rig.push(&["--branch", "belljar/one"]).succeeded();
    assert_eq!(belljar_testkit::git::refs(&rig.bare), ["refs/heads/belljar/one", "refs/heads/main"]);
    let log = git(&rig.bare, &["log", "--format=%s", "belljar/one"]);
    assert_eq!(log, "Work of a sandbox\nfirst\n", "the agent's own commits stay where they are");
}
