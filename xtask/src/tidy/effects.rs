//! The effects of the configuration: each member has a row that names a test, the tests exist, and no row is for nothing.

use super::{Finding, Repository};
use crate::effects::{self, Effect, PATH};

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
        let has_test = |text: &str| text.contains(&format!("fn {test}("));
        if !repository.file(path).is_some_and(|file| has_test(&file.text)) {
            findings.push(finding(row.line, format!("{path} without {test}"), "a test that exists"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_without_a_row_rows_for_nothing_and_tests_that_are_gone_are_found() {
        let row = |line, pattern, test| Effect { line, pattern, test };
        let rows = [
            row(2, "a.b", Some(("t.rs", "there"))),
            row(3, "a.c", Some(("t.rs", "gone"))),
            row(4, "z", Some(("t.rs", "there"))),
            row(5, "a.d", None),
        ];
        let members = ["a.b", "a.c", "a.d", "a.e"].map(str::to_owned);
        let repository = Repository::of(&[("t.rs", "fn there() {}")]);
        let lines: Vec<_> = found(&repository, &rows, &members).iter().map(|found| found.line).collect();
        assert_eq!(lines, [1, 4, 3, 5]);
        assert_eq!(found(&repository, &rows[..1], &members[..1]), []);
    }
}
