//! Executable bits and merges of changes that are applied to a source that something else has changed.

use super::*;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// The four directories of an application.
struct ApplyFixture {
    base: TempDir,
    target: TempDir,
    layer: TempDir,
    scratch: TempDir,
}

// === impl ApplyFixture ===

impl ApplyFixture {
    fn make() -> Self {
        let place = || TempDir::new().unwrap();
        Self { base: place(), target: place(), layer: place(), scratch: place() }
    }

    /// A run that begins with `before` in `base`; a person has `now` in the target.
    fn with_file(self, name: &str, [before, run, now]: [(&str, u32); 3]) -> Self {
        for (place, (content, mode)) in [(&self.base, before), (&self.layer, run), (&self.target, now)] {
            std::fs::write(place.path().join(name), content).unwrap();
            std::fs::set_permissions(place.path().join(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        self
    }

    /// Prepares the changes according to `wishes`, and calls `then` with them.
    fn prepare<T>(
        &self,
        wishes: &ApplyOptions,
        baseline: &mut Baseline,
        then: impl FnOnce(Result<PreparedApplication<'_>, ApplyError>, &mut Baseline) -> T,
    ) -> T {
        let open = |place: &TempDir| Directory::open_host(place.path()).unwrap();
        let (base, target, layer) = (open(&self.base), open(&self.target), open(&self.layer));
        let (set, scratch) = (ChangeSet::read(&base, &layer).unwrap(), open(&self.scratch));
        let (copy, base) = (&layer, Some(&base));
        let application = Application { set: &set, copy, target: &target, base, scratch: &scratch };
        then(application.prepare(wishes, baseline), baseline)
    }

    fn apply(&self, wishes: &ApplyOptions) -> Result<ApplyOutcome, ApplyError> {
        self.prepare(wishes, &mut Baseline::now(), |prepared, baseline| prepared?.write(baseline))
    }

    fn mode(&self, name: &str) -> u32 {
        self.target.path().join(name).metadata().unwrap().permissions().mode() & 0o777
    }

    fn markers(&self, name: &str) -> usize {
        std::fs::read_to_string(self.target.path().join(name)).unwrap().matches("<<<<<<<").count()
    }
}

fn merging(merge: MergeMode) -> ApplyOptions {
    ApplyOptions { merge, ..ApplyOptions::default() }
}

fn overwriting(name: &str, trust: ApprovedPaths) -> ApplyOptions {
    ApplyOptions { overwritten: vec![name.into()], trust, ..ApplyOptions::default() }
}

#[test]
fn executable_bit_that_a_person_took_away_comes_back_only_with_a_yes() {
    let taken_away = || {
        ApplyFixture::make()
            .with_file("x", [("a\nb\nc\nd\n", 0o755), ("A\nb\nc\nd\n", 0o755), ("a\nb\nc\nD\n", 0o644)])
    };
    // The run has not set the bit, so a merge leaves it as the person has it.
    let ground = taken_away();
    assert_eq!(ground.apply(&merging(MergeMode::Clean)).unwrap().merged, [Path::new("x")]);
    assert_eq!(ground.mode("x"), 0o644);
    // The file is overwritten with what the run has, which is executable.
    let ground = taken_away();
    let refused = ground.apply(&overwriting("x", ApprovedPaths::default()));
    assert!(matches!(refused, Err(ApplyError::Handoff { .. })), "{refused:?}");
    assert_eq!(ground.mode("x"), 0o644);
    ground.apply(&overwriting("x", ApprovedPaths::in_all())).unwrap();
    assert_eq!(ground.mode("x"), 0o755);
    // Nothing but the bit was changed, which is no conflict.
    let ground = ApplyFixture::make().with_file("x", [("a", 0o755), ("run", 0o755), ("a", 0o644)]);
    assert_eq!(ground.apply(&ApplyOptions::default()).unwrap().written, [Path::new("x")]);
    assert_eq!(ground.mode("x"), 0o644);
    // The run has set the bit.
    let ground = ApplyFixture::make()
        .with_file("x", [("a\nb\nc\n", 0o644), ("A\nb\nc\n", 0o755), ("a\nb\nC\n", 0o644)]);
    let refused = ground.apply(&merging(MergeMode::Clean));
    assert!(matches!(refused, Err(ApplyError::Handoff { .. })), "{refused:?}");
    // The control: a file that has been executable all the time takes no yes.
    let ground = ApplyFixture::make().with_file("x", [("a", 0o755), ("run", 0o755), ("person", 0o755)]);
    ground.apply(&overwriting("x", ApprovedPaths::default())).unwrap();
    assert_eq!(ground.mode("x"), 0o755);
}

#[test]
fn file_that_an_interrupted_attempt_has_merged_is_not_merged_again() {
    for is_noted in [true, false] {
        let versions = [("a\n", 0o644), ("run\n", 0o644), ("person\n", 0o644)];
        let ground = ApplyFixture::make().with_file("x", versions).with_file("y", versions);
        let (wishes, mut baseline) = (merging(MergeMode::Markers), Baseline::now());
        ground.prepare(&wishes, &mut baseline, |prepared, _| drop(prepared.unwrap()));
        // It was killed between the two files.
        std::fs::rename(ground.scratch.path().join("x"), ground.target.path().join("x")).unwrap();
        std::fs::remove_file(ground.scratch.path().join("y")).unwrap();
        let stored = serde_json::to_vec(&baseline).unwrap();
        // The control: without the note it is merged with itself.
        let mut baseline = if is_noted { serde_json::from_slice(&stored).unwrap() } else { Baseline::now() };
        let applied =
            ground.prepare(&wishes, &mut baseline, |prepared, baseline| prepared.unwrap().write(baseline));
        assert_eq!(applied.unwrap().marked, [Path::new("x"), Path::new("y")]);
        assert_eq!((ground.markers("x") == 1, ground.markers("y")), (is_noted, 1));
    }
}

#[test]
fn files_that_a_person_saves_while_changes_are_written_are_conflicts() {
    let old = [("old", 0o644), ("run", 0o644), ("old", 0o644)];
    let ground =
        ApplyFixture::make().with_file("saved", old).with_file("free", old).with_file("removed", old);
    for place in [&ground.base, &ground.target] {
        for name in ["gone", "directory/inner"] {
            std::fs::create_dir_all(place.path().join("directory")).unwrap();
            std::fs::write(place.path().join(name), "old").unwrap();
        }
    }
    for gone in ["gone", "directory"] {
        let whiteout = ground.layer.path().join(gone);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &whiteout,
            FileType::CharacterDevice,
            rustix::fs::Mode::empty(),
            0,
        )
        .unwrap();
    }
    std::fs::create_dir(ground.layer.path().join("folder")).unwrap();
    for name in ["folder/new", "added"] {
        std::fs::write(ground.layer.path().join(name), "run").unwrap();
    }
    let saved = ["saved", "gone", "added", "directory/person"];
    // A file made in the same tick of the kernel's clock as the copy may have been made after it.
    let mut later = Baseline::at(std::time::SystemTime::now() + std::time::Duration::from_secs(1));
    let applied = ground.prepare(&ApplyOptions::default(), &mut later, |prepared, baseline| {
        for name in saved {
            std::fs::write(ground.target.path().join(name), "person").unwrap();
        }
        std::fs::remove_file(ground.target.path().join("removed")).unwrap();
        prepared.unwrap().write(baseline).unwrap()
    });
    let expected = ["added", "directory", "gone", "removed", "saved"].map(PathBuf::from);
    assert_eq!(applied.conflicts, expected);
    assert_eq!(applied.written, ["directory/inner", "folder", "folder/new", "free"].map(PathBuf::from));
    let read = |name: &str| std::fs::read_to_string(ground.target.path().join(name)).unwrap();
    assert_eq!(saved.map(read), ["person"; 4]);
    // The controls: what no other program touched is written, and nothing is left beside it.
    assert_eq!(["free", "folder/new"].map(read), ["run"; 2]);
    let names = std::fs::read_dir(ground.target.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().contains("belljar")));
}

#[test]
fn access_control_lists_are_carried_over_and_the_owning_group_gains_nothing() {
    /// Returns the list `u::rw u:1234:rw g::--- m::rw o::---`.
    fn list() -> Vec<u8> {
        const NO_ID: u32 = u32::MAX;
        let entries = [(1, 6, NO_ID), (2, 6, 1234), (4, 0, NO_ID), (16, 6, NO_ID), (32, 0, NO_ID)];
        let entry = |(tag, permissions, id): (u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &permissions.to_le_bytes()[..], &id.to_le_bytes()[..]].concat()
        };
        2_u32.to_le_bytes().into_iter().chain(entries.into_iter().flat_map(entry)).collect()
    }
    let set = |path: &Path, name: &std::ffi::CStr| {
        rustix::fs::setxattr(path, name, &list(), rustix::fs::XattrFlags::empty()).unwrap();
    };
    let list_of = |path: &Path| {
        let mut value = [0; 64];
        let read = rustix::fs::getxattr(path, c"system.posix_acl_access", &mut value[..]);
        read.ok().map(|length| value[..length].to_vec())
    };
    let old = [("old", 0o600), ("run", 0o600), ("old", 0o600)];
    let ground = ApplyFixture::make()
        .with_file("listed", old)
        .with_file("plain", [old[0], ("run", 0o600), ("old", 0o640)]);
    let file = |name: &str| ground.target.path().join(name);
    set(&file("listed"), c"system.posix_acl_access");
    // New files in it inherit an access list, which a replaced file need not have.
    set(ground.target.path(), c"system.posix_acl_default");
    let applied = ground.apply(&ApplyOptions::default()).unwrap();
    assert_eq!(applied.written, ["listed", "plain"].map(PathBuf::from));
    assert_eq!((list_of(&file("listed")), ground.mode("listed")), (Some(list()), 0o660));
    assert_eq!((list_of(&file("plain")), ground.mode("plain")), (None, 0o640));
    // The control: without what is carried over, a new file gets the list of its directory.
    std::fs::write(file("new"), "").unwrap();
    assert!(list_of(&file("new")).is_some());
}
