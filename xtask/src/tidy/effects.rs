//! Checks the effects of the configuration: each member has a row that names a test of the whole program, the tests
//! exist, and no row is unused.

use super::{Finding, Repository};
use crate::effects::{self, Effect, PATH};

/// Folders of tests that run `belljar` itself. A library that applies a setting doesn't prove that the program passes
/// it on.
const OF_THE_PROGRAM: [&str; 2] = ["crates/cli/tests/", "tests/"];

const TEST_OF_THE_PROGRAM: &str = "a test below crates/cli/tests or tests, which run the program";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    found(repository, &effects::rows(), &effects::members())
}

fn found(repository: &Repository, rows: &[Effect], members: &[String]) -> Vec<Finding> {
    let finding = |line: usize, found: String, right: &str| Finding {
        path: PATH.to_owned(),
        line,
        found,
        right: right.to_owned(),
    };
    let mut findings = Vec::new();
    let mut used = Vec::new();
    for member in members {
        match effects::row_for(rows, member) {
            None => findings.push(finding(1, format!("no row for {member}"), "a test that shows its effect")),
            Some(row) => used.push(row.line),
        }
    }
    for row in rows.iter().filter(|row| !used.contains(&row.line)) {
        findings.push(finding(
            row.line,
            format!("{}, which is no member", row.pattern),
            "a path of the reference",
        ));
    }
    for row in rows {
        let Some((path, test)) = row.test else {
            findings.push(finding(row.line, format!("{} without a test", row.pattern), "a file and a test"));
            continue;
        };
        if !of_the_program(path) {
            findings.push(finding(row.line, format!("{path}, a test of a library"), TEST_OF_THE_PROGRAM));
        }
        let has_test = |text: &str| text.contains(&format!("fn {test}("));
        if !repository.file(path).is_some_and(|file| has_test(&file.text)) {
            findings.push(finding(row.line, format!("{path} without {test}"), "a test that exists"));
        }
    }
    findings
}

fn of_the_program(path: &str) -> bool {
    OF_THE_PROGRAM.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_table_mismatches_are_found() {
        let row = |line, pattern, test| Effect { line, pattern, test };
        let rows = [
            row(2, "a.b", Some(("tests/t.rs", "there"))),
            row(3, "a.c", Some(("tests/t.rs", "gone"))),
            row(4, "z", Some(("tests/t.rs", "there"))),
            row(5, "a.d", None),
        ];
        let members = ["a.b", "a.c", "a.d", "a.e"].map(str::to_owned);
        let repository = Repository::of(&[("tests/t.rs", "fn there() {}")]);
        let lines: Vec<_> = found(&repository, &rows, &members).iter().map(|found| found.line).collect();
        assert_eq!(lines, [1, 4, 3, 5]);
        assert_eq!(found(&repository, &rows[..1], &members[..1]), []);
    }

    #[test]
    fn effects_row_naming_a_library_test_is_found() {
        let test = |path| [Effect { line: 2, pattern: "a", test: Some((path, "there")) }];
        let found = |path| found(&Repository::of(&[(path, "fn there() {}")]), &test(path), &["a".to_owned()]);
        for path in ["crates/policy/tests/it/a.rs", "crates/cli/src/a.rs", "xtask/tests/a.rs"] {
            let findings = found(path);
            assert_eq!(findings.len(), 1, "{path}: {findings:?}");
            assert_eq!(findings[0].right, TEST_OF_THE_PROGRAM);
        }
        for path in ["crates/cli/tests/it/a.rs", "tests/promises/tests/it/a.rs"] {
            assert_eq!(found(path), [], "{path}");
        }
    }
}
