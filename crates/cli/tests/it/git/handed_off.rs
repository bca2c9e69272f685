//! Files that gain trust at their destination require an approval: for a push, and for changes to a person's directory.

use super::rig::GitFixture;
use crate::BELLJAR;
use crate::session_workspace::commit_trusting;
use belljar_testkit::git::refs;
use belljar_testkit::terminal::at_a_terminal;
use belljar_testkit::world::{ProgramOutput, World};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::Stdio;

#[test]
fn push_lists_paths_that_gain_trust_and_proceeds_after_approval() {
    let Some(rig) = GitFixture::start("push_lists_paths_that_gain_trust_and_proceeds_after_approval") else {
        return;
    };
    rig.clone().succeeded();
    rig.leaves(".github/workflows/ci.yml", "on: push\n");
    rig.leaves(".VSCode/tasks.json", "{}\n");
    rig.leaves("src/b.txt", "b\n");
    let told = rig.push(&["--branch", "belljar/one"]);
    assert_eq!(told.code, 3, "{told:?}");
    insta::assert_snapshot!(told.stderr, @r"
    belljar: 2 of the paths gain trust at the destination and have no approval
      editor      .VSCode/tasks.json  (an editor runs tasks and programs that it names)
      ci          .github/workflows/ci.yml  (GitHub runs it, with the secrets of the repository)

    Hint: review the files, then approve them with --trust PATH for each, or --trust-all
    ");
    let ran = rig.push(&["--branch", "belljar/one", "--trust", ".github/", "--json"]);
    let told = ran.json();
    assert_eq!((ran.code, told["reason"].as_str()), (3, Some("handoff_not_trusted")));
    insta::assert_snapshot!(serde_json::to_string(&told["handoff"]).unwrap(), @r#"[{"kind":"editor","path":".VSCode/tasks.json","reason":"an editor runs tasks and programs that it names"}]"#);
    assert_eq!(refs(&rig.bare), ["refs/heads/main"]);
    let both = ["--branch", "belljar/one", "--trust", ".github/", "--trust", ".VSCode/tasks.json"];
    rig.push(&both).succeeded();
    assert_eq!(rig.tree("belljar/one").len(), 5);
}

#[test]
fn command_writes_no_unapproved_paths_into_the_users_directory() {
    World::as_everyone(BELLJAR, |world| {
        world.write("project/a.txt", "a\n");
        let script =
            "mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; echo more >a.txt; ln -s /etc/passwd l";
        let run = |options: &[&str]| {
            let all =
                [&["exec", "--workspace-copy", "project", "--apply"], options, &["--", "sh", "-c", script]];
            world.run(&all.concat())
        };
        let before = world.picture("project");
        let ran = run(&[]);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(
            ran.stderr.contains(".git/hooks/pre-commit") && ran.stderr.contains("  link        l"),
            "{ran:?}"
        );
        assert_eq!(world.picture("project"), before);
        run(&["--trust", ".git/hooks/", "--trust", "l"]).succeeded();
        assert_eq!(world.read("project/a.txt"), "more\n");
    });
}

#[test]
fn push_requires_approval_of_compiled_code_like_apply() {
    const NAME: &str = "push_requires_approval_of_compiled_code_like_apply";
    let Some(rig) = GitFixture::start(NAME) else { return };
    rig.clone().succeeded();
    rig.leaves("lib/data", "\x7fELF evil");
    rig.leaves("lib/text", "ELF\n");
    let told = rig.push(&["--branch", "belljar/one"]);
    assert_eq!(told.code, 3, "{told:?}");
    insta::assert_snapshot!(told.stderr, @r"
    belljar: 1 of the paths gain trust at the destination and have no approval
      build       lib/data  (it is compiled code, and no review shows what it does)

    Hint: review the files, then approve them with --trust PATH for each, or --trust-all
    ");
    let world = World::new(BELLJAR);
    world.write("project/lib/data", "a\n");
    let script = "printf '\\177ELF evil' >lib/data; echo ELF >lib/text";
    let ran = world.run(&["exec", "--workspace-copy", "project", "--apply", "--", "sh", "-c", script]);
    assert!(ran.code == 3 && ran.stderr.contains("lib/data  (it is compiled code"), "{ran:?}");
    // The controls.
    rig.push(&["--branch", "belljar/one", "--trust", "lib/data"]).succeeded();
    assert_eq!(rig.tree("belljar/one").len(), 4);
}

#[test]
fn source_of_an_implicit_make_rule_needs_approval_for_push_and_apply() {
    const NAME: &str = "source_of_an_implicit_make_rule_needs_approval_for_push_and_apply";
    let files = [("config.mk", "N = 1\n"), ("run-tests", "#!/bin/sh\n")];
    let Some(rig) = GitFixture::with(NAME, World::new(BELLJAR), &files) else { return };
    rig.clone().succeeded();
    for name in ["config.mk.sh", "Run-Tests.sh", "deploy.sh"] {
        rig.leaves(name, "evil\n");
    }
    let told = rig.push(&["--branch", "belljar/one"]);
    assert_eq!(told.code, 3, "{told:?}");
    insta::assert_snapshot!(told.stderr, @r"
    belljar: 2 of the paths gain trust at the destination and have no approval
      build       Run-Tests.sh  (by a rule of its own, make replaces the file of this name without the ending by it)
      build       config.mk.sh  (by a rule of its own, make makes a file of it that gains trust)

    Hint: review the files, then approve them with --trust PATH for each, or --trust-all
    ");
    let world = World::new(BELLJAR);
    world.write("project/config.mk", "N = 1\n");
    let run = |name: &str| {
        let script = format!("echo evil >{name}");
        world.run(&["exec", "--workspace-copy", "project", "--apply", "--", "sh", "-c", &script])
    };
    assert_eq!(run("config.mk.sh").code, 3);
    // The control.
    run("deploy.sh").succeeded();
}

#[test]
fn git_repository_needs_approval_at_any_path_and_name() {
    let world = World::new(BELLJAR);
    world.write("project/a.txt", "a\n");
    let ran = world.path().join("ran");
    let script = format!(
        "mkdir -p docs/refs/objects docs/refs/refs; cd docs/refs; echo 'ref: refs/heads/main' >HEAD; \
         echo k >objects/.k; echo k >refs/.k; echo '[core] repositoryformatversion = 0' >config; \
         echo 'bare = false' >>config; echo 'worktree = .' >>config; echo 'fsmonitor = \"touch {}; false\"' >>config",
        ran.display()
    );
    let run = |options: &[&str]| {
        let all =
            [&["exec", "--workspace-copy", "project", "--apply"], options, &["--", "sh", "-c", &script]];
        world.run(&all.concat())
    };
    let before = world.picture("project");
    let told = run(&[]);
    assert!(told.code == 3 && told.stderr.contains("  git         docs/refs/HEAD"), "{told:?}");
    assert_eq!(world.picture("project"), before);
    // The control: with an approval, Git on the host does what the settings say.
    run(&["--trust", "docs/refs/"]).succeeded();
    let mut status = std::process::Command::new("git");
    status.arg("status").current_dir(world.path().join("project/docs/refs")).output().unwrap();
    assert!(ran.exists());
}

#[test]
fn symlink_that_leads_out_and_back_needs_the_approval_of_its_target() {
    let world = World::new(BELLJAR);
    world.write("project/rules.txt", "all:\n");
    world.write("project/other.txt", "a\n");
    symlink("../project/rules.txt", world.path().join("project/Makefile")).unwrap();
    let run = |changed: &str| {
        let script = format!("echo more >{changed}");
        world.run(&["exec", "--workspace-copy", "project", "--apply", "--", "sh", "-c", &script])
    };
    let told = run("rules.txt");
    assert!(told.code == 3 && told.stderr.contains("the link Makefile leads to it"), "{told:?}");
    assert_eq!(world.read("project/rules.txt"), "all:\n");
    run("other.txt").succeeded();
}

#[test]
fn session_commits_paths_that_need_approval_only_with_approval() {
    let world = World::new(BELLJAR);
    world.write("project/a.txt", "a\n");
    world.run(&["session", "create", "--name", "s", "--workspace-copy", "project"]).succeeded();
    let exec = |script: &str| world.run(&["session", "exec", "s", "--", "sh", "-c", script]).succeeded();
    exec("echo more >a.txt; echo 'x: ; touch y' >Makefile; mkdir .claude; echo {} >.claude/settings.json");
    let before = world.picture("project");
    let ran = world.run(&["session", "commit", "s"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(
        ran.stderr.contains("build       Makefile") && ran.stderr.contains(".claude/settings.json"),
        "{ran:?}"
    );
    assert_eq!(world.picture("project"), before);
    assert_eq!(commit_trusting(&world, "s", &["--trust", "Makefile"]).code, 3);
    commit_trusting(&world, "s", &["--trust", "Makefile", "--trust", ".claude/"]).succeeded();
    assert_eq!(world.read("project/a.txt"), "more\n");
    exec("echo most >a.txt");
    world.run(&["session", "commit", "s"]).succeeded();
    world.run(&["session", "end", "--discard", "s"]).succeeded();
}

/// Pushes at a terminal of its own (by `script`), with this input.
fn push_at_a_terminal(rig: &GitFixture, branch: &str, typed: &str) -> ProgramOutput {
    let push = format!("git push work --allow-network 127.0.0.0/8 --branch {branch}");
    let inner = format!("{BELLJAR} {push}");
    at_a_terminal(&rig.world, &inner, typed)
}

#[test]
fn user_at_the_terminal_is_asked_and_the_answer_is_followed() {
    let Some(rig) = GitFixture::start("user_at_the_terminal_is_asked_and_the_answer_is_followed") else {
        return;
    };
    rig.clone().succeeded();
    rig.leaves(".envrc", "x\n");
    rig.leaves("e\u{301}/Makefile", "x\n");
    const ASKED: &str = "Approve them? [y/n] ";
    // No, empty input, and invalid input followed by the end: each is a refusal.
    for (typed, asks) in [("n\n", 1), ("", 1), ("no\n", 1), ("maybe\n\nN\n", 4), ("Y\n", 2)] {
        let ran = push_at_a_terminal(&rig, "belljar/one", typed);
        assert_eq!(ran.code, 3, "{typed:?}: {ran:?}");
        assert_eq!(ran.stdout.matches(ASKED).count(), asks, "{typed:?}: {ran:?}");
        assert!(
            ran.stdout.contains("  shell       .envrc  (") && ran.stdout.contains("/Makefile"),
            "{ran:?}"
        );
        assert_eq!(refs(&rig.bare), ["refs/heads/main"], "{typed:?}");
    }
    // Without a terminal, or with only half of one, there is no question, whatever the input is.
    let mut command = rig.world.command(&["git", "push", "work", "--allow-network", "127.0.0.0/8"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"y\ny\n").unwrap();
    let ran = ProgramOutput::from(child.wait_with_output().unwrap());
    assert!(ran.code == 3 && !ran.stderr.contains(ASKED), "{ran:?}");
    let ran = push_at_a_terminal(&rig, "belljar/one 2>told", "y\n");
    assert!(ran.code == 3 && !rig.world.read("told").contains(ASKED), "{ran:?}");
    let ran = push_at_a_terminal(&rig, "belljar/one --json", "y\n");
    assert!(ran.code == 3 && !ran.stdout.contains(ASKED), "no question with JSON output: {ran:?}");
    assert_eq!(refs(&rig.bare), ["refs/heads/main"]);
    for (typed, branch) in [("y\n", "belljar/one"), ("what?\nyes\n", "belljar/two")] {
        let ran = push_at_a_terminal(&rig, branch, typed);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(rig.tree(branch).contains(&"100644 .envrc".to_owned()));
    }
}

#[test]
fn changes_are_written_to_the_users_directory_after_approval() {
    let world = World::new(BELLJAR);
    world.write("project/a.txt", "a\n");
    let run = |typed: &str| {
        let inner = format!("{BELLJAR} exec --workspace-copy project --apply -- sh -c 'echo x >Makefile'");
        let ran = at_a_terminal(&world, &inner, typed);
        (ran.code, ran.stdout)
    };
    let before = world.picture("project");
    for typed in ["n\n", ""] {
        let (code, shown) = run(typed);
        assert!(code == 3 && shown.contains("The changes are kept as "), "{shown}");
        assert_eq!(world.picture("project"), before);
    }
    let (code, shown) = run("y\n");
    assert_eq!(code, 0, "{shown}");
    assert_eq!(world.read("project/Makefile"), "x\n");
}
