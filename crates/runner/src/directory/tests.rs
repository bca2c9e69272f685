//! Each promise for both ways of resolving paths.

use super::*;
use rustix::fs::{CWD, mkfifoat, mknodat};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

const RESOLVERS: [Resolver; 2] = [Resolver::Kernel, Resolver::Components];

/// `root/workspace` with a file `inside` in it, and `root/secret` beside it.
struct WorkspaceFixture {
    root: tempfile::TempDir,
}

impl WorkspaceFixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("workspace/folder")).unwrap();
        std::fs::write(root.path().join("secret"), "secret").unwrap();
        std::fs::write(root.path().join("workspace/folder/inside"), "inside").unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("workspace").join(name)
    }

    fn open(&self, resolver: Resolver) -> Directory {
        Directory::open(&self.path("")).unwrap().with_resolver(resolver)
    }
}

const REPLACEMENT: Replacement<'_> =
    Replacement { content: b"new", mode: None, create_parents: true, overwrite: true };

fn code(outcome: Result<impl std::fmt::Debug, PathError>) -> FailureCode {
    outcome.unwrap_err().code()
}

#[test]
fn symlink_inside_the_workspace_is_followed_and_one_leading_outside_is_refused() {
    let place = WorkspaceFixture::new();
    symlink("folder", place.path("in")).unwrap();
    symlink("..", place.path("out")).unwrap();
    symlink(place.root.path(), place.path("absolute")).unwrap();
    symlink("../in/../folder/inside", place.path("folder/round")).unwrap();
    symlink("../../secret", place.path("folder/deep")).unwrap();
    symlink("loop", place.path("loop")).unwrap();
    for resolver in RESOLVERS {
        let directory = place.open(resolver);
        for path in ["in/inside", "folder/round", "in/round"] {
            assert!(directory.open_file(Path::new(path)).is_ok(), "{path} {resolver:?}");
            assert!(!directory.leads_out(Path::new(path)), "{path} {resolver:?}");
        }
        assert!(directory.open_directory(Path::new("in")).is_ok());
        assert_eq!(code(directory.open_file(Path::new("loop"))), FailureCode::PolicyViolation);
        for path in ["out/secret", "absolute/secret", "folder/deep"] {
            let path = Path::new(path);
            assert_eq!(code(directory.open_file(path)), FailureCode::PolicyViolation, "{resolver:?}");
            assert_eq!(code(directory.replace_file(path, &REPLACEMENT)), FailureCode::PolicyViolation);
            assert!(directory.leads_out(path), "{path:?} {resolver:?}");
        }
        for path in ["out", "absolute"] {
            assert_eq!(code(directory.open_directory(Path::new(path))), FailureCode::PolicyViolation);
        }
    }
    // The control: a program without the restriction can read the refused file.
    assert_eq!(std::fs::read(place.path("out/secret")).unwrap(), b"secret");
}

#[test]
fn symlinks_refused_mode_follows_no_inner_symlink() {
    let place = WorkspaceFixture::new();
    symlink("folder", place.path("in")).unwrap();
    for directory in RESOLVERS.map(|resolver| place.open(resolver).with_symlinks(Symlinks::Refused)) {
        assert!(directory.open_file(Path::new("folder/inside")).is_ok());
        assert_eq!(code(directory.open_file(Path::new("in/inside"))), FailureCode::PolicyViolation);
        assert_eq!(code(directory.open_directory(Path::new("in"))), FailureCode::PolicyViolation);
    }
}

#[test]
fn path_that_escapes_the_workspace_is_refused() {
    let place = WorkspaceFixture::new();
    for resolver in RESOLVERS {
        let directory = place.open(resolver);
        for path in ["../secret", "folder/../../secret", "/etc/passwd"] {
            assert_eq!(code(directory.open_file(Path::new(path))), FailureCode::PolicyViolation, "{path}");
        }
    }
}

#[test]
fn directory_opens_and_replaces_only_regular_files_without_blocking() {
    let place = WorkspaceFixture::new();
    mkfifoat(CWD, place.path("fifo"), Mode::RWXU).unwrap();
    let _listener = UnixListener::bind(place.path("socket")).unwrap();
    symlink("folder/inside", place.path("link")).unwrap();
    let device = mknodat(CWD, place.path("device"), FileType::CharacterDevice, Mode::RWXU, 0x0103);
    let refused = ["fifo", "socket", "device"];
    for resolver in RESOLVERS {
        let directory = place.open(resolver);
        for name in refused.iter().take(if device.is_ok() { 3 } else { 2 }) {
            let path = Path::new(name);
            assert_eq!(code(directory.open_file(path)), FailureCode::PolicyViolation, "{name}");
            assert!(directory.open_listed_file(path).is_err(), "{name}");
            assert_eq!(code(directory.replace_file(path, &REPLACEMENT)), FailureCode::PolicyViolation);
        }
        assert_eq!(
            code(directory.replace_file(Path::new("link"), &REPLACEMENT)),
            FailureCode::PolicyViolation
        );
        assert_eq!(code(directory.open_file(Path::new("folder"))), FailureCode::StepFailed);
        assert_eq!(code(directory.replace_file(Path::new("folder"), &REPLACEMENT)), FailureCode::StepFailed);
        // The control: a regular file at the same place is opened and replaced.
        assert!(directory.open_file(Path::new("folder/inside")).is_ok());
        assert!(directory.replace_file(Path::new("folder/inside"), &REPLACEMENT).is_ok());
    }
}

#[test]
fn replaced_file_keeps_its_mode_and_leaves_its_hard_links_unchanged() {
    for resolver in RESOLVERS {
        let place = WorkspaceFixture::new();
        let file = place.path("folder/inside");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o4750)).unwrap();
        std::fs::hard_link(&file, place.path("twin")).unwrap();
        let written = place.open(resolver).replace_file(Path::new("folder/inside"), &REPLACEMENT).unwrap();
        assert_eq!((written.created, written.mode), (false, 0o750));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o750);
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert_eq!(std::fs::read(place.path("twin")).unwrap(), b"inside");
    }
}

#[test]
fn create_parents_and_no_overwrite_options_are_obeyed() {
    for resolver in RESOLVERS {
        let place = WorkspaceFixture::new();
        let directory = place.open(resolver);
        let without_parents = Replacement { create_parents: false, ..REPLACEMENT };
        assert!(directory.replace_file(Path::new("a/b/c"), &without_parents).is_err());
        let written = directory.replace_file(Path::new("a/b/c"), &REPLACEMENT).unwrap();
        assert_eq!((written.created, written.mode), (true, 0o644));
        let without_overwriting = Replacement { content: b"other", overwrite: false, ..REPLACEMENT };
        assert!(matches!(
            directory.replace_file(Path::new("a/b/c"), &without_overwriting),
            Err(PathError::Exists { .. })
        ));
        assert_eq!(std::fs::read(place.path("a/b/c")).unwrap(), b"new");
        assert!(directory.replace_file(Path::new("a/b/d"), &without_overwriting).is_ok());
        let names = std::fs::read_dir(place.path("a/b")).unwrap().count();
        assert_eq!(names, 2, "nothing but the two files");
    }
}

#[test]
fn remove_file_removes_the_link_itself_and_never_a_directory() {
    for resolver in RESOLVERS {
        let place = WorkspaceFixture::new();
        symlink("../secret", place.path("link")).unwrap();
        let directory = place.open(resolver);
        assert_eq!(directory.remove_file(Path::new("link")).unwrap(), 9);
        assert!(place.root.path().join("secret").exists());
        symlink("..", place.path("out")).unwrap();
        assert_eq!(code(directory.remove_file(Path::new("out/secret"))), FailureCode::PolicyViolation);
        assert!(matches!(directory.remove_file(Path::new("folder")), Err(PathError::IsDirectory { .. })));
        assert_eq!(directory.remove_file(Path::new("folder/inside")).unwrap(), 6);
        assert!(directory.remove_file(Path::new("folder/inside")).unwrap_err().is_absent());
    }
}
