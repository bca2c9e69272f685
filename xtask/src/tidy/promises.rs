//! Checks `PROMISES.md` and the index of its tests: each promise has a measure and a command that exists, and each
//! statement names existing tests, or what is missing.

use super::{File, Finding, Repository};
use crate::promises::{INDEX, PAGE, Promise, Statement, Test, parse};
use std::collections::BTreeSet;

const PATH: &str = "PROMISES.md";
const ROW: &str = "`| [1](docs/reference/promises.md#promise-1) | **Title.** promise | 3 tests; what they count | `command` |`";
const LINE: &str = "`[1] Title`, `P1 statement`, or below a statement `    test_name path/to/file.rs` or `    pending: what is missing`";

/// Target folder for builds with other features, whose programs must not replace those of an ordinary build.
const SEPARATE_TARGET: &str = "CARGO_TARGET_DIR=target/removable-walls ";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let (Some(file), Some(index)) = (repository.file(PATH), repository.file(INDEX)) else {
        let missing = [PATH, INDEX].into_iter().filter(|path| repository.file(path).is_none());
        return missing.map(Finding::missing_document).collect();
    };
    let promises = match parse(&index.text) {
        Ok(promises) => promises,
        Err(unreadable) => {
            return unreadable.iter().map(|bad| index.finding(bad.line, bad.text, LINE)).collect();
        }
    };
    let mut findings = rows(repository, file, &promises);
    let mut statements: Vec<&Statement<'_>> =
        promises.iter().flat_map(|promise| &promise.statements).collect();
    statements.sort_by_key(|statement| statement.number);
    for (expected, statement) in (1..).zip(statements) {
        if statement.number != expected {
            findings.push(index.finding(
                statement.line,
                format!("P{}", statement.number),
                format!("P{expected}, which is missing or there twice"),
            ));
            break;
        }
    }
    for statement in promises.iter().flat_map(|promise| &promise.statements) {
        findings.extend(why_not_held(repository, index, statement));
    }
    findings
}

/// Checks that the rows are those of the index, in its order.
fn rows(repository: &Repository, file: &File, promises: &[Promise<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut expected = promises.iter();
    for (line, row) in file.lines().filter(|(_, row)| row.starts_with("| [")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (&[number, text, measure, commands], Some(promise)) = (cells.as_slice(), expected.next()) else {
            findings.push(file.finding(line, row, format!("a row of the index, as {ROW}")));
            continue;
        };
        let right = format!("[{0}]({PAGE}#promise-{0})", promise.number);
        if number != right {
            findings.push(file.finding(line, number, format!("{right}, the next of {INDEX}")));
        }
        let title = format!("**{}.** ", promise.title);
        if !text.starts_with(&title) {
            findings.push(file.finding(
                line,
                text,
                format!("{title:?} at the beginning, the title in {INDEX}"),
            ));
        }
        let tests: BTreeSet<Test<'_>> =
            promise.statements.iter().flat_map(|statement| &statement.tests).copied().collect();
        let right = count(tests.len());
        if (tests.is_empty() || measure.split(';').next() != Some(right.as_str()))
            && !measure.starts_with("pending: ")
        {
            findings.push(file.finding(
                line,
                measure,
                format!("`{right}` or `pending: ` with what is missing"),
            ));
        }
        let mut spans = commands.split('`').skip(1).step_by(2).peekable();
        if spans.peek().is_none() {
            findings.push(file.finding(line, commands, "a command in backticks"));
        }
        let wrong = spans.filter(|command| !exists(repository, command, &tests));
        findings.extend(wrong.map(|command| {
            file.finding(
                line,
                command,
                "a command that exists, with the name of a test or module of this promise",
            )
        }));
    }
    let missing =
        expected.map(|promise| file.finding(1, "no row", format!("promise {} of {INDEX}", promise.number)));
    findings.extend(missing);
    findings
}

fn count(tests: usize) -> String {
    if tests == 1 { "1 test".into() } else { format!("{tests} tests") }
}

/// Returns true for `cargo test -p PACKAGE … FILTER` of one of the tests, and for a documented command of `belljar`.
fn exists(repository: &Repository, command: &str, tests: &BTreeSet<Test<'_>>) -> bool {
    let has = |path: &str, text: &str| repository.file(path).is_some_and(|file| file.text.contains(text));
    if command.starts_with("belljar ") {
        return has("docs/reference/commands.md", command);
    }
    let command = command.strip_prefix(SEPARATE_TARGET).unwrap_or(command);
    let Some(arguments) = command.strip_prefix("cargo test -p ") else { return false };
    let package = format!("name = \"{}\"", arguments.split(' ').next().unwrap_or_default());
    let mut manifests = repository.with_extension("toml").filter(|file| file.name() == "Cargo.toml");
    // Options of the test program follow `--`. Without a filter, all tests of a package run.
    let arguments = arguments.split(" -- ").next().unwrap_or_default();
    let filter = arguments.rsplit([' ', ':']).next().unwrap_or_default().trim_start_matches("belljar-");
    manifests.any(|file| file.text.contains(&package))
        && tests.iter().any(|test| test.name.contains(filter) || test.path.contains(filter))
}

fn why_not_held(repository: &Repository, index: &File, statement: &Statement<'_>) -> Vec<Finding> {
    let line = statement.line;
    if statement.tests.is_empty() && statement.pending.is_none() {
        return vec![index.finding(line, "no test", "a test, or `pending: ` with what is missing")];
    }
    let mut findings = Vec::new();
    for Test { name, path } in &statement.tests {
        match repository.file(path) {
            None => findings.push(index.finding(line, format!("the file {path}"), "a file that exists")),
            Some(tests) if !tests.text.contains(&format!("fn {name}(")) => {
                findings.push(index.finding(line, format!("the test {name}"), format!("a test of {path}")));
            }
            Some(_) => {}
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: (&str, &str) = ("t.rs", "#[test]\nfn x() {}\n#[test]\nfn y() {}\n");
    const MANIFEST: (&str, &str) = ("crates/a/Cargo.toml", "name = \"a\"\n");

    fn lines(promises: &str, index: &str) -> Vec<(String, usize)> {
        let repository = Repository::of(&[(PATH, promises), (INDEX, index), TESTS, MANIFEST]);
        check(&repository).into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    fn row(number: usize, measure: &str, command: &str) -> String {
        format!("| [{number}]({PAGE}#promise-{number}) | **T.** a | {measure} | {command} |\n")
    }

    #[test]
    fn statement_without_its_test_is_found() {
        let promises = row(1, "1 test; 20 kills", "`cargo test -p a x`");
        assert_eq!(lines(&promises, "[1] T\nP1 a\n    x t.rs\nP2 b\n    pending: a second node\n"), []);
        let index = "[1] T\nP1 a\n    x t.rs\nP2 b\nP3 c\n    gone t.rs\n    x gone.rs\nP5 d\n    x t.rs\n";
        let found = lines(&row(1, "3 tests", "`cargo test -p a x`"), index);
        assert_eq!(found.iter().map(|(_, line)| *line).collect::<Vec<_>>(), [8, 4, 5, 5]);
        assert_eq!(lines(&promises, "P1 a\n"), [(INDEX.to_owned(), 1)]);
        assert_eq!(check(&Repository::of(&[])).len(), 2);
    }

    #[test]
    fn promise_with_another_count_number_or_command_is_found() {
        let index = "[1] T\nP1 a\n    x t.rs\n    y t.rs\n[2] T\nP2 b\n    x t.rs\n";
        let second = row(2, "1 test", "`cargo test -p a --test it t::x`");
        let with = |first: String| lines(&(first + &second), index).len();
        assert_eq!(with(row(1, "2 tests", "`cargo test -p a y`")), 0);
        assert_eq!(with(row(1, "pending: a kernel of version 7", "`cargo test -p a y`")), 0);
        assert_eq!(with(row(1, "3 tests", "`cargo test -p a y`")), 1);
        assert_eq!(with(row(1, "2 tests", "`cargo test -p b y`")), 1);
        assert_eq!(with(row(1, "2 tests", "`cargo test -p a z`")), 1);
        assert_eq!(with(row(1, "2 tests", "by reading")), 1);
        assert_eq!(with(row(3, "2 tests", "`cargo test -p a y`")), 1);
        assert_eq!(with(String::new()), 3);
    }
}
