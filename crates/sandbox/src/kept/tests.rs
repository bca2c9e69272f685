//! Crashes between the steps by which changes are kept and removed.

use super::settle::write_summary;
use super::*;
use crate::native::HostUser;
use belljar_confine::plan::HostPath;
use belljar_contract::id::RunId;
use jiff::Timestamp;
use std::path::Path;

/// A run whose owner is gone, and which has written `file` in its layer.
fn left(state: &State, source: &Path, content: Option<&str>) -> RunId {
    let folder = state.begin_run(HostUser::choose().identity()).unwrap();
    let upper = folder.make("upper", HostUser::choose().identity()).unwrap();
    let source = HostPath::resolve(source).unwrap();
    let label = RunLabel { kind: RunKind::Exec, name: None, title: "a run".to_owned() };
    CopyRecord::begin(label, folder.path(), (&source, upper.as_path())).write(folder.path()).unwrap();
    if let Some(content) = content {
        std::fs::write(upper.as_path().join("file"), content).unwrap();
    }
    let id = folder.id().clone();
    folder.leave();
    id
}

fn place() -> (tempfile::TempDir, State, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let (state, source) = (State::at(place.path().join("state")), place.path().join("source"));
    std::fs::create_dir(&source).unwrap();
    (place, state, source)
}

#[test]
fn leftovers_with_changes_are_kept_and_others_are_removed() {
    let (_place, state, source) = place();
    // The next run looks for leftovers, too.
    let unchanged = left(&state, &source, None);
    let changed = left(&state, &source, Some("new\n"));
    assert!(!state.run_folder(&unchanged).exists());
    // Killed when the summary was written, and before the folder was moved.
    let summary =
        Summary { kept_at: Timestamp::now(), was_cut_off: false, files: None, bytes: 0, is_laid_out: false };
    write_summary(&state.run_folder(&changed), &summary).unwrap();
    // What a killed process has left is removed or kept by the next one.
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
