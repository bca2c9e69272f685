//! Tests of listing and copying trees.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

fn source() -> tempfile::TempDir {
    let source = tempfile::tempdir().unwrap();
    fs::create_dir(source.path().join("src")).unwrap();
    fs::write(source.path().join("src/main"), "a\nb").unwrap();
    fs::write(source.path().join("run"), "x").unwrap();
    fs::set_permissions(source.path().join("run"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("src/main", source.path().join("link")).unwrap();
    source
}

fn copy(from: &Path, to: &Path, place: &str) -> Result<(), TreeError> {
    let (from, to) = (Directory::open_host(from).unwrap(), Directory::open_host(to).unwrap());
    HostTree::below(&from, TreeLimits::default())?.copy_to(&to, Path::new(place), &|| false)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn copied_tree_has_all_files_modes_and_links() {
    let (source, to) = (source(), tempfile::tempdir().unwrap());
    copy(source.path(), to.path(), "lib/app").unwrap();
    let app = to.path().join("lib/app");
    assert_eq!(names(&app), ["link", "run", "src"]);
    assert_eq!(fs::read(app.join("link")).unwrap(), b"a\nb");
    assert_eq!(fs::read_link(app.join("link")).unwrap(), Path::new("src/main"));
    let is_executable = |name: &str| app.join(name).metadata().unwrap().permissions().mode() & 0o100 != 0;
    assert!(is_executable("run") && !is_executable("src/main"));
    assert_eq!(names(&to.path().join("lib")), ["app"], "the temporary directory is gone");
}

#[test]
fn tree_is_copied_only_to_a_new_path_or_an_empty_directory() {
    let (source, to) = (source(), tempfile::tempdir().unwrap());
    fs::create_dir(to.path().join("empty")).unwrap();
    copy(source.path(), to.path(), "empty").unwrap();
    fs::write(to.path().join("file"), "mine").unwrap();
    for place in ["empty", "file", ""] {
        let error = copy(source.path(), to.path(), place).unwrap_err();
        assert!(matches!(error, TreeError::Exists { .. }), "{place}: {error:?}");
    }
    assert_eq!(names(to.path()), ["empty", "file"]);
    assert_eq!(fs::read(to.path().join("file")).unwrap(), b"mine");
}

#[test]
fn copy_follows_no_link_of_the_destination() {
    let (source, to, outside) = (source(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(outside.path(), to.path().join("out")).unwrap();
    for place in ["out/app", "out"] {
        copy(source.path(), to.path(), place).unwrap_err();
    }
    assert_eq!((names(outside.path()), names(to.path())), (vec![], vec!["out".to_owned()]));
}

#[test]
fn canceled_copy_leaves_no_files() {
    let (source, to) = (source(), tempfile::tempdir().unwrap());
    let (from, into) =
        (Directory::open_host(source.path()).unwrap(), Directory::open_host(to.path()).unwrap());
    let tree = HostTree::below(&from, TreeLimits::default()).unwrap();
    for entries in 0..tree.entries().len() {
        let left = std::cell::Cell::new(entries);
        let is_canceled = || left.replace(left.get().saturating_sub(1)) == 0;
        let copied = tree.copy_to(&into, Path::new("app"), &is_canceled);
        assert!(matches!(copied, Err(TreeError::Canceled)), "{entries}: {copied:?}");
        assert_eq!(names(to.path()), Vec::<String>::new(), "{entries}");
    }
    // Control: the same copy completes when it is not canceled.
    tree.copy_to(&into, Path::new("app"), &|| false).unwrap();
}

#[test]
fn tree_beyond_a_limit_is_not_listed() {
    let source = source();
    let top = Directory::open_host(source.path()).unwrap();
    let fits = TreeLimits { files: 4, bytes: 4, file_bytes: 4 };
    assert_eq!(HostTree::below(&top, fits).unwrap().files, 3);
    for limits in [TreeLimits { files: 3, ..fits }, TreeLimits { bytes: 3, ..fits }] {
        let error = HostTree::below(&top, limits).map(|tree| tree.files).unwrap_err();
        assert!(matches!(error, TreeError::TooMuch { .. }), "{limits:?}: {error:?}");
    }
}

#[test]
fn failed_copy_ends_although_other_programs_add_to_it_without_end() {
    let (source, to) = (source(), tempfile::tempdir().unwrap());
    fs::write(to.path().join("app"), "in the way").unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| {
            let mut number = 0_u32;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                for entry in fs::read_dir(to.path()).into_iter().flatten().flatten() {
                    number += 1;
                    let _ = fs::create_dir(entry.path().join(format!("more-{number}")));
                }
            }
            number
        });
        let error = copy(source.path(), to.path(), "app").unwrap_err();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(error, TreeError::Exists { .. }), "{error:?}");
        adding.join().unwrap();
    });
}
