//! Warm pool of empty sandboxes. Each is used once, and looks like one that was made at the moment when it is taken.
//!
//! A thread makes the next ones while there are fewer than there should be. It begins with the first request, whose limits
//! are those of the following spares.

use super::backend::SandboxBuilder;
use super::{HostUser, RunningSandbox};
use crate::limits::Limits;
use crate::provision::Provision;
use crate::spec::SandboxSpec;
use crate::state::StateDirectory;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A sandbox that is ready.
#[derive(Debug)]
pub(super) struct WarmSandbox {
    pub(super) spec: SandboxSpec,
    pub(super) running: RunningSandbox,
}

/// Sandboxes that are ready.
#[derive(Debug)]
pub(super) struct WarmPool {
    shop: Arc<SandboxBuilder>,
    shelf: Arc<SharedPool>,
    most: usize,
    maker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct SharedPool {
    stock: Mutex<PoolState>,
    /// Signalled when a spare was taken, or when the pool closes.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PoolState {
    ready: Vec<(Instant, WarmSandbox)>,
    /// Limits of the ready spares, and of the next.
    limits: Option<Limits>,
    /// Time at which one was last taken.
    taken_at: Option<Instant>,
    is_closed: bool,
}

/// Maximum age of a spare: an older one may show files that the host has no more, such as a library that was replaced.
const LONGEST_KEPT: Duration = Duration::from_secs(60);

/// Delay after one was taken until the next is made: about the run time of a short program.
const AFTER_TAKING: Duration = Duration::from_millis(3);

/// Delay after a failure to make one.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in there is ever half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl WarmPool ===

impl WarmPool {
    pub(super) fn keep(shop: Arc<SandboxBuilder>, most: usize) -> Self {
        Self { shop, shelf: Arc::default(), most, maker: Mutex::default() }
    }

    /// Takes a ready sandbox with those limits, if there is one.
    pub(super) fn take(&self, limits: &Limits) -> Option<WarmSandbox> {
        if self.most == 0 {
            return None;
        }
        self.begin();
        let mut stock = lock(&self.shelf.stock);
        stock.taken_at = Some(Instant::now());
        let mut too_old = Vec::new();
        if stock.limits != Some(*limits) {
            stock.limits = Some(*limits);
            too_old.append(&mut stock.ready);
        }
        let spare = loop {
            match stock.ready.pop() {
                Some((made_at, spare)) if made_at.elapsed() < LONGEST_KEPT => break Some(spare),
                Some(old) => too_old.push(old),
                None => break None,
            }
        };
        drop(stock);
        self.shelf.changed.notify_one();
        // Ending takes time, for which no caller should wait with the pool locked.
        drop(too_old);
        spare
    }

    fn begin(&self) {
        let mut maker = lock(&self.maker);
        if maker.is_none() {
            let (shop, shelf, most) = (Arc::clone(&self.shop), Arc::clone(&self.shelf), self.most);
            let named = std::thread::Builder::new().name("belljar-spares".to_owned());
            // Without the thread none are ready, and each is made on request.
            *maker = named.spawn(move || make(&shop, &shelf, most)).ok();
        }
    }
}

impl Drop for WarmPool {
    fn drop(&mut self) {
        lock(&self.shelf.stock).is_closed = true;
        self.shelf.changed.notify_one();
        if let Some(maker) = lock(&self.maker).take() {
            let _ = maker.join();
        }
    }
}

fn make(shop: &SandboxBuilder, shelf: &SharedPool, most: usize) {
    let mut stock = lock(&shelf.stock);
    while !stock.is_closed {
        let Some(limits) = stock.limits.filter(|_| stock.ready.len() < most) else {
            stock = shelf.changed.wait(stock).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        // The processor is left to the caller that has just got one, while there are others.
        let rest = stock.taken_at.and_then(|at| AFTER_TAKING.checked_sub(at.elapsed()));
        if let Some(rest) = rest.filter(|_| !stock.ready.is_empty()) {
            stock = shelf.changed.wait_timeout(stock, rest).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        drop(stock);
        let provision = Provision { limits, ..Provision::default() };
        let spec =
            SandboxSpec { provision, ..SandboxSpec::new(StateDirectory::new_id(), HostUser::choose()) };
        let made = shop.build(&spec);
        stock = lock(&shelf.stock);
        match made {
            Ok(running) if stock.limits == Some(limits) => {
                stock.ready.push((Instant::now(), WarmSandbox { spec, running }));
            }
            Ok(unwanted) => {
                drop(stock);
                drop(unwanted);
                stock = lock(&shelf.stock);
            }
            Err(_) => {
                let waited = shelf.changed.wait_timeout(stock, AFTER_FAILURE);
                stock = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
    // Spares that were never taken end with the pool.
    let left = std::mem::take(&mut stock.ready);
    drop(stock);
    drop(left);
}
