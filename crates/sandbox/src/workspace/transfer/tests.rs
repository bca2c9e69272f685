//! Transfers of links and of directories.

use super::*;
use std::ffi::CString;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn a_link_leads_where_it_led_when_it_was_looked_at() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for name in ["seen", "unseen"] {
        // By now another program has replaced it, after it was looked at.
        symlink("/etc/shadow", from.path().join(name)).unwrap();
    }
    let open = |directory: &tempfile::TempDir| Directory::open_host(directory.path()).unwrap();
    let (source, target) = (open(&from), open(&to));
    let links = LinkTargets::from([("seen".into(), CString::from(c"notes"))]);
    let carry = |name: &str, links| {
        let after = PathState { kind: FileType::Symlink, mode: 0o777, size: 5 };
        let changed = PathChange { before: None, after: Some(after), same_content: false };
        let open = Directory::open_own_file;
        let (from, to, owner) = (&source, &target, TransferOwner::AsBefore);
        let route = TransferRoute { from, links, open, to, owner, temporary: ".temporary", expected: None };
        route.carry(&[(Path::new(name), changed)], |_, _| {})
    };
    carry("seen", Some(&links)).unwrap();
    assert_eq!(std::fs::read_link(to.path().join("seen")).unwrap(), Path::new("notes"));
    carry("unseen", Some(&links)).unwrap_err();
    assert!(to.path().join("unseen").symlink_metadata().is_err());
    // The control: where no earlier look counts, the current target is used.
    carry("unseen", None).unwrap();
    assert_eq!(std::fs::read_link(to.path().join("unseen")).unwrap(), Path::new("/etc/shadow"));
}

#[test]
fn new_directories_have_their_permissions_after_an_interrupted_attempt() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (source, target) = (Directory::open_host(from.path()), Directory::open_host(to.path()));
    let (source, target) = (source.unwrap(), target.unwrap());
    std::fs::create_dir(from.path().join("new")).unwrap();
    std::fs::write(from.path().join("new/file"), "x").unwrap();
    let state = |kind, mode| Some(PathState { kind, mode, size: 1 });
    let of = |kind, mode| PathChange { before: None, after: state(kind, mode), same_content: false };
    let changes = [
        (Path::new("new"), of(FileType::Directory, 0o755)),
        (Path::new("new/file"), of(FileType::RegularFile, 0o644)),
    ];
    // An attempt that gets as far as the file, and one that an earlier one has left a directory.
    std::fs::create_dir(to.path().join(".temporary")).unwrap();
    let route = |open| {
        let (from, to, owner) = (&source, &target, TransferOwner::AsBefore);
        TransferRoute { from, links: None, open, to, owner, temporary: ".temporary", expected: None }
            .carry(&changes, |_, _| {})
    };
    route(|_, path| Err(DirectoryError { path: path.to_owned(), source: Errno::IO })).unwrap_err();
    let mode = || std::fs::metadata(to.path().join("new")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o755);
    // The control: an attempt that nothing interrupts.
    route(Directory::open_own_file).unwrap();
    assert_eq!((mode(), std::fs::read_dir(to.path()).unwrap().count()), (0o755, 1));
    assert_eq!(std::fs::read(to.path().join("new/file")).unwrap(), b"x");
}
