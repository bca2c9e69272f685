//! Which files are obeyed, and which are refused.

use super::*;
use crate::in_use::{FileIdentity, InUseEntry};
use rustix::fs::FileType;
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use tempfile::TempDir;

struct TrustedFileFixture {
    place: TempDir,
    writable: Vec<InUseEntry>,
}

impl TrustedFileFixture {
    fn new() -> Self {
        let place = TempDir::new().unwrap();
        for folder in ["work/inner", "else"] {
            fs::create_dir_all(place.path().join(folder)).unwrap();
        }
        for file in ["work/inner/policy.yaml", "else/policy.yaml", "work/kept"] {
            fs::write(place.path().join(file), "rules: []").unwrap();
        }
        let work = place.path().join("work");
        let writable = lending::entries(&work).unwrap();
        Self { place, writable }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn walk(&self, name: &str) -> Result<(), UntrustedFileError> {
        let path = self.at(name);
        RootWalk::begin(&path, &self.writable)?.open_end().map(drop)
    }
}

#[test]
fn sandbox_writable_file_is_refused_by_every_name() {
    let ground = TrustedFileFixture::new();
    symlink(ground.at("work/inner"), ground.at("into")).unwrap();
    symlink(ground.at("else/policy.yaml"), ground.at("work/out.yaml")).unwrap();
    symlink(ground.at("work/out.yaml"), ground.at("by-the-way.yaml")).unwrap();
    symlink("else", ground.at("elsewhere")).unwrap();
    symlink(ground.at("work"), ground.at("same")).unwrap();
    for name in [
        "work/inner/policy.yaml",
        "into/policy.yaml",
        "work/out.yaml",
        "by-the-way.yaml",
        "same/kept",
        "else/../work/inner/policy.yaml",
    ] {
        let refused = ground.walk(name);
        assert!(matches!(refused, Err(UntrustedFileError::Workspace { .. })), "{name}: {refused:?}");
    }
    // The controls: beside the workspace, also by a path whose text leads through its name.
    for name in ["else/policy.yaml", "elsewhere/policy.yaml", "work/../else/policy.yaml"] {
        ground.walk(name).unwrap();
    }
    fs::hard_link(ground.at("work/kept"), ground.at("else/linked.yaml")).unwrap();
    let refused = ground.walk("else/linked.yaml");
    assert!(matches!(refused, Err(UntrustedFileError::Linked { .. })), "{refused:?}");
    fs::hard_link(ground.at("else/policy.yaml"), ground.at("else/twice.yaml")).unwrap();
    ground.walk("else/twice.yaml").unwrap();
}

#[test]
fn a_file_that_other_users_can_write_is_refused() {
    let ground = TrustedFileFixture::new();
    let set =
        |name: &str, mode| fs::set_permissions(ground.at(name), fs::Permissions::from_mode(mode)).unwrap();
    let refused = || matches!(ground.walk("else/policy.yaml"), Err(UntrustedFileError::Mode { .. }));
    assert!(!refused());
    for (name, usual) in [("else/policy.yaml", 0o644), ("else", 0o755)] {
        set(name, usual | 0o002);
        assert!(refused(), "{name}");
        set(name, usual);
        assert!(!refused(), "{name}");
    }
    // In a sticky directory others can't replace what isn't theirs.
    set("else", 0o1777);
    assert!(!refused());
    if geteuid().is_root() {
        for name in ["else/policy.yaml", "else"] {
            chown(ground.at(name), Some(4711), None).unwrap();
            let refused = ground.walk("else/policy.yaml");
            assert!(
                matches!(refused, Err(UntrustedFileError::Owner { owner: 4711, .. })),
                "{name}: {refused:?}"
            );
            chown(ground.at(name), Some(0), None).unwrap();
        }
    }
    ground.walk("else/policy.yaml").unwrap();
}

#[test]
fn dangling_path_is_reported() {
    let ground = TrustedFileFixture::new();
    symlink(ground.at("loop"), ground.at("loop")).unwrap();
    for (name, expected) in [
        ("none.yaml", Errno::NOENT),
        ("loop", Errno::LOOP),
        ("else", Errno::ISDIR),
        ("else/policy.yaml/x", Errno::NOTDIR),
    ] {
        let walked = ground.walk(name);
        assert!(
            matches!(&walked, Err(UntrustedFileError::Look { source, .. }) if *source == expected),
            "{name}: {walked:?}"
        );
    }
}

#[test]
fn pipe_passed_by_a_shell_is_accepted() {
    let (read, _write) = rustix::pipe::pipe().unwrap();
    let path = PathBuf::from(format!("/dev/fd/{}", read.as_raw_fd()));
    let found = RootWalk::begin(&path, &[]).unwrap().open_end().unwrap();
    assert_eq!(FileType::from_raw_mode(fstat(&found).unwrap().st_mode), FileType::Fifo);
    // A file is judged by its own path.
    let ground = TrustedFileFixture::new();
    let file = File::open(ground.at("work/kept")).unwrap();
    let path = PathBuf::from(format!("/dev/fd/{}", file.as_raw_fd()));
    let refused = RootWalk::begin(&path, &ground.writable).unwrap().open_end();
    assert!(matches!(refused, Err(UntrustedFileError::Workspace { .. })), "{refused:?}");
}

#[test]
fn missing_file_is_accepted_unless_a_sandbox_could_create_it() {
    let ground = TrustedFileFixture::new();
    symlink(ground.at("work/none"), ground.at("else/link")).unwrap();
    for name in ["work/none", "work/inner/a/b", "else/link"] {
        let path = ground.at(name);
        let mut walk = RootWalk::begin(&path, &ground.writable).unwrap();
        let refused = walk.open_end();
        assert!(matches!(refused, Err(UntrustedFileError::Workspace { .. })), "{name}: {refused:?}");
    }
    // The control.
    let path = ground.at("else/a/b");
    let mut walk = RootWalk::begin(&path, &ground.writable).unwrap();
    assert!(matches!(walk.open_end(), Err(UntrustedFileError::Look { source: Errno::NOENT, .. })));
    assert_eq!(walk.missing(), Path::new("a/b"));
    let directory = walk.end_of_way(UseKind::Obeyed).unwrap().unwrap();
    assert_eq!(directory.identity, FileIdentity::of(&rustix::fs::stat(ground.at("else")).unwrap()));
}

#[test]
fn named_pipe_is_refused_without_waiting_for_its_writer() {
    let ground = TrustedFileFixture::new();
    rustix::fs::mknodat(CWD, ground.at("else/pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert!(matches!(open(&ground.at("else/pipe")), Err(UntrustedFileError::Kind { .. })));
    open(&ground.at("else/policy.yaml")).unwrap();
}

#[test]
fn secret_readable_by_other_users_is_detected() {
    let ground = TrustedFileFixture::new();
    let set = |name: &str, mode| {
        fs::set_permissions(ground.at(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    let told = || is_readable_by_others(&ground.at("else/policy.yaml"));
    // A temporary directory is its owner's alone.
    set("", 0o755);
    for (directory, file, expected) in [
        (0o755, 0o644, true),
        (0o711, 0o604, true),
        (0o755, 0o600, false),
        (0o755, 0o640, false),
        (0o700, 0o644, false),
    ] {
        set("else", directory);
        set("else/policy.yaml", file);
        assert_eq!(told(), expected, "{directory:o} {file:o}");
    }
}
