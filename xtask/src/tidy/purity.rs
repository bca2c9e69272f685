//! Checks that the pure rooms have no I/O, no clock, no environment and no randomness.

use super::{Finding, Repository};
use crate::rooms::PURE;
use crate::source::code_only;

const IMPURE: [&str; 14] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::io",
    "std::os",
    "Instant",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "now_v7",
    "new_v4",
    "tokio",
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.rust_files() {
        let is_pure = file.room().is_some_and(|room| PURE.contains(&room)) && file.path.contains("/src/");
        if !is_pure {
            continue;
        }
        for (index, line) in code_only(&file.text).lines().enumerate() {
            for found in IMPURE.iter().filter(|word| crate::source::has_word(line, word)) {
                findings.push(file.finding(
                    index + 1,
                    *found,
                    "values that are handed in: this crate is pure",
                ));
            }
            if line.contains("std::{") {
                findings.push(file.finding(
                    index + 1,
                    "`std::{`",
                    "one `use` a module, which this check can see",
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impure_code_in_a_pure_crate_is_found() {
        let bad = "use std::fs;\nuse std::time::Instant;\nuse std::{fmt, net};\n// std::env is only named\nlet a = jiff::Timestamp::now();\n";
        let files = [
            ("crates/policy/src/a.rs", bad),
            ("crates/cli/src/a.rs", bad),
            ("crates/policy/tests/it/a.rs", bad),
        ];
        let findings = check(&Repository::of(&files));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 2, 3, 5]);
    }
}
