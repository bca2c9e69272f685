//! Ignored files of a repository aren't pushed: by the cloned ignore rules, whatever a sandbox has changed in them.

use super::rig::GitFixture;
use crate::BELLJAR;
use belljar_testkit::world::World;
use serde_json::Value;

const RULES: &str = "target/\n*.log\n!keep.log\n/local\n";

fn begin(test: &str) -> Option<GitFixture> {
    let files = [
        (".gitignore", RULES),
        ("README.md", "hello\n"),
        ("sub/.gitignore", "generated/\n"),
        // It is tracked although a rule ignores it.
        ("sub/old.log", "old\n"),
    ];
    let rig = GitFixture::with(test, World::new(BELLJAR), &files)?;
    rig.clone().succeeded();
    for path in ["target/debug/app", "target/x", "a.log", "keep.log", "local", "sub/local", "sub/generated/b"]
    {
        rig.leaves(path, "made\n");
    }
    rig.leaves("sub/old.log", "new\n");
    rig.leaves("generated/b", "kept\n");
    Some(rig)
}

fn listed(told: &Value, member: &str) -> Vec<String> {
    let all = told[member].as_array().unwrap().iter();
    all.map(|path| path.as_str().unwrap().to_owned()).collect()
}

#[test]
fn ignored_files_stay_in_place_and_are_reported() {
    let Some(rig) = begin("ignored_files_stay_in_place_and_are_reported") else { return };
    let told = rig.push(&["--branch", "belljar/one", "--json"]).succeeded().json();
    assert_eq!(listed(&told, "ignored"), ["a.log", "local", "sub/generated/", "target/"], "{told:#}");
    let tree = rig.tree("belljar/one");
    assert_eq!(
        tree,
        [
            "100644 .gitignore",
            "100644 README.md",
            "100644 generated/b",
            "100644 keep.log",
            "100644 sub/.gitignore",
            "100644 sub/local",
            "100644 sub/old.log",
        ]
    );
    assert_eq!(belljar_testkit::git::git(&rig.bare, &["show", "belljar/one:sub/old.log"]), "new\n");
    let told = rig.push(&["--branch", "belljar/two", "--include-ignored", "--json"]).succeeded().json();
    assert!(listed(&told, "ignored").is_empty(), "{told:#}");
    assert_eq!(rig.tree("belljar/two").len(), 12);
    let ran = rig.push(&["--branch", "belljar/one"]).succeeded();
    assert!(ran.stderr.contains("target/ was left out: it is ignored (--include-ignored)"), "{ran:?}");
}

#[test]
fn ignore_rules_written_by_a_sandbox_are_disregarded_and_reported() {
    let Some(rig) = begin("ignore_rules_written_by_a_sandbox_are_disregarded_and_reported") else { return };
    // It would ignore one file and include others, by every mechanism of git.
    rig.leaves(".gitignore", "evil.sh\n!target/\n!*.log\n");
    rig.leaves("evil.sh", "#!/bin/sh\n");
    rig.leaves("target/.gitignore", "!*\n");
    rig.leaves(".git/info/exclude", "evil.sh\n");
    rig.leaves(".git/config", "[core]\n\texcludesFile = /dev/stdin\n\tfsmonitor = touch ../ran\n");
    let push = ["--branch", "belljar/one", "--trust", ".gitignore"];
    assert_eq!(rig.push(&push[..2]).code, 3, "changed rules need approval");
    let told = rig.push(&[&push[..], &["--json"]].concat()).succeeded().json();
    assert_eq!(listed(&told, "ignored"), ["a.log", "local", "sub/generated/", "target/"], "{told:#}");
    assert_eq!(listed(&told, "ignore_rules_changed"), [".gitignore"], "{told:#}");
    assert!(rig.tree("belljar/one").contains(&"100644 evil.sh".to_owned()));
    assert!(!rig.has_run());
    let ran = rig.push(&push).succeeded();
    assert!(
        ran.stderr.contains(".gitignore differs; what is ignored was decided as it was cloned"),
        "{ran:?}"
    );
}

#[test]
fn changes_only_in_ignored_files_leave_nothing_to_push() {
    let test = "changes_only_in_ignored_files_leave_nothing_to_push";
    let Some(rig) = GitFixture::with(test, World::new(BELLJAR), &[(".gitignore", RULES), ("a", "a\n")])
    else {
        return;
    };
    rig.clone().succeeded();
    for at in 0..30 {
        rig.leaves(&format!("{at}.log"), "x\n");
    }
    let told = rig.push(&["--branch", "belljar/one", "--json"]).succeeded().json();
    assert_eq!((told["outcome"].as_str(), listed(&told, "ignored").len()), (Some("nothing_to_push"), 30));
    let ran = rig.push(&["--branch", "belljar/one"]).succeeded();
    assert!(ran.stderr.contains("10 more were left out") && ran.stdout == "Nothing to push.\n", "{ran:?}");
    rig.leaves("b", "b\n");
    rig.push(&["--branch", "belljar/one"]).succeeded();
}

#[test]
fn file_name_that_looks_like_a_git_pattern_is_taken_literally() {
    let Some(rig) = begin("file_name_that_looks_like_a_git_pattern_is_taken_literally") else { return };
    for path in [":!x", ":(top)local", ":/local", "^x", ":!x.log"] {
        rig.leaves(path, "made\n");
    }
    let told = rig.push(&["--branch", "belljar/one", "--json"]).succeeded().json();
    assert_eq!(
        listed(&told, "ignored"),
        [":!x.log", "a.log", "local", "sub/generated/", "target/"],
        "{told:#}"
    );
    let tree = rig.tree("belljar/one");
    for kept in ["100644 :!x", "100644 :(top)local", "100644 :/local", "100644 ^x"] {
        assert!(tree.iter().any(|entry| entry == kept), "{kept}: {tree:?}");
    }
}
