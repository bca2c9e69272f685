//! The sandboxes of a session: one for each of its compartments.
//!
//! ```text
//!            place                  its command is over, idle, ended by itself
//!   nothing ───────► in use, or kept ────────────────────────────────────────► destroyed
//!                                              the session is over
//! ```
//! The one of a session that has no more is made before the session is, and the session is over with it. Of several, each is
//! made when something is first run in it, and again when it has ended by itself: what they all work on stays.

use super::HatchServer;
use crate::backend::{Backend, BackendError, Execution, Sandbox, SandboxRequest, Stats};
use crate::backends::chosen::{BackendChoice, BackendSite};
use crate::config::{LifecycleConfig, Strategy};
use crate::limits::{Bytes, Limit};
use crate::session::{Refusal, Session};
use crate::spec::Program;
use crate::workspace::growth::WorkspaceGrowth;
use belljar_confine::launcher::Launcher;
use belljar_confine::plan::Stdio;
use belljar_contract::id::RunId;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// Request for one of a session's sandboxes.
#[derive(Debug)]
pub struct SandboxGroupRequest {
    /// Backend that makes it.
    pub backend: BackendChoice,
    /// Request for the sandbox. If there are several, all work on the session's workspace.
    pub wanted: SandboxRequest,
    /// True if the session's workspace is read-only in it.
    pub is_seen: bool,
    /// Time that it is kept between commands. The only sandbox of a session is kept as long as the session lives.
    pub lifecycle: LifecycleConfig,
}

/// All sandboxes of a session.
pub(super) struct Sandboxes {
    makers: Option<SandboxFactory>,
    slots: Vec<GroupSlot>,
    /// Held for reading by a thread that destroys a sandbox, along with others, from before the sandbox leaves the list.
    ending: RwLock<()>,
    is_over: AtomicBool,
}

/// State that is needed to make more sandboxes.
pub(super) struct SandboxFactory {
    pub(super) site: BackendSite,
    pub(super) launcher: Arc<Launcher>,
    pub(super) serve: HatchServer,
    /// Growth of their workspace since then.
    pub(super) grown: Option<Arc<WorkspaceGrowth>>,
    /// Session that they belong to.
    pub(super) session: Session,
}

/// A compartment, and its live sandboxes.
struct GroupSlot {
    compartment: Option<SandboxGroupRequest>,
    backend: OnceLock<Box<dyn Backend>>,
    made: RwLock<Vec<LiveSandbox>>,
}

/// A sandbox that stands.
pub(super) struct LiveSandbox {
    // Before what is served to it.
    pub(super) sandbox: Box<dyn Sandbox>,
    _served: Option<Box<dyn Send + Sync>>,
    in_use: Mutex<SandboxUsage>,
    /// True if it is for one command, and is destroyed with it.
    is_for_one: bool,
}

/// Usage of a sandbox.
#[derive(Debug, Clone, Copy)]
struct SandboxUsage {
    commands: u64,
    since: Instant,
}

/// A sandbox reserved for a command, from before that begins until it is over. A sandbox made for this command alone is
/// destroyed with it.
pub(super) struct SandboxReservation<'s> {
    sandboxes: &'s Sandboxes,
    slot: usize,
    id: RunId,
}

/// All live sandboxes, held: none is destroyed meanwhile.
pub(super) struct LiveSandboxes<'s> {
    made: Vec<RwLockReadGuard<'s, Vec<LiveSandbox>>>,
    /// True if a sandbox that has ended is replaced by a new one when it is next needed.
    are_made_again: bool,
    /// Held so that none is about to be destroyed.
    _settled: Option<RwLockWriteGuard<'s, ()>>,
}

// === impl Sandboxes ===

impl Sandboxes {
    /// Makes the set with the sandbox of a session that ends with it.
    pub(super) fn made(sandbox: Box<dyn Sandbox>, served: Option<Box<dyn Send + Sync>>) -> Self {
        let made = RwLock::new(vec![LiveSandbox::new(sandbox, served, false)]);
        let slot = GroupSlot { compartment: None, backend: OnceLock::new(), made };
        Self { makers: None, slots: vec![slot], ending: RwLock::default(), is_over: AtomicBool::new(false) }
    }

    /// Makes the set of sandboxes that are made when something is first run in them, and again when they have ended.
    pub(super) fn to_make(makers: SandboxFactory, compartments: Vec<SandboxGroupRequest>) -> Self {
        let slot = |compartment| GroupSlot {
            compartment: Some(compartment),
            backend: OnceLock::new(),
            made: RwLock::default(),
        };
        let slots = compartments.into_iter().map(slot).collect();
        Self { makers: Some(makers), slots, ending: RwLock::default(), is_over: AtomicBool::new(false) }
    }

    /// Returns true if a sandbox that has ended is made again.
    fn are_made_again(&self) -> bool {
        self.makers.is_some()
    }

    /// Returns the sandboxes that can be asked at once, without waiting. One that is still being made is left out.
    pub(super) fn at_hand(&self) -> LiveSandboxes<'_> {
        let made = self.slots.iter().filter_map(|slot| slot.made.try_read().ok()).collect();
        LiveSandboxes { made, are_made_again: self.are_made_again(), _settled: None }
    }

    /// Returns all live sandboxes in which something may still run, with none about to be destroyed.
    pub(super) fn settled(&self) -> LiveSandboxes<'_> {
        let settled = Some(write(&self.ending));
        let made = self.slots.iter().map(|slot| read(&slot.made)).collect();
        LiveSandboxes { made, are_made_again: self.are_made_again(), _settled: settled }
    }

    /// Returns true if a sandbox whose session ends with it has ended by itself.
    pub(super) fn have_ended(&self) -> bool {
        let has_ended = |slot: &GroupSlot| {
            slot.made.try_read().is_ok_and(|made| made.iter().any(|made| made.sandbox.has_ended()))
        };
        !self.are_made_again() && self.slots.iter().any(has_ended)
    }

    /// Returns true if no further sandboxes will be made.
    pub(super) fn are_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Returns a sandbox to run something in; makes it if there is none.
    pub(super) fn place(&self, slot: usize) -> Result<SandboxReservation<'_>, BackendError> {
        let found = self.slots.get(slot).ok_or(BackendError::Gone)?;
        let place = |made: &LiveSandbox| {
            lock(&made.in_use).commands += 1;
            SandboxReservation { sandboxes: self, slot, id: made.id() }
        };
        if found.is_for_one() {
            let new = self.make(found, true)?;
            return self.keep(&mut write(&found.made), new).map(place);
        }
        if let Some(made) = read(&found.made).first() {
            return Ok(place(made));
        }
        // Held while it is made: those who come at once work in the same.
        let mut made = write(&found.made);
        if let Some(made) = made.first() {
            return Ok(place(made));
        }
        let new = self.make(found, false)?;
        self.keep(&mut made, new).map(place)
    }

    fn keep<'m>(
        &self,
        made: &'m mut Vec<LiveSandbox>,
        new: LiveSandbox,
    ) -> Result<&'m LiveSandbox, BackendError> {
        // The thread that ends the session sets this before it looks at the sandboxes.
        if self.are_over() {
            return Err(BackendError::Gone);
        }
        Ok(made.push_mut(new))
    }

    fn make(&self, slot: &GroupSlot, is_for_one: bool) -> Result<LiveSandbox, BackendError> {
        let (Some(makers), Some(compartment)) = (&self.makers, &slot.compartment) else {
            return Err(BackendError::Gone);
        };
        if self.are_over() {
            return Err(BackendError::Gone);
        }
        let backend = match slot.backend.get() {
            Some(backend) => backend,
            None => {
                let made = compartment.backend.make(Arc::clone(&makers.launcher), &makers.site)?;
                slot.backend.get_or_init(|| made)
            }
        };
        let mut wanted = compartment.wanted.clone();
        // The growth of each counts from its start. Together they may not exceed the quota of one.
        if let (Some(most), Some(grown)) = (wanted.provision.limits.disk_bytes, &makers.grown) {
            let left = most.saturating_sub(grown.bytes());
            if left == 0 {
                return Err(BackendError::Create(Refusal::Full { most: Bytes(most).to_string() }.into()));
            }
            wanted.provision.limits.disk_bytes = Some(left);
        }
        let mut sandbox = backend.create(wanted)?;
        let sockets = sandbox.take_hatches();
        let served = (!sockets.is_empty()).then(|| (makers.serve)(&makers.session, sockets)).transpose();
        let served = served.map_err(BackendError::Create)?;
        Ok(LiveSandbox::new(sandbox, served, is_for_one))
    }

    /// Returns true if some sandboxes were unused for as long as they are kept. A thread that uses them holds the lock, and
    /// need not be waited for.
    pub(super) fn have_idle(&self) -> bool {
        let has_idle = |slot: &GroupSlot| {
            slot.made.try_read().is_ok_and(|made| made.iter().any(|made| made.is_idle(slot.kept_for())))
        };
        self.are_made_again() && self.slots.iter().any(has_idle)
    }

    /// Destroys those.
    pub(super) fn end_idle(&self) {
        for (number, slot) in self.slots.iter().enumerate() {
            // A sandbox with background processes is in use, too.
            let is_still = |made: &LiveSandbox| match made.stats() {
                Some(stats) => stats.is_ok_and(|stats| stats.processes == 0),
                None => true,
            };
            self.destroy(number, |made| {
                if !made.is_idle(slot.kept_for()) {
                    return false;
                }
                // One that stays is looked at again only after that time.
                made.touch();
                is_still(made)
            });
        }
    }

    /// Destroys all, and makes none any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        // First of all: a caller may hold one and wait for an answer of its PID 1, which may never give one.
        for slot in self.slots.iter().filter_map(|slot| slot.made.try_read().ok()) {
            slot.iter().for_each(|made| made.sandbox.kill());
        }
        for slot in 0..self.slots.len() {
            self.destroy(slot, |_| true);
        }
    }

    fn destroy(&self, slot: usize, which: impl Fn(&LiveSandbox) -> bool) {
        let Some(slot) = self.slots.get(slot) else { return };
        let _ending = read(&self.ending);
        let over: Vec<_> = write(&slot.made).extract_if(.., |made| which(made)).collect();
        for LiveSandbox { sandbox, _served, .. } in over {
            // A sandbox that can't be cleared away now is cleared away as a leftover.
            let _ = sandbox.destroy();
        }
    }
}

impl fmt::Debug for Sandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandboxes").field("slots", &self.slots.len()).finish_non_exhaustive()
    }
}

// === impl GroupSlot ===

impl GroupSlot {
    /// Time without use after which it is destroyed; `None` if it is kept for ever.
    fn kept_for(&self) -> Option<Duration> {
        self.compartment.as_ref()?.lifecycle.max_idle
    }

    fn is_for_one(&self) -> bool {
        let strategy = self.compartment.as_ref().map(|compartment| compartment.lifecycle.strategy);
        strategy == Some(Strategy::PerCall)
    }
}

// === impl LiveSandbox ===

impl LiveSandbox {
    fn new(sandbox: Box<dyn Sandbox>, served: Option<Box<dyn Send + Sync>>, is_for_one: bool) -> Self {
        let in_use = Mutex::new(SandboxUsage { commands: 0, since: Instant::now() });
        Self { sandbox, _served: served, in_use, is_for_one }
    }

    fn id(&self) -> RunId {
        self.sandbox.id().clone()
    }

    /// Returns its resource usage; `None` if it has ended by itself.
    fn stats(&self) -> Option<Result<Stats, BackendError>> {
        match self.sandbox.stats() {
            Err(BackendError::Gone) => None,
            Err(_) if self.sandbox.ended_by().is_some() => None,
            stats => Some(stats),
        }
    }

    fn is_idle(&self, kept_for: Option<Duration>) -> bool {
        let SandboxUsage { commands, since } = *lock(&self.in_use);
        kept_for.is_some_and(|kept_for| commands == 0 && since.elapsed() >= kept_for)
    }

    fn touch(&self) {
        lock(&self.in_use).since = Instant::now();
    }
}

// === impl SandboxReservation ===

impl SandboxReservation<'_> {
    /// Starts a program there.
    pub(super) fn exec(&self, program: &Program, stdio: Stdio) -> Result<Box<dyn Execution>, BackendError> {
        self.look(|made| made.sandbox.exec(program, stdio)).ok_or(BackendError::Gone)?
    }

    /// Returns the limit that has ended it, if one has.
    pub(super) fn ended_by(&self) -> Option<Limit> {
        self.look(|made| made.sandbox.ended_by())?
    }

    /// Returns true if it has ended by itself and another can replace it, and destroys it then.
    pub(super) fn is_to_be_replaced(&self) -> bool {
        let has_ended = |made: &LiveSandbox| made.stats().is_none();
        let is_gone = self.sandboxes.are_made_again() && self.look(has_ended) != Some(false);
        if is_gone {
            self.destroy();
        }
        is_gone
    }

    /// Looks at it, if it stands. Others are made and destroyed meanwhile.
    fn look<T>(&self, at: impl FnOnce(&LiveSandbox) -> T) -> Option<T> {
        let made = read(&self.sandboxes.slots.get(self.slot)?.made);
        made.iter().find(|made| *made.sandbox.id() == self.id).map(at)
    }

    fn destroy(&self) {
        self.sandboxes.destroy(self.slot, |made| made.id() == self.id);
    }
}

impl Drop for SandboxReservation<'_> {
    fn drop(&mut self) {
        let is_for_one = self.look(|made| {
            let mut in_use = lock(&made.in_use);
            *in_use = SandboxUsage { commands: in_use.commands.saturating_sub(1), since: Instant::now() };
            made.is_for_one
        });
        if is_for_one == Some(true) {
            self.destroy();
        }
    }
}

// === impl LiveSandboxes ===

impl LiveSandboxes<'_> {
    /// Returns each sandbox.
    pub(super) fn iter(&self) -> impl Iterator<Item = &dyn Sandbox> {
        self.made.iter().flat_map(|made| made.iter()).map(|made| &*made.sandbox)
    }

    /// Returns each sandbox that has not ended by itself, with its resource usage. A sandbox that isn't made again is
    /// returned in any case.
    pub(super) fn each_with_stats(
        &self,
    ) -> impl Iterator<Item = (&dyn Sandbox, Result<Stats, BackendError>)> {
        self.made.iter().flat_map(|made| made.iter()).filter_map(|made| match self.are_made_again {
            true => Some((&*made.sandbox, made.stats()?)),
            false => Some((&*made.sandbox, made.sandbox.stats())),
        })
    }

    /// Returns the total of their resource usage.
    pub(super) fn stats(&self) -> Result<Stats, BackendError> {
        self.each_with_stats().try_fold(Stats::default(), |sum, (_, one)| {
            let one = one?;
            Ok(Stats {
                processes: sum.processes + one.processes,
                memory_bytes: sum.memory_bytes + one.memory_bytes,
                cpu: sum.cpu + one.cpu,
            })
        })
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// A panic in one thread leaves nothing half done here that another could trip over.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
