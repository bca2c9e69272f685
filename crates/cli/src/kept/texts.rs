//! Messages about changes that are kept, conflict or are left out.

use crate::progress::harmless;
use crate::state;
use belljar_policy::untrusted;
use belljar_sandbox::kept::{self, KeptChangeSet, RunKind};
use std::path::PathBuf;
use std::time::Duration;

/// The message for changes that are kept.
pub(crate) fn kept_as(kept: &KeptChangeSet) -> String {
    let id = kept.id();
    let keep_for = kept::retention(&state::open()).unwrap_or_default().keep_for;
    let how_long = duration(keep_for);
    match kept.record().source_path() {
        Some(_) => {
            let run = match kept.record().label.kind {
                RunKind::Run => format!("The run is kept in {}\n", crate::output::path(kept.path())),
                _ => String::new(),
            };
            format!(
                "The changes are kept as {id} for {how_long}: `belljar changes diff {id}` shows them, \
                 `belljar changes apply {id}` applies them.\n{run}"
            )
        }
        None => {
            let hint = match kept.has_clone() {
                true => format!("`belljar changes push {id}` pushes them"),
                false => format!("`belljar changes show {id}` says where the files are"),
            };
            format!(
                "The changes are kept as {id} for {how_long}: `belljar changes diff {id}` shows them, {hint}.\n"
            )
        }
    }
}

/// The message for changes that are pushed, but for some that are kept.
pub(crate) fn not_pushed_kept_as(kept: &KeptChangeSet) -> String {
    let id = kept.id();
    let how_long = duration(kept::retention(&state::open()).unwrap_or_default().keep_for);
    format!(
        "What was not pushed is kept as {id} for {how_long}: `belljar changes show {id}` says where the files are, \
         `belljar changes rm {id}` deletes them.\n"
    )
}

/// Formats a duration in its largest whole unit.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (number, unit) = match seconds {
        _ if seconds >= 2 * 86_400 => (seconds / 86_400, "days"),
        _ if seconds >= 2 * 3_600 => (seconds / 3_600, "hours"),
        _ if seconds >= 120 => (seconds / 60, "minutes"),
        _ => (seconds, "seconds"),
    };
    format!("{number} {unit}")
}

/// Formats paths of the source that changed outside of the run, one per line.
pub(crate) fn drift(paths: &[String]) -> String {
    lines("Changed in the source since the run began, by something else:", paths)
}

/// The message for the rest of changes of which a part is applied.
pub(crate) fn others_kept_as(kept: &KeptChangeSet) -> String {
    format!("The other changes are still kept as {}.\n", kept.id())
}

/// Formats paths that conflict, one per line.
pub(crate) fn conflicts(paths: &[String]) -> String {
    lines("Changed in the source meanwhile, and not applied:", paths)
}

/// Paths that are too long, each on its line, as far as a person can read it.
pub(crate) fn left_out(paths: &[PathBuf]) -> String {
    left_out_lines(&too_long(paths))
}

/// Formats reported paths that are too long, one per line.
pub(crate) fn left_out_lines(paths: &[String]) -> String {
    lines("Longer than a path may be, and neither shown nor applied (they stay in the folder):", paths)
}

/// Paths that are too long, as they are reported.
pub(crate) fn too_long(paths: &[PathBuf]) -> Vec<String> {
    const SHOWN: usize = 80;
    let short = |path: String| match path.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}… ({} bytes)", path.get(..at).unwrap_or_default(), path.len()),
        None => path,
    };
    listed(paths).into_iter().map(short).collect()
}

fn lines(head: &str, paths: &[String]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let lines: String = paths.iter().map(|path| format!("  ! {}\n", harmless(path))).collect();
    format!("{head}\n{lines}")
}

/// Formats paths as they are reported.
pub(crate) fn listed(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| untrusted::name(path)).collect()
}
