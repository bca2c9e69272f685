//! Tests of which files are read, skipped and refused.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn read(place: &tempfile::TempDir, limits: TreeLimits) -> Result<Tree, TreeError> {
    Tree::read(&Directory::open_host(place.path()).unwrap(), limits, &|| false)
}

#[test]
fn tree_reads_files_and_links_without_following_links() {
    let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret"), "secret").unwrap();
    fs::create_dir_all(place.path().join("b/c")).unwrap();
    fs::write(place.path().join("b/c/file"), "x").unwrap();
    fs::write(place.path().join("a"), "").unwrap();
    fs::set_permissions(place.path().join("a"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink(outside.path(), place.path().join("out")).unwrap();
    fs::create_dir(place.path().join(".git")).unwrap();
    fs::write(place.path().join(".git/config"), "x").unwrap();
    let tree = read(&place, TreeLimits::default()).unwrap();
    let told: Vec<_> =
        tree.entries.iter().map(|entry| format!("{} {}", entry.mode(), entry.path.as_str())).collect();
    assert_eq!(told, ["100755 a", "100644 b/c/file", "120000 out"]);
    assert!(tree.left_out.is_empty());
}

#[test]
fn file_replaced_after_the_tree_was_read_is_not_read() {
    let (place, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = outside.path().join("secret");
    fs::write(&secret, "same").unwrap();
    fs::create_dir(place.path().join("d")).unwrap();
    fs::write(place.path().join("d/file"), "mine").unwrap();
    let top = Directory::open_host(place.path()).unwrap();
    let tree = Tree::read(&top, TreeLimits::default(), &|| false).unwrap();
    let written = || {
        let mut to = Vec::new();
        tree.entries[0].write(&top, &mut to).map(|_| to)
    };
    assert_eq!(written().unwrap(), b"data 4\nmine\n");
    fs::write(place.path().join("d/file"), "longer").unwrap();
    assert!(written().is_err(), "it has grown");
    fs::remove_file(place.path().join("d/file")).unwrap();
    symlink(&secret, place.path().join("d/file")).unwrap();
    assert!(written().is_err(), "a link instead of the file");
    fs::remove_dir_all(place.path().join("d")).unwrap();
    fs::rename(&secret, outside.path().join("file")).unwrap();
    symlink(outside.path(), place.path().join("d")).unwrap();
    assert!(written().is_err(), "a link on the way");
}

#[test]
fn tree_that_exceeds_a_limit_is_rejected() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("a"), "12345").unwrap();
    fs::write(place.path().join("b"), "12345").unwrap();
    let limits = TreeLimits { files: 2, bytes: 10, file_bytes: 5 };
    assert_eq!(read(&place, limits).unwrap().entries.len(), 2);
    for limits in [
        TreeLimits { files: 1, ..limits },
        TreeLimits { bytes: 9, ..limits },
        TreeLimits { file_bytes: 4, ..limits },
    ] {
        assert!(read(&place, limits).is_err(), "{limits:?}");
    }
}

#[test]
fn long_paths_by_hard_links_are_limited_in_total() {
    let place = tempfile::tempdir().unwrap();
    let deep = (0..14).fold(place.path().to_owned(), |path, _| path.join("d".repeat(250)));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("0"), "").unwrap();
    let links = MOST_PATH_BYTES / deep.as_os_str().len() + 1_000;
    for number in 1..=links {
        fs::hard_link(deep.join("0"), deep.join(number.to_string())).unwrap();
    }
    let error = read(&place, TreeLimits::default()).unwrap_err();
    assert!(matches!(error, TreeError::TooMuch { what: "bytes in paths" }), "{error:?}");
}

#[test]
fn canceled_listing_ends_at_the_next_directory() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("a")).unwrap();
    let top = Directory::open_host(place.path()).unwrap();
    let error = Tree::read(&top, TreeLimits::default(), &|| true).unwrap_err();
    assert!(matches!(error, TreeError::Canceled), "{error:?}");
}
