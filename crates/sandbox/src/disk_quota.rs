//! Disk quota: ends sandboxes that have written too much to disk. One thread watches all of them; it runs only while there
//! are sandboxes to watch.

use crate::workspace::growth::TreeGrowth;
use belljar_confine::sealed::InitHandle;
use belljar_confine::wall;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::host_path::HostPath;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Looks after what sandboxes write.
#[derive(Debug, Default)]
pub(crate) struct DiskQuotas {
    shared: Arc<QuotaWatch>,
}

#[derive(Debug, Default)]
struct QuotaWatch {
    watched: Mutex<WatchList>,
    /// Signalled when there is a new sandbox to watch.
    news: Condvar,
}

#[derive(Debug, Default)]
struct WatchList {
    list: Vec<WatchedSandbox>,
    has_thread: bool,
}

/// A watched sandbox and the directories that it writes to.
#[derive(Debug)]
struct WatchedSandbox {
    growth: TreeGrowth,
    sandbox: Box<dyn QuotaTarget>,
    has_outgrown: Arc<AtomicBool>,
}

/// A sandbox that is looked after.
pub(crate) trait QuotaTarget: Debug + Send {
    /// Returns its PID 1, if its processes can be looked at.
    fn process(&self) -> Option<&InitHandle>;

    fn has_ended(&self) -> bool;

    /// Ends it, and waits for nothing.
    fn kill(&self);
}

/// Result of the watch over one sandbox.
#[derive(Debug, Clone, Default)]
pub(crate) struct QuotaOutcome(Arc<AtomicBool>);

/// The thread ends when there was nothing to do for so long.
const PATIENCE: Duration = Duration::from_secs(10);

fn lock(shared: &QuotaWatch) -> MutexGuard<'_, WatchList> {
    // Nothing in there is ever half done.
    shared.watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the growth of the directories on the host's disk that a sandbox may write to, measured from before it begins.
/// `None` without a quota, or without such directories.
pub(crate) fn growth<'p>(
    places: impl IntoIterator<Item = &'p HostPath>,
    most_bytes: Option<u64>,
) -> Result<Option<TreeGrowth>, DirectoryError> {
    let trees: Vec<_> = places.into_iter().map(Directory::open_meant_place).collect::<Result<_, _>>()?;
    match wall!(DiskLimit: most_bytes, else None) {
        Some(most) if !trees.is_empty() => TreeGrowth::watch(trees, most).map(Some),
        _ => Ok(None),
    }
}

// === impl DiskQuotas ===

impl DiskQuotas {
    /// Looks after a sandbox from now on, until it has ended.
    pub(crate) fn take(&self, growth: TreeGrowth, sandbox: impl QuotaTarget + 'static) -> QuotaOutcome {
        let fate = QuotaOutcome::default();
        let sandbox = Box::new(sandbox);
        put(&self.shared, WatchedSandbox { growth, sandbox, has_outgrown: Arc::clone(&fate.0) });
        fate
    }
}

fn put(shared: &Arc<QuotaWatch>, ward: WatchedSandbox) {
    let mut watched = lock(shared);
    watched.list.push(ward);
    if !watched.has_thread {
        let theirs = Arc::clone(shared);
        watched.has_thread = named("belljar-quotas").spawn(move || look_after(&theirs)).is_ok();
    }
    if !watched.has_thread {
        // The watch has stopped: treat it as a sandbox that has exceeded its quota.
        watched.list.clear();
    }
    drop(watched);
    shared.news.notify_one();
}

fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

fn look_after(shared: &Arc<QuotaWatch>) {
    let mut watched = lock(shared);
    loop {
        watched.list.retain(|ward| !ward.sandbox.has_ended());
        let now = Instant::now();
        let due: Vec<_> = watched.list.extract_if(.., |ward| ward.growth.next_look() <= now).collect();
        // While it is looked, others may come.
        drop(watched);
        due.into_iter().for_each(|ward| look_at(shared, ward));
        watched = lock(shared);
        let next = watched.list.iter().map(|ward| ward.growth.next_look()).min();
        let pause = next.map_or(PATIENCE, |next| next.saturating_duration_since(Instant::now()));
        let is_idle = watched.list.is_empty();
        let (guard, waited) =
            shared.news.wait_timeout(watched, pause).unwrap_or_else(PoisonError::into_inner);
        watched = guard;
        if is_idle && waited.timed_out() && watched.list.is_empty() {
            watched.has_thread = false;
            return;
        }
    }
}

/// Measures one sandbox. One with so many files that it takes long keeps no other waiting.
fn look_at(shared: &Arc<QuotaWatch>, mut ward: WatchedSandbox) {
    if !ward.growth.takes_long() {
        ward.look();
        return put(shared, ward);
    }
    let theirs = Arc::clone(shared);
    // Without a thread it is dropped.
    let _ = named("belljar-measure").spawn(move || {
        ward.look();
        put(&theirs, ward);
    });
}

// === impl InitHandle ===

impl QuotaTarget for InitHandle {
    fn process(&self) -> Option<&InitHandle> {
        Some(self)
    }

    fn has_ended(&self) -> bool {
        InitHandle::has_ended(self)
    }

    fn kill(&self) {
        InitHandle::kill(self);
    }
}

// === impl WatchedSandbox ===

impl WatchedSandbox {
    fn look(&mut self) {
        if self.growth.has_outgrown(self.sandbox.process()) {
            self.end();
        }
    }

    fn end(&self) {
        // Before the kill: a caller that sees the end must find the reason.
        self.has_outgrown.store(true, Ordering::Release);
        self.sandbox.kill();
    }
}

impl Drop for WatchedSandbox {
    /// Ends the sandbox: it is not watched any more.
    fn drop(&mut self) {
        if !self.sandbox.has_ended() {
            self.end();
        }
    }
}

// === impl QuotaOutcome ===

impl QuotaOutcome {
    pub(crate) fn has_outgrown(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
