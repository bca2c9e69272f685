//! The index of promises: which tests hold which statement, and the page that lists both by promise.

use std::fmt::Write;

/// The file that is edited by hand, from the root.
pub(crate) const INDEX: &str = "tests/promises/index.txt";

/// The generated page, from the root.
pub(crate) const PAGE: &str = "docs/reference/promises.md";

const HEAD: &str = "# Index of promises

<!-- Written by `cargo xtask generate` from `tests/promises/index.txt`. -->

[PROMISES.md](../../PROMISES.md) states the promises. This page divides each of them into statements and links the tests that hold a
statement. The number of a statement (`P1`) never changes. A statement that no test holds is `pending`, with what is missing.
";

/// A promise with its statements.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Promise<'t> {
    pub(crate) number: usize,
    pub(crate) title: &'t str,
    pub(crate) statements: Vec<Statement<'t>>,
}

/// A statement that tests hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Statement<'t> {
    /// Line of the index, counted from one.
    pub(crate) line: usize,
    pub(crate) number: usize,
    pub(crate) text: &'t str,
    pub(crate) tests: Vec<Test<'t>>,
    /// The part that no test holds.
    pub(crate) pending: Option<&'t str>,
}

/// A test, by its name and file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Test<'t> {
    pub(crate) name: &'t str,
    pub(crate) path: &'t str,
}

/// A line of the index that can't be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable<'t> {
    pub(crate) line: usize,
    pub(crate) text: &'t str,
}

/// Reads the index. A line begins a promise (`[1] title`) or a statement (`P1 text`), or names below a statement a test
/// (`test_name path/to/file.rs`) or what is missing (`pending: text`). Other lines are returned as the error.
pub(crate) fn parse(index: &str) -> Result<Vec<Promise<'_>>, Vec<Unreadable<'_>>> {
    let (mut promises, mut unreadable) = (Vec::<Promise<'_>>::new(), Vec::new());
    for (line, text) in (1..).zip(index.lines()) {
        if text.is_empty() || text.starts_with('#') || add(&mut promises, line, text).is_some() {
            continue;
        }
        unreadable.push(Unreadable { line, text });
    }
    if unreadable.is_empty() { Ok(promises) } else { Err(unreadable) }
}

/// Adds a line to the promises; returns `None` if it can't be read.
fn add<'t>(promises: &mut Vec<Promise<'t>>, line: usize, text: &'t str) -> Option<()> {
    if let Some(number) = text.strip_prefix('[') {
        let (number, title) = number.split_once("] ")?;
        let number = number.parse().ok()?;
        promises.push(Promise { number, title, statements: Vec::new() });
        return Some(());
    }
    let statements = &mut promises.last_mut()?.statements;
    if let Some(below) = text.strip_prefix("    ") {
        let statement = statements.last_mut()?;
        if let Some(missing) = below.strip_prefix("pending: ") {
            statement.pending = Some(missing);
        } else {
            let (name, path) = below.split_once(' ')?;
            statement.tests.push(Test { name, path });
        }
        return Some(());
    }
    let (number, text) = text.strip_prefix('P')?.split_once(' ')?;
    let number = number.parse().ok()?;
    statements.push(Statement { line, number, text, tests: Vec::new(), pending: None });
    Some(())
}

/// Returns the page, which has no promise as long as the index can't be read: then `cargo xtask tidy` names the line.
pub(crate) fn page() -> String {
    write_page(&parse(include_str!("../../tests/promises/index.txt")).unwrap_or_default())
}

fn write_page(promises: &[Promise<'_>]) -> String {
    let mut page = HEAD.to_owned();
    for Promise { number, title, statements } in promises {
        let rows: String = statements.iter().map(row).collect();
        let _ = write!(
            page,
            "\n## Promise {number}\n\n{title}.\n\n| # | statement | tests |\n| --- | --- | --- |\n{rows}"
        );
    }
    page
}

fn row(statement: &Statement<'_>) -> String {
    let tests = statement.tests.iter().map(|Test { name, path }| format!("[{name}](../../{path})"));
    let missing = statement.pending.map(|missing| format!("pending: {missing}"));
    let held: Vec<String> = tests.chain(missing).collect();
    // The index is read from the root, the page from its directory.
    let text = statement.text.replace("](docs/", "](../../docs/");
    format!("| P{} | {text} | {} |\n", statement.number, held.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "# comment\n[1] Title\nP2 A [b](docs/b.md).\n    x t.rs\n    y t.rs\nP1 C.\n    pending: a test with two nodes\n";

    #[test]
    fn page_lists_statements_with_tests_and_what_is_missing() {
        let page = write_page(&parse(SMALL).unwrap());
        assert!(
            page.contains("| P2 | A [b](../../docs/b.md). | [x](../../t.rs), [y](../../t.rs) |\n"),
            "{page}"
        );
        assert!(page.contains("## Promise 1\n\nTitle.\n"), "{page}");
        assert!(page.contains("| P1 | C. | pending: a test with two nodes |\n"), "{page}");
    }

    #[test]
    fn unreadable_lines_are_returned() {
        let lines = |index| parse(index).unwrap_err().iter().map(|bad| bad.line).collect::<Vec<_>>();
        assert_eq!(
            lines("P1 before any promise\n[1]\n[1] a\n    t t.rs\nPx a\nP1 a\n    t\n"),
            [1, 2, 4, 5, 7]
        );
    }
}
