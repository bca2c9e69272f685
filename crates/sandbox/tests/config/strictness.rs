//! Tests of YAML features that a configuration doesn't allow.

use crate::mistakes::refused;
use belljar_contract::category::Category;
use belljar_sandbox::config::{BackendName, Config, LARGEST_BYTES};
use proptest::prelude::{ProptestConfig, prop, prop_assert, prop_assert_eq, proptest};

#[test]
fn what_yaml_1_1_and_1_2_read_differently_is_refused() {
    insta::assert_snapshot!(refused("sandboxing: {docker: {image: no, runtime: 010, auto_remove: on}}"), @"
    1:30: sandboxing.docker.image: found `no`, which is ambiguous without quotes; expected the name of an image, such as synthorg-sandbox:latest, in quotes
    1:43: sandboxing.docker.runtime: found `010`, which is ambiguous without quotes; expected the name of a runtime, such as runsc, in quotes
    1:61: sandboxing.docker.auto_remove: found `on`; expected `true`: containers are always removed
    ");
    insta::assert_snapshot!(refused("sandboxing: {docker: {runtime: 22:22, pids_limit: 1_0, image: ~}}"), @"
    1:32: sandboxing.docker.runtime: found `22:22`, which is ambiguous without quotes; expected the name of a runtime, such as runsc, in quotes
    1:51: sandboxing.docker.pids_limit: found `1_0`; expected a whole number from 1 to 1024
    1:63: sandboxing.docker.image: found `~`, which is ambiguous without quotes; expected the name of an image, such as synthorg-sandbox:latest, in quotes
    ");
}

#[test]
fn tabs_and_broken_syntax_are_told_with_their_place() {
    insta::assert_snapshot!(refused("sandboxing:\n\tdocker: {}\n"), @"2:2: the file: found invalid YAML: tabs disallowed within this context (block indentation); expected YAML 1.2, indented with spaces");
    insta::assert_snapshot!(refused("sandboxing:\n  docker: {image: \"x}\n"), @"2:19: the file: found invalid YAML: while scanning a quoted scalar, found unexpected end of stream; expected YAML 1.2, indented with spaces");
    insta::assert_snapshot!(refused("sandboxing: {}\n---\nsandboxing: {}\n"), @"2:1: the file: found a second document; expected one document");
    insta::assert_snapshot!(refused(b"sandboxing:\n  \xff: 1\n"), @"2:3: the file: found a byte that is not UTF-8; expected text in UTF-8");
    insta::assert_snapshot!(refused("sandboxing:\n  docker:\n    image: !!str x\n    ? [a]\n    : b\n"), @"
    3:12: sandboxing.docker.image: found a tag; expected a value without one
    4:7: sandboxing.docker: found a key that is a list or a mapping; expected a name
    ");
}

#[test]
fn neither_anchors_nor_aliases_nor_merged_mappings_are_read() {
    insta::assert_snapshot!(refused("sandboxing:\n  native: &n {}\n  docker: *n\n"), @"
    2:11: sandboxing.native: found an anchor; expected a value without one: aliases are not supported
    3:11: sandboxing.docker: found an alias; expected the value itself, written out
    3:11: sandboxing.docker: found nothing; expected a mapping
    ");
    insta::assert_snapshot!(refused("sandboxing:\n  docker:\n    <<: {image: x}\n"), @"3:5: sandboxing.docker.<<: found an unknown member; expected the members themselves, written out: mappings are not merged here");
}

#[test]
fn a_small_text_never_becomes_a_large_tree() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    let mistakes = Config::parse(bomb.as_bytes()).unwrap_err();
    assert_eq!(mistakes.as_slice().len(), 200);
    assert_eq!(mistakes.unlisted(), 30 + 29 * 9 + 30 + 1 - 200);
}

#[test]
fn the_size_the_depth_and_the_number_of_values_are_bounded() {
    insta::assert_snapshot!(refused(vec![b'#'; LARGEST_BYTES + 1]), @"1:1: the file: found 262145 bytes; expected at most 262144");
    insta::assert_snapshot!(refused("[".repeat(100_000)), @"1:256: the file: found invalid YAML: recursion limit exceeded; expected YAML 1.2, indented with spaces");
    insta::assert_snapshot!(refused(format!("sandboxing: [{}]", "x,".repeat(20_000))), @"1:20008: the file: found more than 10000 values; expected fewer values");
}

#[test]
fn a_name_of_kilobytes_and_control_characters_are_not_repeated() {
    let name = "x".repeat(100_000);
    let said =
        refused(format!("sandboxing: {{{name}: 1, \"a\\u001b[31m\": 2, docker: {{image: \"\\e[31m\"}}}}"));
    assert!(said.len() < 2_000, "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn whatever_is_written_is_read_or_refused_with_places_that_are_in_the_file(
        parts in prop::collection::vec(
            "(sandboxing|docker|overrides|web|image|lifecycle|log|required|: |:|\n|\n  |\n    |- |\\[|\\]|\\{|\\}|, |\"|'|#|&a|\\*a|!!str|<<|\\||>|%|\t|no|0|1.5|512m|\u{e9}|\u{0}|---|\\.\\.\\.|\\?)",
            0..60,
        ),
    ) {
        let written = parts.concat();
        if let Err(mistakes) = Config::parse(written.as_bytes()) {
            prop_assert!(!mistakes.as_slice().is_empty());
            for mistake in mistakes.as_slice() {
                let lines = written.split('\n').count();
                prop_assert!((1..=lines).contains(&mistake.position.line), "{mistake} in {written:?}");
                prop_assert!(mistake.position.column >= 1);
            }
        }
    }

    #[test]
    fn a_good_file_with_one_line_missing_twice_or_bent_never_makes_a_tool_less_sealed_in_silence(
        line in 0..42_usize,
        bend in 0..3_u8,
    ) {
        let mut lines: Vec<String> = include_str!("layered.yaml").lines().map(str::to_owned).collect();
        match bend {
            0 => drop(lines.remove(line % lines.len())),
            1 => lines.insert(line % lines.len(), lines[line % lines.len()].clone()),
            _ => {
                let at = line % lines.len();
                lines[at] = lines[at].replacen(|c: char| c.is_ascii_lowercase(), "q", 1);
            }
        }
        if let Ok(config) = Config::parse(lines.join("\n").as_bytes()) {
            let usual = Config::default().sandboxing;
            for category in Category::ALL {
                prop_assert_eq!(config.sandboxing.backend_for(category), usual.backend_for(category));
            }
            prop_assert_eq!(&config.sandboxing.docker.network, &usual.docker.network);
            prop_assert_eq!(config.sandboxing.limits_of(BackendName::Docker), usual.limits_of(BackendName::Docker));
        }
    }
}
