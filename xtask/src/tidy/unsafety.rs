//! `unsafe` has one room; every other crate forbids it.

use super::{Finding, Repository};
use crate::rooms::UNSAFE;
use crate::source::{code_only, has_word};

const FORBID: &str = "#![forbid(unsafe_code)]";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.rust_files().filter(|file| file.room().is_some_and(|room| room != UNSAFE)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_outside_of_its_room_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\n"),
            ("crates/a/src/bin/b.rs", "fn main() {}\n"),
            ("crates/a/tests/it/main.rs", "fn a() { unsafe { b() } } // unsafe\n"),
            ("crates/confine/src/lib.rs", "unsafe fn a() {}\n"),
        ];
        let findings = check(&Repository::of(&files));
        assert_eq!(
            findings.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(),
            ["crates/a/src/bin/b.rs", "crates/a/tests/it/main.rs"]
        );
    }
}
