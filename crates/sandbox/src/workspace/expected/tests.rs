//! A person saves, replaces or creates files in the target after conflicts were looked for, and while a file is exchanged.

use super::*;
use std::fs;
use tempfile::TempDir;

const TEMPORARY: &str = ".temporary";

/// A target with the file `file`, and what was found there.
fn target(content: &str) -> (TempDir, Directory, FoundFile) {
    let place = TempDir::new().unwrap();
    fs::write(place.path().join("file"), content).unwrap();
    let directory = Directory::open_host(place.path()).unwrap();
    let found = FoundFile::of(&directory.stat(Path::new("file")).unwrap().unwrap());
    (place, directory, found)
}

/// Returns everything in a directory, by name.
fn content(place: &TempDir) -> BTreeMap<String, String> {
    let entries = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap());
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    entries.map(|entry| (entry.file_name().into_string().unwrap(), read(entry.path()))).collect()
}

fn files<const N: usize>(files: [(&str, &str); N]) -> BTreeMap<String, String> {
    files.into_iter().map(|(name, content)| (name.to_owned(), content.to_owned())).collect()
}

/// The ways in which editors save.
fn saves() -> [fn(&Path); 2] {
    [
        |file| fs::write(file, "saved by a person").unwrap(),
        |file| {
            fs::write(file.with_file_name("draft"), "saved by a person").unwrap();
            fs::rename(file.with_file_name("draft"), file).unwrap();
        },
    ]
}

/// Returns the state of the file under the temporary name.
fn made(directory: &Directory) -> Stat {
    statat(directory, TEMPORARY, AtFlags::SYMLINK_NOFOLLOW).unwrap()
}

#[test]
fn file_that_was_saved_since_is_neither_replaced_nor_removed() {
    for save in saves() {
        let (place, directory, found) = target("old");
        let expected = ExpectedState::This(found);
        save(&place.path().join("file"));
        fs::write(place.path().join(TEMPORARY), "run").unwrap();
        let refused = expected.put((&directory, TEMPORARY), OsStr::new("file"), &made(&directory));
        assert!(matches!(refused, Err(WriteObstacle::Changed)), "{refused:?}");
        let refused = expected.remove((&directory, TEMPORARY), OsStr::new("file"));
        assert!(matches!(refused, Err(WriteObstacle::Changed)), "{refused:?}");
        assert_eq!(content(&place), files([("file", "saved by a person")]));
    }
    // The controls: what is as it was found is replaced and removed.
    let (place, directory, found) = target("old");
    fs::write(place.path().join(TEMPORARY), "run").unwrap();
    let left = ExpectedState::This(found)
        .put((&directory, TEMPORARY), OsStr::new("file"), &made(&directory))
        .unwrap();
    assert_eq!(content(&place), files([("file", "run")]));
    ExpectedState::This(FoundFile::of(&left)).remove((&directory, TEMPORARY), OsStr::new("file")).unwrap();
    assert_eq!(content(&place), files([]));
}

#[test]
fn file_that_is_saved_after_the_last_look_gets_its_name_back() {
    for save in saves() {
        let (place, directory, found) = target("old");
        fs::write(place.path().join(TEMPORARY), "run").unwrap();
        let made = directory.stat(Path::new(TEMPORARY)).unwrap().unwrap();
        save(&place.path().join("file"));
        let swapped = found.swap_in((&directory, TEMPORARY), OsStr::new("file"), &made);
        assert!(matches!(swapped, Err(WriteObstacle::Changed)), "{swapped:?}");
        assert_eq!(content(&place), files([("file", "saved by a person"), (TEMPORARY, "run")]));
        fs::remove_file(place.path().join(TEMPORARY)).unwrap();
        let taken = found.take_out((&directory, TEMPORARY), OsStr::new("file"));
        assert!(matches!(taken, Err(WriteObstacle::Changed)), "{taken:?}");
        assert_eq!(content(&place), files([("file", "saved by a person")]));
    }
}

#[test]
fn file_that_came_to_a_free_name_is_not_replaced() {
    let (place, directory, _) = target("saved by a person");
    fs::write(place.path().join(TEMPORARY), "run").unwrap();
    let refused = ExpectedState::Nothing.put((&directory, TEMPORARY), OsStr::new("file"), &made(&directory));
    assert!(matches!(refused, Err(WriteObstacle::Changed)), "{refused:?}");
    assert_eq!(content(&place), files([("file", "saved by a person")]));
    // The control: a name that is free.
    fs::write(place.path().join(TEMPORARY), "run").unwrap();
    ExpectedState::Nothing.put((&directory, TEMPORARY), OsStr::new("new"), &made(&directory)).unwrap();
    assert_eq!(content(&place), files([("file", "saved by a person"), ("new", "run")]));
}

#[test]
fn file_with_two_names_is_replaced_at_both() {
    let (place, directory, _) = target("old");
    fs::hard_link(place.path().join("file"), place.path().join("other")).unwrap();
    let mut expectations = Expectations::default();
    for name in ["file", "other"] {
        expectations.note(Path::new(name), directory.stat(Path::new(name)).unwrap().as_ref());
    }
    for name in ["file", "other"] {
        fs::write(place.path().join(TEMPORARY), "run").unwrap();
        expectations
            .at(Path::new(name))
            .put((&directory, TEMPORARY), OsStr::new(name), &made(&directory))
            .unwrap();
    }
    assert_eq!(content(&place), files([("file", "run"), ("other", "run")]));
}
