//! Checks that each source file is named by the module above it, so that it is compiled and its tests run.

use super::{File, Finding, Repository};
use crate::source::code_only;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let files = repository.rust_files().filter(|file| !file.is_crate_root());
    files.filter_map(|file| check_file(repository, file)).collect()
}

fn check_file(repository: &Repository, file: &File) -> Option<Finding> {
    let (directory, name) = file.path.rsplit_once('/')?;
    let module = name.strip_suffix(".rs")?;
    let above = [format!("{directory}.rs"), format!("{directory}/main.rs"), format!("{directory}/lib.rs")];
    let declaration = format!("mod {module};");
    let declares =
        |above: &File| code_only(&above.text).lines().any(|line| line.trim().ends_with(&declaration));
    let named = above.iter().filter_map(|path| repository.file(path)).any(declares);
    (!named).then(|| {
        file.finding(1, "a file that no module names", format!("`{declaration}` in {}", above.join(" or ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_file_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "pub mod b;\n// mod c;\n"),
            ("crates/a/src/b.rs", "mod d;\n"),
            ("crates/a/src/b/d.rs", ""),
            ("crates/a/src/c.rs", ""),
            ("crates/a/tests/it/main.rs", "mod e;\n"),
            ("crates/a/tests/it/e.rs", ""),
            ("crates/a/tests/it/f.rs", ""),
        ];
        let findings = check(&Repository::of(&files));
        assert_eq!(
            findings.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(),
            ["crates/a/src/c.rs", "crates/a/tests/it/f.rs"]
        );
    }
}
