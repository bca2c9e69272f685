//! Checks that a separator (`// === impl X ===`) names a type or trait that an `impl` of its file has.

use super::{Finding, Repository};
use crate::source::{code_only, has_word};

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.rust_files() {
        let separators = file.lines().filter_map(|(number, line)| Some((number, name_of(line)?)));
        let mut separators = separators.peekable();
        if separators.peek().is_none() {
            continue;
        }
        let heads = impl_heads(&code_only(&file.text));
        for (number, name) in separators.filter(|(_, name)| !has_word(&heads, name)) {
            findings.push(file.finding(number, name, "a type or trait of an `impl` in this file"));
        }
    }
    findings
}

/// Returns the text between each `impl` and its opening brace.
fn impl_heads(code: &str) -> String {
    let mut heads = String::new();
    let mut is_head = false;
    for line in code.lines() {
        let start = line.trim_start();
        is_head |= ["impl ", "impl<", "unsafe impl "].iter().any(|head| start.starts_with(head));
        if is_head {
            heads.push_str(start);
            heads.push(' ');
            is_head = !line.contains('{');
        }
    }
    heads
}

/// Returns the type that a separator names.
fn name_of(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("// === impl ")?.strip_suffix(" ===")?.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separator_for_a_type_that_is_not_in_the_file_is_found() {
        let bad = "enum New { Old }\n// === impl Old ===\nimpl New {}\n";
        let good = "struct New;\n// === impl New ===\nimpl<T>\n    From<T> for New\nwhere\n{}\n";
        let findings = check(&Repository::of(&[("bad.rs", bad), ("good.rs", good)]));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2]);
    }
}
