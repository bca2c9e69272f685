//! A file is named for the one concept in it.

use super::{Finding, Repository};

const NAME_NOTHING: [&str; 9] =
    ["utils", "helpers", "common", "misc", "core", "shared", "manager", "types", "handler"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.rust_files() {
        if file.name() == "mod.rs" {
            findings.push(file.finding(1, "mod.rs", "`foo.rs` beside the folder `foo`"));
        }
        let empty =
            file.path.split('/').map(|part| part.trim_end_matches(".rs")).find(|p| NAME_NOTHING.contains(p));
        if let Some(part) = empty {
            findings.push(file.finding(1, format!("the name {part}"), "a name that describes the content"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meaningless_names_are_found() {
        let files = [
            ("a/mod.rs", ""),
            ("a/utils.rs", ""),
            ("a/common/b.rs", ""),
            ("a/score.rs", ""),
            ("a/step.rs", ""),
        ];
        assert_eq!(check(&Repository::of(&files)).len(), 3);
    }
}
