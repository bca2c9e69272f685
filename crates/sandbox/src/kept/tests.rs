//! Crashes between the steps by which changes are kept and removed.

use super::settle::write_summary;
use super::*;
use crate::native::HostUser;
use crate::workspace::partial::{ApplyOptions, ApplyOutcome};
use crate::workspace::snapshot::{self, SnapshotLimits};
use belljar_contract::id::RunId;
use belljar_files::directory::Directory;
use belljar_files::host_path::HostPath;
use jiff::Timestamp;
use std::path::Path;

/// A run whose owner is gone, and which has written `file` in its layer.
fn left(state: &StateDirectory, source: &Path, content: Option<&str>) -> RunId {
    left_with(state, source, |upper| {
        if let Some(content) = content {
            std::fs::write(upper.join("file"), content).unwrap();
        }
    })
}

/// A run whose owner is gone, and which has written in its layer on the source itself.
fn left_with(state: &StateDirectory, source: &Path, write: impl FnOnce(&Path)) -> RunId {
    left_on(Base::Source, (state, source), write)
}

/// Base of a run's layer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Base {
    Source,
    Snapshot,
}

fn left_on(base: Base, (state, source): (&StateDirectory, &Path), write: impl FnOnce(&Path)) -> RunId {
    let folder = state.begin_run(HostUser::choose().identity()).unwrap();
    let upper = folder.make("upper", HostUser::choose().identity()).unwrap();
    let source = HostPath::resolve(source).unwrap();
    let take = || snapshot::take(&source, &folder, SnapshotLimits::FOR_COMMAND).expect("the source is small");
    let base = (base == Base::Snapshot).then(take);
    let record = CopyRecord::begin(label(), folder.path(), (&source, upper.as_path()));
    record.on_base(folder.path(), base.as_ref()).write(folder.path()).unwrap();
    write(upper.as_path());
    let id = folder.id().clone();
    folder.leave();
    id
}

fn label() -> RunLabel {
    RunLabel { kind: RunKind::Exec, name: None, title: "a run".to_owned() }
}

/// A run whose owner is gone, and which has written in a whole copy of its source.
fn left_whole(state: &StateDirectory, source: &Path, write: impl FnOnce(&Path)) -> RunId {
    let folder = state.begin_run(HostUser::choose().identity()).unwrap();
    let copy = folder.make("workspace", HostUser::choose().identity()).unwrap();
    let (source, opened) =
        (HostPath::resolve(source).unwrap(), Directory::open_host(copy.as_path()).unwrap());
    let owner = HostUser::choose().identity();
    let imprint = crate::workspace::copy::tree(&Directory::open_meant(&source).unwrap(), &opened, owner);
    // A person edits a file between the copy and its record.
    std::fs::write(source.as_path().join("edited"), "person").unwrap();
    let record = CopyRecord::begin(label(), folder.path(), (&source, copy.as_path()));
    record.of_whole(&imprint.unwrap()).write(folder.path()).unwrap();
    write(copy.as_path());
    let id = folder.id().clone();
    folder.leave();
    id
}

fn place() -> (tempfile::TempDir, StateDirectory, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let (state, source) = (StateDirectory::at(place.path().join("state")), place.path().join("source"));
    std::fs::create_dir(&source).unwrap();
    (place, state, source)
}

/// Directories to be replaced and replacements, whose files are older than any copy that is made now.
fn fill(source: &Path) {
    for name in ["src/f", "src.new/f", "lib/f", "edited"] {
        let path = source.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, if name == "src.new/f" { "person" } else { "old" }).unwrap();
    }
    let written_at = std::fs::metadata(source.join("edited")).unwrap().modified().unwrap();
    // The kernel's clock for files goes in larger steps than the other.
    let is_older = || written_at + std::time::Duration::from_millis(50) < std::time::SystemTime::now();
    belljar_testkit::wait::until(is_older);
}

fn applied(state: &StateDirectory, id: &RunId, wishes: &ApplyOptions) -> ApplyOutcome {
    let mut kept = find(state, id.as_str()).unwrap();
    let frozen = kept.changes().unwrap();
    kept.apply(&frozen, &frozen.set, wishes).unwrap()
}

/// A person renames another directory into the place of `src`, adds names beside it and in `lib`, and nothing else.
fn replace_directory(source: &Path) {
    std::fs::rename(source.join("src"), source.join("src.old")).unwrap();
    std::fs::rename(source.join("src.new"), source.join("src")).unwrap();
    std::fs::write(source.join("lib/added"), "person").unwrap();
}

#[test]
fn directory_renamed_into_place_is_not_written_to() {
    for (base, is_removed) in
        [Base::Source, Base::Snapshot].into_iter().flat_map(|base| [(base, false), (base, true)])
    {
        let (_place, state, source) = place();
        fill(&source);
        // Equal files in another directory are the other directory's, too.
        std::fs::write(source.join("src.new/f"), if base == Base::Snapshot { "old" } else { "person" })
            .unwrap();
        let id = left_on(base, (&state, &source), |upper| {
            for name in ["src/f", "src/created", "lib/f", "lib/created"] {
                std::fs::create_dir_all(upper.join(name).parent().unwrap()).unwrap();
                std::fs::write(upper.join(name), "run").unwrap();
            }
            if is_removed {
                std::fs::remove_file(upper.join("src/f")).unwrap();
                let opaque = ("user.overlay.opaque", b"y".as_slice());
                rustix::fs::setxattr(upper.join("src"), opaque.0, opaque.1, rustix::fs::XattrFlags::empty())
                    .unwrap();
            }
        });
        state.reconcile().unwrap();
        replace_directory(&source);
        let were = std::fs::read(source.join("src/f")).unwrap();
        let drift = find(&state, id.as_str()).unwrap().changes().unwrap().drift.listed();
        assert!(drift.contains(&"src/".to_owned()), "{base:?}: {drift:?}");
        let applied = applied(&state, &id, &ApplyOptions::default());
        assert_eq!(applied.conflicts, [Path::new("src/created"), Path::new("src/f")], "{base:?}");
        assert_eq!(std::fs::read(source.join("src/f")).unwrap(), were);
        assert!(!source.join("src/created").exists());
        // The control: names that were added in a directory replace nothing.
        assert_eq!(applied.written, [Path::new("lib/created"), Path::new("lib/f")]);
        assert_eq!(std::fs::read(source.join("lib/f")).unwrap(), b"run");
    }
}

#[test]
fn whole_copy_is_compared_with_the_files_that_were_copied() {
    let (_place, state, source) = place();
    fill(&source);
    let id = left_whole(&state, &source, |copy| {
        let _ = ["src/f", "lib/f", "edited"].map(|name| std::fs::write(copy.join(name), "run").unwrap());
    });
    state.reconcile().unwrap();
    replace_directory(&source);
    let applied = applied(&state, &id, &ApplyOptions::default());
    assert_eq!(applied.conflicts, [Path::new("edited"), Path::new("src/f")]);
    assert_eq!(applied.written, [Path::new("lib/f")]);
    for (name, content) in [("src/f", "person"), ("edited", "person"), ("lib/f", "run")] {
        assert_eq!(std::fs::read_to_string(source.join(name)).unwrap(), content, "{name}");
    }
}

#[test]
fn leftovers_with_changes_are_kept_and_others_are_removed() {
    let (_place, state, source) = place();
    // The next run looks for leftovers, too.
    let unchanged = left(&state, &source, None);
    let changed = left(&state, &source, Some("new\n"));
    assert!(!state.run_folder(&unchanged).exists());
    // Killed when the summary was written, and before the folder was moved.
    let summary = ChangeSetSummary {
        kept_at: Timestamp::now(),
        kept_at_up_time: None,
        was_cut_off: false,
        files: None,
        bytes: 0,
        is_laid_out: false,
    };
    write_summary(&state.run_folder(&changed), &summary).unwrap();
    // The next process removes or keeps the leftovers of a killed one.
    state.reconcile().unwrap();
    assert!(!state.run_folder(&changed).exists());
    let listed = list(&state);
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0].id, listed[0].summary.was_cut_off, listed[0].summary.files),
        (&changed, true, Some(1))
    );
    let kept = find(&state, changed.as_str()).unwrap();
    assert!(kept.render().unwrap().diff.contains("+new\n"));
    // As long as one process has it, no other does anything with it.
    assert!(matches!(find(&state, changed.as_str()), Err(KeptError::Busy { .. })));
}

#[test]
fn a_removal_that_was_interrupted_is_finished_and_leaves_no_change_set() {
    let (_place, state, source) = place();
    let id = left(&state, &source, Some("new\n"));
    state.reconcile().unwrap();
    let folder = state.kept().join(id.as_str());
    std::fs::rename(&folder, state.kept().join(format!(".removed-{id}"))).unwrap();
    assert!(list(&state).is_empty());
    collect(&state, None);
    assert_eq!(std::fs::read_dir(state.kept()).unwrap().count(), 0);
}

#[test]
fn an_id_names_its_own_changes_whatever_another_run_is_called() {
    let (_place, state, source) = place();
    let [first, other] = [(); 2].map(|()| left(&state, &source, Some("x")));
    let call = |id: &RunId, name: &str| {
        let folder = state.run_folder(id);
        let mut record = CopyRecord::read(&folder).unwrap().unwrap();
        record.label.name = Some(name.to_owned());
        record.write(&folder).unwrap();
    };
    call(&other, first.as_str());
    let third = left(&state, &source, Some("x"));
    let begins = &third.as_str()[..35];
    let fourth = left(&state, &source, Some("x"));
    call(&fourth, begins);
    state.reconcile().unwrap();
    let found = |name: &str| find(&state, name).map(|kept| kept.id().clone());
    assert_eq!(found(first.as_str()).unwrap(), first);
    assert_eq!(found(other.as_str()).unwrap(), other);
    // A text that is a name and also the beginning of another id is ambiguous.
    let ambiguous = found(begins).unwrap_err().to_string();
    assert!([&third, &fourth].iter().all(|id| ambiguous.contains(id.as_str())), "{ambiguous}");
    assert!(ambiguous.contains(&format!("(named {begins})")), "{ambiguous}");
    // The control: a name that is no id.
    let named = left(&state, &source, Some("x"));
    call(&named, "work");
    state.reconcile().unwrap();
    assert_eq!(found("work").unwrap(), named);
}

#[test]
fn file_that_a_person_deleted_or_renamed_meanwhile_does_not_come_back() {
    for base in [Base::Source, Base::Snapshot] {
        let (_place, state, source) = place();
        fill(&source);
        let id = left_on(base, (&state, &source), |upper| {
            for name in ["src/f", "edited", "lib/created", "new"] {
                std::fs::create_dir_all(upper.join(name).parent().unwrap()).unwrap();
                std::fs::write(upper.join(name), "run").unwrap();
            }
        });
        state.reconcile().unwrap();
        std::fs::remove_file(source.join("edited")).unwrap();
        std::fs::rename(source.join("src"), source.join("renamed")).unwrap();
        std::fs::write(source.join("lib/added"), "person").unwrap();
        let applied = applied(&state, &id, &ApplyOptions::default());
        let conflicts = applied.conflicts.iter().filter(|path| *path != Path::new("src"));
        assert_eq!(conflicts.collect::<Vec<_>>(), [Path::new("edited"), Path::new("src/f")], "{base:?}");
        assert!(!source.join("edited").exists() && !source.join("src").exists(), "{base:?}");
        // The control: names that the source never had are added, also where a person has added others.
        assert_eq!(applied.written, [Path::new("lib/created"), Path::new("new")], "{base:?}");
    }
}

/// A line of `packed-refs`.
fn packed(digit: &str, name: &str) -> String {
    format!("{} refs/heads/{name}\n", digit.repeat(40))
}

#[test]
fn reference_whose_packed_entry_a_person_moved_meanwhile_conflicts() {
    for (base, git) in [(Base::Source, ".git"), (Base::Snapshot, ".git"), (Base::Source, ".git/modules/sub")]
    {
        let (_place, state, source) = place();
        std::fs::create_dir_all(source.join(git).join("refs/heads")).unwrap();
        let write = |text: &str| std::fs::write(source.join(git).join("packed-refs"), text).unwrap();
        write(&format!(
            "# pack-refs with: peeled fully-peeled sorted\n{}{}",
            packed("a", "moved"),
            packed("b", "kept")
        ));
        fill(&source);
        let id = left_on(base, (&state, &source), |upper| {
            let heads = upper.join(git).join("refs/heads");
            std::fs::create_dir_all(&heads).unwrap();
            for name in ["added", "kept", "moved", "new"] {
                std::fs::write(heads.join(name), packed("e", "")).unwrap();
            }
        });
        state.reconcile().unwrap();
        // A person commits, makes a branch, and git packs the references.
        write(&[packed("d", "added"), packed("b", "kept"), packed("c", "moved")].concat());
        let wishes = ApplyOptions {
            trust: belljar_policy::handoff::ApprovedPaths::in_all(),
            ..ApplyOptions::default()
        };
        let applied = applied(&state, &id, &wishes);
        let heads = |names: [&str; 2]| names.map(|name| Path::new(git).join("refs/heads").join(name));
        assert_eq!(applied.conflicts, heads(["added", "moved"]), "{base:?}");
        assert_eq!(applied.written, heads(["kept", "new"]), "{base:?}, the control");
    }
}
