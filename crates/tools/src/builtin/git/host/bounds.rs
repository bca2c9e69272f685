//! Bounds of a call that end the host's git early: its caller stopped waiting, its time limit passed, or it fetched more than the
//! limits allow.

use belljar_files::tree::TreeLimits;
use std::cell::Cell;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Deadline of a call, and the token that is canceled when its caller stops waiting.
#[derive(Debug, Clone)]
pub struct CallBounds {
    /// Deadline.
    pub until: Instant,
    stop: CancellationToken,
}

/// Bounds of a call whose folders may only grow to a limit.
pub struct TreeSizeWatch<'w> {
    bounds: &'w CallBounds,
    /// Folders whose size is watched, each with its limits.
    folders: Vec<(PathBuf, TreeLimits)>,
    measured: Cell<Instant>,
    /// Duration of the last measurement: a large tree is measured less often.
    took: Cell<Duration>,
    is_too_large: Cell<bool>,
}

/// Interval at which the folders are measured.
const EVERY: Duration = Duration::from_millis(250);

// === impl CallBounds ===

impl CallBounds {
    pub(super) fn within(time: Duration, stop: &CancellationToken) -> Self {
        Self { until: Instant::now() + time, stop: stop.clone() }
    }

    /// Returns true if the deadline passed.
    pub fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Returns true if the deadline passed, or the caller stopped waiting.
    pub fn is_over(&self) -> bool {
        self.is_late() || self.stop.is_cancelled()
    }
}

// === impl TreeSizeWatch ===

impl<'w> TreeSizeWatch<'w> {
    pub(super) fn new(bounds: &'w CallBounds, folders: &[(&Path, TreeLimits)]) -> Self {
        Self {
            bounds,
            folders: folders.iter().map(|(folder, limits)| ((*folder).to_owned(), *limits)).collect(),
            measured: Cell::new(Instant::now()),
            took: Cell::new(Duration::ZERO),
            is_too_large: Cell::new(false),
        }
    }

    /// Returns true if git is to be ended.
    pub(super) fn is_over(&self) -> bool {
        if self.measured.get().elapsed() >= EVERY.max(self.took.get() * 4) {
            self.measure();
        }
        self.is_too_large.get() || self.bounds.is_over()
    }

    /// Measures the folders now. Returns true if one exceeds its limits.
    pub(super) fn measure(&self) -> bool {
        let begun = Instant::now();
        self.is_too_large.set(self.folders.iter().any(|(folder, limits)| exceeds(folder, *limits)));
        self.took.set(begun.elapsed());
        self.measured.set(Instant::now());
        self.is_too_large.get()
    }

    pub(super) fn is_late(&self) -> bool {
        self.bounds.is_late()
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.is_too_large.get()
    }
}

/// Returns true if a folder's tree exceeds the limits.
fn exceeds(folder: &Path, limits: TreeLimits) -> bool {
    let (mut files, mut bytes, mut pending) = (0, 0, vec![folder.to_owned()]);
    while let Some(folder) = pending.pop() {
        let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for (entry, metadata) in
            all.filter_map(|entry: DirEntry| Some((entry.path(), entry.metadata().ok()?)))
        {
            files += 1;
            bytes += metadata.len();
            if metadata.is_dir() {
                pending.push(entry);
            }
            if files > limits.files || bytes > limits.bytes {
                return true;
            }
        }
    }
    false
}
