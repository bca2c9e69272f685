//! What gains trust where it goes takes a yes: at a push, and where changes are written into a person's directory.

use super::rig::Rig;
use crate::BELLJAR;
use belljar_testkit::git::refs;
use belljar_testkit::world::World;

#[test]
fn a_push_lists_what_gains_trust_and_goes_out_when_somebody_has_said_yes() {
    let Some(rig) = Rig::start("a_push_lists_what_gains_trust_and_goes_out_when_somebody_has_said_yes")
    else {
        return;
    };
    rig.clone().succeeded();
    rig.leaves(".github/workflows/ci.yml", "on: push\n");
    rig.leaves(".VSCode/tasks.json", "{}\n");
    rig.leaves("src/b.txt", "b\n");
    let told = rig.push(&["--branch", "belljar/one"]);
    assert_eq!(told.code, 3, "{told:?}");
    insta::assert_snapshot!(told.stderr, @r"
    belljar: 2 of the paths gain trust where they go, and nobody has said yes to that
      editor      .VSCode/tasks.json  (an editor runs tasks and programs that it names)
      ci          .github/workflows/ci.yml  (GitHub runs it, with the secrets of the repository)

    Hint: look at them, then say --trust PATH for each that may go, or --trust-all
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
fn a_command_writes_nothing_into_a_persons_directory_that_takes_a_yes() {
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
fn a_session_commits_what_takes_a_yes_only_with_one() {
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
    assert_eq!(world.run(&["session", "commit", "s", "--trust", "Makefile"]).code, 3);
    world.run(&["session", "commit", "s", "--trust", "Makefile", "--trust", ".claude/"]).succeeded();
    assert_eq!(world.read("project/a.txt"), "more\n");
    exec("echo most >a.txt");
    world.run(&["session", "commit", "s"]).succeeded();
    world.run(&["session", "end", "s"]).succeeded();
}
