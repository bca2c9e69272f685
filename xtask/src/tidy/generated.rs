//! Checks that generated files are up to date: the published schemas, the reference of the configuration, the compiled
//! seccomp filters.

use super::{Finding, Repository};
use crate::generate;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let outdated = |path: &str, found: String| Finding {
        path: path.to_owned(),
        line: 1,
        found,
        right: "what `cargo xtask generate` writes".to_owned(),
    };
    let files = match generate::files() {
        Ok(files) => files,
        Err(error) => return vec![outdated("docs/schema", error.to_string())],
    };
    let differs = |(path, text): &(&str, String)| repository.file(path).is_none_or(|file| file.text != *text);
    files
        .iter()
        .filter(|file| differs(file))
        .map(|(path, _)| outdated(path, "another text".to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_outdated_file_is_found() {
        let files = generate::files().unwrap();
        let current: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        assert_eq!(check(&Repository::of(&current)), []);
        let mut outdated = current.clone();
        outdated[0].1 = "{}";
        assert_eq!(check(&Repository::of(&outdated)).len(), 1);
        assert_eq!(check(&Repository::of(&[])).len(), current.len());
    }
}
