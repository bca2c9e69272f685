//! Ends sandboxes that have written too much to disk. One thread looks after all of them, and there is none while there
//! is nothing to look after.

use crate::directory::{Directory, DirectoryError};
use crate::workspace::growth::Growth;
use belljar_confine::plan::HostPath;
use belljar_confine::sealed::Handle;
use belljar_confine::wall;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Looks after what sandboxes write.
#[derive(Debug, Default)]
pub(crate) struct Warden {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    watched: Mutex<Watched>,
    /// There is something new to look after.
    news: Condvar,
}

#[derive(Debug, Default)]
struct Watched {
    list: Vec<Ward>,
    has_thread: bool,
}

/// One sandbox and what it writes to.
#[derive(Debug)]
struct Ward {
    growth: Growth,
    sandbox: Handle,
    has_outgrown: Arc<AtomicBool>,
}

/// What became of one sandbox.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fate(Arc<AtomicBool>);

/// The thread ends when there was nothing to do for so long.
const PATIENCE: Duration = Duration::from_secs(10);

fn lock(shared: &Shared) -> MutexGuard<'_, Watched> {
    // Nothing in there is ever half done.
    shared.watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a sandbox may write to on the host's disk, as it is before the sandbox begins; nothing without a limit, or without
/// such places.
pub(crate) fn growth<'p>(
    places: impl IntoIterator<Item = &'p HostPath>,
    most_bytes: Option<u64>,
) -> Result<Option<Growth>, DirectoryError> {
    let trees: Vec<_> = places.into_iter().map(Directory::open_meant_place).collect::<Result<_, _>>()?;
    match wall!(DiskLimit: most_bytes, else None) {
        Some(most) if !trees.is_empty() => Growth::watch(trees, most).map(Some),
        _ => Ok(None),
    }
}

// === impl Warden ===

impl Warden {
    /// Looks after a sandbox from now on, until it has ended.
    pub(crate) fn take(&self, growth: Growth, sandbox: Handle) -> Fate {
        let fate = Fate::default();
        let mut watched = lock(&self.shared);
        watched.list.push(Ward { growth, sandbox, has_outgrown: Arc::clone(&fate.0) });
        if !watched.has_thread {
            let shared = Arc::clone(&self.shared);
            let named = std::thread::Builder::new().name("belljar-warden".to_owned());
            watched.has_thread = named.spawn(move || look_after(&shared)).is_ok();
        }
        if !watched.has_thread {
            // Nobody would look: as if it had outgrown its limit.
            watched.list.drain(..).for_each(|ward| ward.end());
        }
        drop(watched);
        self.shared.news.notify_one();
        fate
    }
}

fn look_after(shared: &Shared) {
    let mut watched = lock(shared);
    loop {
        let now = Instant::now();
        watched.list.retain(|ward| !ward.sandbox.has_ended());
        for ward in watched.list.iter_mut().filter(|ward| ward.growth.next_look() <= now) {
            if ward.growth.has_outgrown(&ward.sandbox) {
                ward.end();
            }
        }
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

// === impl Ward ===

impl Ward {
    fn end(&self) {
        // Before the kill: whoever sees the end knows why.
        self.has_outgrown.store(true, Ordering::Release);
        self.sandbox.kill();
    }
}

// === impl Fate ===

impl Fate {
    pub(crate) fn has_outgrown(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
