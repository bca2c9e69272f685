//! Contents and attributes that a duplicate must have, and those that it must not have.

use super::*;
use rustix::fs::{fgetxattr, fsetxattr};
use rustix::process::{getegid, geteuid};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use tempfile::TempDir;

/// A tree, and an empty one beside it.
struct TreePair {
    place: TempDir,
}

impl TreePair {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("from")).unwrap();
        fs::create_dir(place.path().join("to")).unwrap();
        Self { place }
    }

    fn from(&self, name: &str) -> PathBuf {
        self.place.path().join("from").join(name)
    }

    fn to(&self, name: &str) -> PathBuf {
        self.place.path().join("to").join(name)
    }

    fn duplicate(&self, most_bytes: u64) -> Result<(), DuplicateError> {
        let open = |path: PathBuf| Directory::open_host(&path).unwrap();
        duplicate(&open(self.from(".")), &open(self.to(".")), own(), most_bytes)
    }
}

fn own() -> Identity {
    let (host_uid, host_gid) = (geteuid().as_raw(), getegid().as_raw());
    Identity { inside_uid: 1000, inside_gid: 1000, host_uid, host_gid }
}

fn set_attribute(path: &Path, name: &CStr, value: &[u8]) {
    let file = File::open(path).unwrap();
    fsetxattr(&file, name, value, XattrFlags::empty()).unwrap();
}

fn attribute(path: &Path, name: &CStr) -> Option<Vec<u8>> {
    let mut value = vec![0; 256];
    let length = fgetxattr(File::open(path).unwrap(), name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

#[test]
fn everything_that_a_layer_may_hold_comes_along() {
    let trees = TreePair::new();
    fs::create_dir_all(trees.from("closed/below")).unwrap();
    fs::write(trees.from("closed/below/file"), "content").unwrap();
    fs::hard_link(trees.from("closed/below/file"), trees.from("other name")).unwrap();
    fs::write(trees.from("unreadable"), "x").unwrap();
    symlink("/etc/passwd", trees.from("link")).unwrap();
    assert!(Command::new("mkfifo").arg(trees.from("pipe")).status().unwrap().success());
    let gone = Directory::open_host(&trees.from(".")).unwrap();
    mknodat(&gone, "gone", FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    set_attribute(&trees.from("closed"), c"user.overlay.opaque", b"y");
    set_attribute(&trees.from("closed/below/file"), c"user.note", b"\0\xff");
    set_attribute(&trees.from("."), c"user.overlay.uuid", b"of this place");
    set_attribute(&trees.from("."), c"user.overlay.impure", b"y");
    fs::set_permissions(trees.from("unreadable"), Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(trees.from("closed"), Permissions::from_mode(0o1100)).unwrap();
    trees.duplicate(1 << 20).unwrap();

    // Permissions that were in the way are unchanged, in both trees.
    for tree in [trees.from("closed"), trees.to("closed")] {
        assert_eq!(fs::metadata(tree).unwrap().mode() & 0o7777, 0o1100);
    }
    assert_eq!(fs::metadata(trees.from("unreadable")).unwrap().mode() & 0o777, 0);
    for tree in [trees.from("closed"), trees.to("closed")] {
        fs::set_permissions(tree, Permissions::from_mode(0o700)).unwrap();
    }
    let file = fs::metadata(trees.to("closed/below/file")).unwrap();
    assert_eq!(file.nlink(), 2);
    assert_eq!(file.ino(), fs::metadata(trees.to("other name")).unwrap().ino());
    let original = fs::metadata(trees.from("closed/below/file")).unwrap();
    assert_eq!(file.modified().unwrap(), original.modified().unwrap());
    assert_ne!(file.ino(), original.ino());
    assert_eq!(fs::read(trees.to("other name")).unwrap(), b"content");
    assert_eq!(fs::read_link(trees.to("link")).unwrap(), Path::new("/etc/passwd"));
    assert!(fs::symlink_metadata(trees.to("pipe")).unwrap().file_type().is_fifo());
    let gone = fs::symlink_metadata(trees.to("gone")).unwrap();
    assert!(gone.file_type().is_char_device() && gone.rdev() == 0);
    assert_eq!(attribute(&trees.to("closed"), c"user.overlay.opaque").unwrap(), b"y");
    assert_eq!(attribute(&trees.to("closed/below/file"), c"user.note").unwrap(), b"\0\xff");
    assert_eq!(attribute(&trees.to("."), c"user.overlay.impure").unwrap(), b"y");
    assert_eq!(attribute(&trees.to("."), c"user.overlay.uuid"), None);
}

#[test]
fn more_than_may_be_is_refused_and_holes_cost_nothing() {
    let trees = TreePair::new();
    fs::write(trees.from("holes"), "begin").unwrap();
    File::options().write(true).open(trees.from("holes")).unwrap().set_len(1 << 40).unwrap();
    trees.duplicate(1 << 20).unwrap();
    let holes = fs::metadata(trees.to("holes")).unwrap();
    assert_eq!(holes.len(), 1 << 40);
    assert!(holes.blocks() < 100, "{}", holes.blocks());
    let trees = TreePair::new();
    for name in ["a", "b", "c"] {
        fs::write(trees.from(name), vec![1; 40 << 10]).unwrap();
    }
    match trees.duplicate(100 << 10) {
        Err(DuplicateError::TooMuch { most_bytes }) => assert_eq!(most_bytes, 100 << 10),
        // Shared data costs nothing; then there is nothing to refuse.
        other => assert!(other.is_ok() && shares_data(&trees), "{other:?}"),
    }
}

fn shares_data(trees: &TreePair) -> bool {
    let shared = File::create(trees.to("probe")).unwrap();
    ioctl_ficlone(&shared, File::open(trees.from("a")).unwrap()).is_ok()
}

#[test]
fn no_file_comes_along_with_a_right_to_lend() {
    let trees = TreePair::new();
    fs::write(trees.from("lends"), "x").unwrap();
    fs::set_permissions(trees.from("lends"), Permissions::from_mode(0o6755)).unwrap();
    trees.duplicate(1 << 20).unwrap();
    assert_eq!(fs::metadata(trees.to("lends")).unwrap().mode() & 0o7777, 0o755);
}
