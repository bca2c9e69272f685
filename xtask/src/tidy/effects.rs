//! The effects of the configuration: each member has a row that names a test, the tests exist, and no row is for nothing.

use super::{Finding, Repository};
use crate::effects::{self, Effect, PATH};

/// As many members may have no test yet. It only ever becomes less.
const MOST_PENDING: usize = 18;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    found(repository, &effects::rows(), &effects::members(), MOST_PENDING)
}

fn found(repository: &Repository, rows: &[Effect], members: &[String], most_pending: usize) -> Vec<Finding> {
    let finding = |line: usize, found: String, right: &str| Finding {
        path: PATH.to_owned(),
        line,
        found,
        right: right.to_owned(),
    };
    let mut findings = Vec::new();
    let (mut pending, mut used) = (0, Vec::new());
    for member in members {
        match effects::row_for(rows, member) {
            None => findings.push(finding(1, format!("no row for {member}"), "a test that shows its effect")),
            Some(row) => {
                pending += usize::from(row.test.is_none());
                used.push(row.line);
            }
        }
    }
    for row in rows.iter().filter(|row| !used.contains(&row.line)) {
        findings.push(finding(
            row.line,
            format!("{}, which is no member", row.pattern),
            "a path of the reference",
        ));
    }
    for (line, path, test) in
        rows.iter().filter_map(|row| row.test.map(|(path, test)| (row.line, path, test)))
    {
        let has_test = |text: &str| text.contains(&format!("fn {test}("));
        if !repository.file(path).is_some_and(|file| has_test(&file.text)) {
            findings.push(finding(line, format!("{path} without {test}"), "a test that exists"));
        }
    }
    if pending > most_pending {
        findings.push(finding(1, format!("{pending} members without a test"), "no more than before"));
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
        let lines = |most| {
            found(&repository, &rows, &members, most).iter().map(|found| found.line).collect::<Vec<_>>()
        };
        assert_eq!(lines(1), [1, 4, 3]);
        assert_eq!(lines(0), [1, 4, 3, 1]);
        assert_eq!(found(&repository, &rows[..1], &members[..1], 0), []);
    }
}
