//! Which links on the way to what is lent are followed.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

/// A directory of a user with a work tree of Git in it.
struct WorkTreeFixture(tempfile::TempDir);

impl WorkTreeFixture {
    fn new() -> Self {
        let ground = Self(tempfile::tempdir().unwrap());
        for directory in ["tree/.git", "tree/inner/deep", "plain/inner", "secret"] {
            fs::create_dir_all(ground.at(directory)).unwrap();
        }
        fs::write(ground.at("secret/key"), "").unwrap();
        ground
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn real(&self, path: &str) -> Result<PathBuf, CheckedPathError> {
        resolve(&self.at(path)).map(|found| found.real)
    }
}

#[test]
fn link_that_leads_out_of_a_work_tree_is_not_followed() {
    let ground = WorkTreeFixture::new();
    symlink(ground.at("secret"), ground.at("tree/out")).unwrap();
    symlink("../../secret", ground.at("tree/inner/relative")).unwrap();
    symlink("inner/relative", ground.at("tree/chain")).unwrap();
    symlink(ground.at("tree/out/none"), ground.at("tree/dangling")).unwrap();
    for path in [
        "tree/out",
        "tree/out/key",
        "tree/inner/relative",
        "tree/chain",
        "tree/out/../secret",
        "tree/out/none",
    ] {
        let refused = resolve_as_far(&ground.at(path));
        let Err(CheckedPathError::Planted { tree, kind: TreeKind::WorkTree, real, .. }) = refused else {
            panic!("{path}: {refused:?}");
        };
        assert_eq!(tree, ground.at("tree"), "{path}");
        assert!(real.starts_with(ground.at("secret")), "{path}: {real:?}");
    }
    assert!(matches!(resolve_as_far(&ground.at("tree/dangling")), Err(CheckedPathError::Planted { .. })));
    // The control: the same links where no repository is.
    symlink(ground.at("secret"), ground.at("plain/out")).unwrap();
    symlink("../../secret", ground.at("plain/inner/relative")).unwrap();
    assert_eq!(ground.real("plain/out").unwrap(), ground.at("secret"));
    assert_eq!(ground.real("plain/inner/relative/key").unwrap(), ground.at("secret/key"));
}

#[test]
fn link_that_stays_in_its_tree_is_followed_and_so_is_one_that_leads_into_it() {
    let ground = WorkTreeFixture::new();
    symlink("inner/deep", ground.at("tree/current")).unwrap();
    symlink(ground.at("tree/inner"), ground.at("tree/absolute")).unwrap();
    symlink(ground.at("tree"), ground.at("plain/tree")).unwrap();
    assert_eq!(ground.real("tree/current").unwrap(), ground.at("tree/inner/deep"));
    assert_eq!(ground.real("tree/absolute/deep").unwrap(), ground.at("tree/inner/deep"));
    assert_eq!(ground.real("plain/tree/current/..").unwrap(), ground.at("tree/inner"));
}

#[test]
fn checked_path_returns_the_walked_target() {
    let ground = WorkTreeFixture::new();
    let found = resolve(&ground.at("plain/inner")).unwrap();
    fs::rename(ground.at("plain/inner"), ground.at("plain/aside")).unwrap();
    symlink(ground.at("secret"), ground.at("plain/inner")).unwrap();
    let aside = rustix::fs::stat(ground.at("plain/aside")).unwrap();
    assert_eq!(FileIdentity::of(&fstat(&found.opened).unwrap()), FileIdentity::of(&aside));
    assert_eq!(found.kind().unwrap(), FileType::Directory);
}

#[test]
fn missing_path_is_resolved_from_its_last_existing_directory() {
    let ground = WorkTreeFixture::new();
    let (found, missing) = resolve_as_far(&ground.at("plain/new/deep")).unwrap();
    assert_eq!((found.real, missing), (ground.at("plain"), PathBuf::from("new/deep")));
    assert!(matches!(ground.real("plain/new"), Err(CheckedPathError::Look { source: Errno::NOENT, .. })));
    assert!(matches!(ground.real("secret/key/x"), Err(CheckedPathError::Look { source: Errno::NOTDIR, .. })));
    assert!(resolve_as_far(&ground.at("plain/new/../inner")).is_err());
    symlink("round", ground.at("plain/round")).unwrap();
    assert!(matches!(ground.real("plain/round"), Err(CheckedPathError::Look { source: Errno::LOOP, .. })));
}

#[test]
fn link_of_another_user_is_not_followed() {
    let ground = WorkTreeFixture::new();
    symlink(ground.at("secret"), ground.at("plain/out")).unwrap();
    assert_eq!(ground.real("plain/out").unwrap(), ground.at("secret"));
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(ground.at("plain/out"), Some(12_345), None).unwrap();
        assert!(matches!(ground.real("plain/out"), Err(CheckedPathError::Owner { owner: 12_345, .. })));
    }
}
