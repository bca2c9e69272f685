//! Checks that errors have named fields: no variant of an error is a bare text.

use super::{Finding, Repository};
use crate::source::code_only;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.rust_files() {
        let code = code_only(&file.text);
        let mut derives_error = false;
        // The line that ends the enum: formatted code ends an item with a brace in the column where it began.
        let mut end = None;
        for (index, line) in code.lines().map(str::trim_end).enumerate() {
            if line.contains("derive(") {
                derives_error = line.contains("Error");
            }
            if let Some(at) = line.find("enum ").filter(|_| line.ends_with('{')) {
                let indent = line[..at].trim_end().len() - line[..at].trim().len();
                end = derives_error.then(|| format!("{}}}", &line[..indent]));
                derives_error = false;
            } else if end.as_deref() == Some(line) {
                end = None;
            }
            let variant = line.trim_start();
            let is_bare = variant.starts_with(char::is_uppercase) && variant.contains("(String");
            if end.is_some() && is_bare {
                findings.push(file.finding(
                    index + 1,
                    format!("the variant {}", variant.trim_end_matches(',')),
                    "named fields for what failed, with the cause as #[source]",
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
    fn error_variant_holding_a_string_is_found() {
        let text = "#[derive(Debug, thiserror::Error)]\npub enum E {\n    #[error(\"x\")]\n    Other(String),\n    Named { why: String },\n}\n\nenum Plain {\n    Text(String),\n}\n";
        let findings = check(&Repository::of(&[("a.rs", text)]));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [4]);
    }
}
