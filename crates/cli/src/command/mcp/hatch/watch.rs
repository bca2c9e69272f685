//! Checks that end the host's git early: its caller stopped waiting, its timeout passed, or it fetched more than the limits allow.

use super::super::execution::CallerGoneSignal;
use belljar_git::TreeLimits;
use std::cell::Cell;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// It, for one call.
pub(super) struct GitCallLimits<'w> {
    given_up: &'w CallerGoneSignal,
    pub(super) until: Instant,
    /// Folders whose size is watched.
    folders: Vec<PathBuf>,
    limits: TreeLimits,
    looked_at: Cell<Instant>,
    brings_too_much: Cell<bool>,
}

/// So often it is looked at how much there is.
const EVERY: Duration = Duration::from_millis(250);

// === impl GitCallLimits ===

impl<'w> GitCallLimits<'w> {
    pub(super) fn over(
        folders: &[&Path],
        (limits, within): (TreeLimits, Duration),
        given_up: &'w CallerGoneSignal,
    ) -> Self {
        let now = Instant::now();
        Self {
            given_up,
            until: now + within,
            folders: folders.iter().map(|folder| (*folder).to_owned()).collect(),
            limits,
            looked_at: Cell::new(now),
            brings_too_much: Cell::new(false),
        }
    }

    /// Returns true if git is to be ended.
    pub(super) fn is_over(&self) -> bool {
        if self.looked_at.get().elapsed() >= EVERY {
            self.brings_too_much.set(self.folders.iter().any(|folder| self.is_too_much(folder)));
            self.looked_at.set(Instant::now());
        }
        self.brings_too_much.get() || self.is_late() || self.given_up.is_so()
    }

    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    pub(super) fn brings_too_much(&self) -> bool {
        self.brings_too_much.get()
    }

    /// Returns true if a folder's tree exceeds the limits.
    fn is_too_much(&self, folder: &Path) -> bool {
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
                if files > self.limits.files || bytes > self.limits.bytes {
                    return true;
                }
            }
        }
        false
    }
}
