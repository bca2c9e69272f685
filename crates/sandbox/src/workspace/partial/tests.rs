//! Executable bits and merges of changes that are applied to a source that something else has changed.

use super::*;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// The four directories of an application.
struct Ground {
    base: TempDir,
    target: TempDir,
    layer: TempDir,
    scratch: TempDir,
}

// === impl Ground ===

impl Ground {
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

    /// Prepares what `wishes` says, and calls `then` with it.
    fn prepare<T>(
        &self,
        wishes: &Wishes,
        baseline: &mut Baseline,
        then: impl FnOnce(Result<Prepared<'_>, ApplyError>, &mut Baseline) -> T,
    ) -> T {
        let open = |place: &TempDir| Directory::open_host(place.path()).unwrap();
        let (base, target, layer) = (open(&self.base), open(&self.target), open(&self.layer));
        let (set, scratch) = (ChangeSet::read(&base, &layer).unwrap(), open(&self.scratch));
        let (copy, base) = (&layer, Some(&base));
        let application = Application { set: &set, copy, target: &target, base, scratch: &scratch };
        then(application.prepare(wishes, baseline), baseline)
    }

    fn apply(&self, wishes: &Wishes) -> Result<Applied, ApplyError> {
        self.prepare(wishes, &mut Baseline::now(), |prepared, baseline| prepared?.write(baseline))
    }

    fn mode(&self, name: &str) -> u32 {
        self.target.path().join(name).metadata().unwrap().permissions().mode() & 0o777
    }

    fn markers(&self, name: &str) -> usize {
        std::fs::read_to_string(self.target.path().join(name)).unwrap().matches("<<<<<<<").count()
    }
}

fn merging(merge: Merge) -> Wishes {
    Wishes { merge, ..Wishes::default() }
}

fn overwriting(name: &str, trust: Trust) -> Wishes {
    Wishes { overwritten: vec![name.into()], trust, ..Wishes::default() }
}

#[test]
fn executable_bit_that_a_person_took_away_comes_back_only_with_a_yes() {
    let taken_away = || {
        Ground::make()
            .with_file("x", [("a\nb\nc\nd\n", 0o755), ("A\nb\nc\nd\n", 0o755), ("a\nb\nc\nD\n", 0o644)])
    };
    // The run has not set the bit, so a merge leaves it as the person has it.
    let ground = taken_away();
    assert_eq!(ground.apply(&merging(Merge::Clean)).unwrap().merged, [Path::new("x")]);
    assert_eq!(ground.mode("x"), 0o644);
    // The file is overwritten with what the run has, which is executable.
    let ground = taken_away();
    let refused = ground.apply(&overwriting("x", Trust::default()));
    assert!(matches!(refused, Err(ApplyError::Handoff { .. })), "{refused:?}");
    assert_eq!(ground.mode("x"), 0o644);
    ground.apply(&overwriting("x", Trust::in_all())).unwrap();
    assert_eq!(ground.mode("x"), 0o755);
    // Nothing but the bit was changed, which is no conflict.
    let ground = Ground::make().with_file("x", [("a", 0o755), ("run", 0o755), ("a", 0o644)]);
    assert_eq!(ground.apply(&Wishes::default()).unwrap().written, [Path::new("x")]);
    assert_eq!(ground.mode("x"), 0o644);
    // The run has set the bit.
    let ground =
        Ground::make().with_file("x", [("a\nb\nc\n", 0o644), ("A\nb\nc\n", 0o755), ("a\nb\nC\n", 0o644)]);
    let refused = ground.apply(&merging(Merge::Clean));
    assert!(matches!(refused, Err(ApplyError::Handoff { .. })), "{refused:?}");
    // The control: a file that has been executable all the time takes no yes.
    let ground = Ground::make().with_file("x", [("a", 0o755), ("run", 0o755), ("person", 0o755)]);
    ground.apply(&overwriting("x", Trust::default())).unwrap();
    assert_eq!(ground.mode("x"), 0o755);
}

#[test]
fn file_that_an_interrupted_attempt_has_merged_is_not_merged_again() {
    for is_noted in [true, false] {
        let versions = [("a\n", 0o644), ("run\n", 0o644), ("person\n", 0o644)];
        let ground = Ground::make().with_file("x", versions).with_file("y", versions);
        let (wishes, mut baseline) = (merging(Merge::Markers), Baseline::now());
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
