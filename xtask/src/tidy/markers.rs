//! Checks that no unfinished work is hidden: no marker comments, no ignored tests.

use super::{Finding, Repository};
use crate::source::code_only;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    // Put together here, so that this file doesn't find itself.
    let marks = [concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO"), concat!("HA", "CK")];
    let calls = ["todo!", "unimplemented!", "#[ignore"];
    let mut findings = Vec::new();
    for file in repository.rust_files() {
        let code = code_only(&file.text);
        for ((number, line), code) in file.lines().zip(code.lines()) {
            for mark in marks.iter().filter(|mark| crate::source::has_word(line, mark)) {
                findings.push(file.finding(number, *mark, "the work done, or a promise that says `pending`"));
            }
            for call in calls.iter().filter(|call| code.contains(**call)) {
                findings.push(file.finding(
                    number,
                    *call,
                    "code that is whole; a test that can't run here calls `testkit::skip` and is counted",
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
    fn unfinished_work_is_found() {
        let bad = concat!("// FIX", "ME later\nfn a() { todo!() }\n#[ignore = \"slow\"]\n// XX", "X\n");
        let good = "const A: &str = \"todo!\"; // XXXL\n";
        let findings = check(&Repository::of(&[("bad.rs", bad), ("good.rs", good)]));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }
}
