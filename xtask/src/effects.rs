//! The effects of the configuration's members, as a page: each member, and the test that shows its effect.

use belljar_config::reference::{AcceptedValues, Member, ROOT};
use std::fmt::Write;

/// A row: a pattern of paths, and the test that shows the effect of the matching members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The line of the file.
    pub(crate) line: usize,
    pub(crate) pattern: &'static str,
    /// The file and the test; `None` where the row names none, which `tidy` refuses.
    pub(crate) test: Option<(&'static str, &'static str)>,
}

/// Path of the rows.
pub(crate) const PATH: &str = "xtask/src/effects.txt";

const HEAD: &str = "# What each member of the configuration changes, and the test that shows it

Made by `cargo xtask generate` from `xtask/src/effects.txt`; `cargo xtask tidy` fails when a member has no test here, when a test is gone, and
when one is not below `crates/cli/tests` or `tests`: each test runs the whole program, so that it fails where a setting is read and not passed on.
What members mean is in [the reference](configuration.md). Of members that have one value the test shows that another one is refused.

| member | shown by |
| --- | --- |
";

/// The rows of the file.
pub(crate) fn rows() -> Vec<Effect> {
    let lines = include_str!("effects.txt").lines().zip(1..);
    let rows = lines.filter(|(text, _)| !text.starts_with('#')).filter_map(|(text, line)| {
        let mut words = text.split_whitespace();
        let pattern = words.next()?;
        Some(Effect { line, pattern, test: words.next().zip(words.next()) })
    });
    rows.collect()
}

/// The paths of all members that have no members of their own.
pub(crate) fn members() -> Vec<String> {
    fn walk(above: &str, members: &[Member], found: &mut Vec<String>) {
        for member in members {
            let path = format!("{above}{}", member.name);
            match member.takes {
                AcceptedValues::Section(below) => walk(&format!("{path}."), below, found),
                AcceptedValues::Sections(below) => walk(&format!("{path}[]."), below, found),
                _ => found.push(path),
            }
        }
    }
    let mut found = Vec::new();
    walk("", ROOT, &mut found);
    found
}

/// The row for a member: the one with the longest pattern that fits.
pub(crate) fn row_for<'r>(rows: &'r [Effect], member: &str) -> Option<&'r Effect> {
    rows.iter().filter(|row| fits(row.pattern, member)).max_by_key(|row| weight(row.pattern))
}

/// The page.
pub(crate) fn page() -> String {
    let (rows, mut page) = (rows(), HEAD.to_owned());
    for member in members() {
        let shown = match row_for(&rows, &member).and_then(|row| row.test) {
            Some((path, test)) => format!("[{test}](../../{path})"),
            None => "no test".to_owned(),
        };
        // Writing to a String can't fail.
        let _ = writeln!(page, "| `{member}` | {shown} |");
    }
    page
}

/// Returns true if the pattern matches the path.
fn fits(pattern: &str, path: &str) -> bool {
    let (mut names, mut parts) = (path.split('.'), pattern.split('.'));
    loop {
        match (parts.next(), names.next()) {
            (Some("**"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(part), Some(name)) if part == name => {}
            _ => return false,
        }
    }
}

/// Returns the specificity of a pattern: names count more than stars.
fn weight(pattern: &str) -> usize {
    let of_part = |part: &str| match part {
        "**" => 0,
        "*" => 1,
        _ => 100,
    };
    pattern.split('.').map(of_part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_matching_pattern_wins() {
        let row = |pattern| Effect { line: 1, pattern, test: None };
        let rows = [row("a.**"), row("a.*"), row("a.b"), row("a.*.c")];
        let found = |path: &str| row_for(&rows, path).map(|row| row.pattern);
        assert_eq!(
            ["a.b", "a.x", "a.x.c", "a.x.y", "b"].map(found),
            [Some("a.b"), Some("a.*"), Some("a.*.c"), Some("a.**"), None]
        );
    }

    #[test]
    fn each_member_has_its_line() {
        let page = page();
        for member in
            ["sandboxing.default_backend", "inference.providers[].credential.env", "trust.jobs.an_hour"]
        {
            assert!(page.contains(&format!("\n| `{member}` | [")), "{member}");
        }
    }
}
