//! Checks that `unsafe` is in one room, or a named exception; every other crate forbids it.

use super::{Finding, Repository};
use crate::rooms::{UNSAFE, UNSAFE_EXCEPTIONS};
use crate::source::{code_only, has_word};

const FORBID: &str = "#![forbid(unsafe_code)]";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = unneeded_exceptions(repository);
    let in_other_rooms =
        repository.rust_files().filter(|file| file.room().is_some_and(|room| room != UNSAFE));
    for file in in_other_rooms.filter(|file| !is_exception(&file.path)) {
        if file.is_crate_root()
            && file.path.contains("/src/")
            && !file.text.lines().any(|line| line == FORBID)
        {
            findings.push(file.finding(1, format!("no `{FORBID}`"), "this line in every crate root"));
        }
        for (index, line) in
            code_only(&file.text).lines().enumerate().filter(|(_, line)| has_word(line, "unsafe"))
        {
            findings.push(file.finding(index + 1, line.trim(), format!("`unsafe` only in {UNSAFE}")));
        }
    }
    findings
}

fn is_exception(path: &str) -> bool {
    UNSAFE_EXCEPTIONS.iter().any(|exception| exception.files.contains(&path))
}

/// Finds exceptions for missing files, or without a reason.
fn unneeded_exceptions(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for exception in UNSAFE_EXCEPTIONS {
        let gone = exception.files.iter().filter(|path| repository.file(path).is_none());
        findings.extend(gone.map(|path| Finding {
            path: "xtask/src/rooms.rs".into(),
            line: 1,
            found: format!("an exception for {path}"),
            right: format!("none for what doesn't exist ({})", exception.why),
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_outside_of_its_crate_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\n"),
            ("crates/a/src/bin/b.rs", "fn main() {}\n"),
            ("crates/a/tests/it/main.rs", "fn a() { unsafe { b() } } // unsafe\n"),
            ("crates/confine/src/lib.rs", "unsafe fn a() {}\n"),
            ("bench/src/floor.rs", "unsafe fn a() {}\n"),
            ("bench/src/main.rs", "//! The bench.\n"),
            ("tests/promises/src/main.rs", "//! The probe.\n"),
            ("tests/promises/src/probe/kernel.rs", "unsafe fn a() {}\n"),
            ("tests/promises/src/probe/acts.rs", "unsafe fn a() {}\n"),
        ];
        let findings = check(&Repository::of(&files));
        assert_eq!(
            findings.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(),
            ["crates/a/src/bin/b.rs", "crates/a/tests/it/main.rs", "tests/promises/src/probe/acts.rs"]
        );
    }

    #[test]
    fn an_exception_for_a_file_that_is_gone_is_found() {
        assert_eq!(check(&Repository::of(&[])).len(), 4);
    }
}
