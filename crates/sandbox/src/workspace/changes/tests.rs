//! Paths that are too long, or too deep together.

use super::*;
use crate::workspace::apply::apply;
use belljar_policy::handoff::ApprovedPaths;
use std::time::SystemTime;
use tempfile::TempDir;

/// Makes a chain of directories with a path of more than 4,096 bytes, with a file in the last.
fn make_deep(place: &TempDir) {
    let mut directory = Directory::open_host(place.path()).unwrap();
    for _ in 0..100 {
        directory = directory.make(Path::new(&"d".repeat(50)), 0o755).unwrap();
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    rustix::fs::openat(&directory, "file", flags, rustix::fs::Mode::RUSR).unwrap();
}

fn read(source: &TempDir, layer: &TempDir) -> (ChangeSet, Directory, Directory) {
    let open = |place: &TempDir| Directory::open_host(place.path()).unwrap();
    let (source, layer) = (open(source), open(layer));
    (ChangeSet::read(&source, &layer).unwrap(), source, layer)
}

#[test]
fn path_that_is_too_long_is_left_out_and_all_others_are_applied() {
    let (source, layer) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    make_deep(&layer);
    std::fs::write(layer.path().join("work"), "run").unwrap();
    let (set, target, copy) = read(&source, &layer);
    assert_eq!(set.left_out().len(), 1);
    assert!(set.left_out()[0].as_os_str().len() > 4_095);
    apply(&set, &copy, &target, SystemTime::now(), &ApprovedPaths::default()).unwrap();
    assert_eq!(std::fs::read(source.path().join("work")).unwrap(), b"run");
    // The control: there is no other way in which paths are left out.
    copy.clear().unwrap();
    assert!(read(&source, &layer).0.left_out().is_empty());
    target.clear().unwrap();
}

#[test]
fn directory_with_a_path_that_is_too_long_is_not_removed() {
    let (source, layer) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    make_deep(&source);
    let top = "d".repeat(50);
    std::fs::write(source.path().join(&top).join("beside"), "old").unwrap();
    // The run has replaced the directory by a file.
    std::fs::write(layer.path().join(&top), "run").unwrap();
    let (set, target, copy) = read(&source, &layer);
    assert_eq!(set.left_out().len(), 1);
    apply(&set, &copy, &target, SystemTime::now(), &ApprovedPaths::default()).unwrap();
    assert!(source.path().join(&top).is_dir());
    target.clear().unwrap();
}

#[test]
fn paths_have_only_so_many_levels_together() {
    let (source, layer) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let open = |place: &TempDir| Directory::open_host(place.path()).unwrap();
    let (source, upper) = (open(&source), open(&layer));
    let mut closed = ModesByPath::new();
    let mut reading =
        LayerReader { levels_left: 6, ..LayerReader::begin((&source, &upper), false, &mut closed) };
    let made = PathChange { before: None, after: None, same_content: false };
    reading.insert("a/b/c".into(), made).unwrap();
    reading.insert("a/b/d".into(), made).unwrap();
    assert!(matches!(reading.insert("e".into(), made), Err(ChangesError::TooMany)));
    // The control: by default there is room for the deepest path.
    let mut reading = LayerReader::begin((&source, &upper), false, &mut closed);
    reading.insert("d/".repeat(2_000).into(), made).unwrap();
}
