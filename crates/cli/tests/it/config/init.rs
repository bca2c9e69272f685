//! `belljar config init`.

use super::run_with;
use crate::BELLJAR;
use belljar_testkit::world::World;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn init_writes_a_file_that_passes_check_with_and_without_its_comment_marks() {
    let world = World::new(BELLJAR);
    let ran = world.run(&["config", "init", "new.yaml"]).succeeded();
    assert_eq!(ran.stdout, "new.yaml\n");
    let path = world.path().join("new.yaml");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(world.run(&["config", "init", "-"]).succeeded().stdout, text);
    // As written, it changes no default.
    let ran = world.run(&["config", "check", "new.yaml"]).succeeded();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    // One mark less on each line: explanations stay comments, every member is written.
    let all: Vec<&str> = text.lines().map(|line| line.strip_prefix('#').unwrap_or(line)).collect();
    world.write("all.yaml", all.join("\n"));
    let ran = world.run(&["config", "check", "all.yaml"]).succeeded();
    for shown in ["terminal         native", "model small", "web rule 0", "agent mine", "trust: disabled"] {
        assert!(ran.stdout.contains(shown), "{shown}: {}", ran.stdout);
    }
}

#[test]
fn init_on_an_existing_file_changes_nothing() {
    let world = World::new(BELLJAR);
    world.write("mine.yaml", "log: {}\n");
    let ran = world.run(&["config", "init", "mine.yaml"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (125, ""));
    insta::assert_snapshot!(
        ran.stderr,
        @"belljar: mine.yaml exists, and is not overwritten; name another file, or move it away"
    );
    assert_eq!(fs::read_to_string(world.path().join("mine.yaml")).unwrap(), "log: {}\n");
}

#[test]
fn init_without_a_path_writes_where_a_configuration_is_searched_for() {
    let world = World::new(BELLJAR);
    let folder = world.path().join("config");
    let variables = [("XDG_CONFIG_HOME", folder.to_str().unwrap())];
    run_with(&world, &["config", "init"], &variables).succeeded();
    assert_eq!(fs::metadata(folder.join("belljar")).unwrap().permissions().mode() & 0o777, 0o700);
    let shown = run_with(&world, &["config", "show", "--json"], &variables).succeeded().json();
    assert_eq!(shown["named_by"], "search");
    assert_eq!(shown["file"], folder.join("belljar/config.yaml").to_str().unwrap());
    let again = run_with(&world, &["config", "init"], &variables);
    assert_eq!(again.code, 125, "{again:?}");
}
