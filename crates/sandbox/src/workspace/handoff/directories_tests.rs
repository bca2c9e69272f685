//! Directories that are made or removed by themselves.

use super::tests::ReviewTrees;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::path::Path;

/// Reviews what becomes of a tree: `directories` are made in it before, `removed` are gone after, and `made` are there.
fn asked_of(directories: &[&str], removed: &[&str], made: &[&str]) -> Vec<String> {
    let trees = ReviewTrees::new();
    for path in directories {
        std::fs::create_dir_all(trees.path("tree").join(path)).unwrap();
        trees.write("tree/.git/refs/heads/main", "");
    }
    let device = |path: &Path| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let kind = FileType::CharacterDevice;
        mknodat(CWD, path, kind, Mode::empty(), 0).unwrap();
    };
    removed.iter().for_each(|path| device(&trees.path("layer").join(path)));
    made.iter().for_each(|path| std::fs::create_dir_all(trees.path("layer").join(path)).unwrap());
    trees.asked()
}

#[test]
fn directory_takes_a_yes_as_a_file_of_its_name_would() {
    for path in [".git/index.lock", ".git/refs/heads/main.lock", ".git/hooks", ".vscode", "a/.git", ".hg"] {
        let asked = asked_of(&[], &[], &[path]);
        assert!(asked.iter().any(|line| line.starts_with(&format!("{path}/ "))), "{path}: {asked:?}");
    }
    // The controls: what Git makes with branches and objects, and a directory as any other.
    for path in [".git/objects/ab", ".git/refs/heads/feature", "src/new", "docs"] {
        assert_eq!(asked_of(&[".git"], &[], &[path]), [""; 0], "{path}");
    }
}

#[test]
fn removed_directory_of_a_repository_takes_a_yes_with_and_without_names_in_it() {
    let all = [".git/objects/pack", ".git/refs/tags", ".git/branches", ".git/refs/heads/feature", "docs"];
    for (removed, expected) in [
        (".git/refs", ".git/refs/ git"),
        (".git/refs/tags", ".git/refs/tags/ git"),
        (".git/objects", ".git/objects/ git"),
        (".git/objects/pack", ".git/objects/pack/ git"),
        (".git/branches", ".git/branches/ git"),
    ] {
        let asked = asked_of(&all, &[removed], &[]);
        assert!(asked.contains(&expected.to_owned()), "{removed}: {asked:?}");
    }
    for removed in [".git/refs/heads/feature", "docs"] {
        assert_eq!(asked_of(&all, &[removed], &[]), [""; 0], "{removed}");
    }
}

#[test]
fn directory_that_holds_what_is_listed_takes_no_yes_of_its_own() {
    let trees = ReviewTrees::new();
    trees.write("layer/.vscode/tasks.json", "{}");
    assert_eq!(trees.asked(), [".vscode/tasks.json editor"]);
}

#[test]
fn empty_directories_that_complete_a_repository_take_a_yes() {
    let trees = ReviewTrees::new();
    trees.write("tree/docs/HEAD", "ref: refs/heads/main");
    for name in ["objects", "refs"] {
        std::fs::create_dir_all(trees.path("layer/docs").join(name)).unwrap();
    }
    assert_eq!(trees.asked(), ["docs/objects/ git", "docs/refs/ git"]);
}
