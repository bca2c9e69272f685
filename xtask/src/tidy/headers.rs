//! Checks that every source file begins with a description.

use super::{Finding, Repository};

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let silent = repository.rust_files().filter(|file| !file.text.starts_with("//! "));
    silent.map(|file| file.finding(1, "no header", "a first line `//! …` that describes the file")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_header_is_found() {
        let files = [("a.rs", "//! Says it.\n"), ("b.rs", "use a;\n"), ("c.rs", "")];
        let findings = check(&Repository::of(&files));
        assert_eq!(
            findings.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(),
            ["b.rs", "c.rs"]
        );
    }
}
