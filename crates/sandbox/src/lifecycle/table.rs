//! The sandboxes of one strategy: those kept for owners, those of single calls, and those being made.
//!
//! Everything under the lock is quick. What is taken out of the table is destroyed when the lock has been let go of.

use super::Create;
use super::kept::{Health, Kept};
use super::lease::{Lease, Tenure};
use super::owned::{Owned, Rules};
use crate::backend::BackendError;
use crate::clock::{Alarm, Clock};
use crate::correlation::CorrelationId;
use crate::event::{Event, EventSink, LifecycleChange, LifecycleEvent};
use belljar_contract::id::RunId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The sandboxes of one strategy.
#[derive(Debug)]
pub(super) struct Table {
    rules: Rules,
    clock: Arc<dyn Clock>,
    events: Arc<dyn EventSink>,
    this: Weak<Self>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    owned: BTreeMap<CorrelationId, Owned>,
    calls: BTreeMap<u64, Arc<Kept>>,
    making: BTreeMap<CorrelationId, Making>,
    /// Counts whatever happens, so that it can be told what came first.
    last_number: u64,
    swept_at: u64,
    /// When the clock will ring next.
    armed_for: Option<Instant>,
}

/// Sandboxes that are being made for one owner.
#[derive(Debug, Default)]
struct Making {
    count: usize,
    released_at: u64,
}

/// Takes back that something is being made, also when making it panics.
struct Announced<'a> {
    table: &'a Table,
    owner: &'a CorrelationId,
    number: u64,
    is_over: bool,
}

// === impl Table ===

impl Table {
    pub(super) fn new(rules: Rules, clock: Arc<dyn Clock>, events: Arc<dyn EventSink>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self { rules, clock, events, this: this.clone(), state: Mutex::default() })
    }

    /// The owner's sandbox, or a new one.
    pub(super) fn acquire(
        this: &Arc<Self>,
        owner: &CorrelationId,
        create: Create<'_>,
    ) -> Result<Lease, BackendError> {
        this.replace_if_gone(owner);
        let announced = match this.take_kept(owner) {
            Ok((number, kept)) => {
                return Lease::new(this, Tenure::Owner(owner.clone()), number, &kept);
            }
            Err(announced) => announced,
        };
        let made = Arc::new(Kept::new(create()?, &this.events));
        let (tenure, number, kept) = this.keep(announced, made)?;
        Lease::new(this, tenure, number, &kept)
    }

    /// A sandbox for one call.
    pub(super) fn acquire_for_call(this: &Arc<Self>, create: Create<'_>) -> Result<Lease, BackendError> {
        let started = this.locked().count();
        let made = Arc::new(Kept::new(create()?, &this.events));
        let mut state = this.locked();
        if state.swept_at > started {
            drop(state);
            return Err(BackendError::Gone);
        }
        let number = state.count();
        state.calls.insert(number, Arc::clone(&made));
        drop(state);
        Lease::new(this, Tenure::Call, number, &made)
    }

    /// The same for a call whose owner is not known; which is told.
    pub(super) fn acquire_degraded(this: &Arc<Self>, create: Create<'_>) -> Result<Lease, BackendError> {
        let lease = Self::acquire_for_call(this, create)?.degraded();
        this.tell(LifecycleChange::Degraded, Some(lease.id()), None, Some("the call names no owner"));
        Ok(lease)
    }

    /// The owner has stopped.
    pub(super) fn release(&self, owner: &CorrelationId) {
        let now = self.clock.now();
        let mut state = self.locked();
        let number = state.count();
        if let Some(making) = state.making.get_mut(owner) {
            making.released_at = number;
        }
        let ended = match self.rules.grace_period {
            None => state.owned.remove(owner),
            Some(grace) => {
                if let Some(owned) = state.owned.get_mut(owner) {
                    owned.grace_until = now.checked_add(grace);
                }
                None
            }
        };
        self.arm(&mut state);
        drop(state);
        drop(ended);
        if self.rules.grace_period == Some(Duration::ZERO) {
            self.take_due();
        }
    }

    /// Everything is over.
    pub(super) fn sweep(&self) {
        let mut state = self.locked();
        state.swept_at = state.count();
        let owned = std::mem::take(&mut state.owned);
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        drop((owned, calls));
    }

    pub(super) fn begin_use(&self, tenure: &Tenure, number: u64) -> Option<Arc<Kept>> {
        let mut state = self.locked();
        match tenure {
            Tenure::Call => state.calls.get(&number).cloned(),
            Tenure::Owner(owner) => {
                let owned = state.owned.get_mut(owner).filter(|owned| owned.number == number)?;
                owned.uses += 1;
                Some(Arc::clone(&owned.kept))
            }
        }
    }

    pub(super) fn end_use(&self, tenure: &Tenure, number: u64) {
        let Tenure::Owner(owner) = tenure else { return };
        let now = self.clock.now();
        let mut state = self.locked();
        if let Some(owned) = state.owned.get_mut(owner).filter(|owned| owned.number == number) {
            owned.uses = owned.uses.saturating_sub(1);
            owned.last_used_at = now;
        }
        self.arm(&mut state);
    }

    pub(super) fn end_call(&self, number: u64) {
        let ended = self.locked().calls.remove(&number);
        drop(ended);
    }

    /// Takes out a sandbox that is no longer there.
    pub(super) fn take_gone(&self, tenure: &Tenure, number: u64, why: &str) {
        let Tenure::Owner(owner) = tenure else { return };
        let mut state = self.locked();
        if state.owned.get(owner).is_none_or(|owned| owned.number != number) {
            return;
        }
        let gone = state.owned.remove(owner);
        drop(state);
        if let Some(owned) = gone {
            self.tell(LifecycleChange::Gone, Some(owned.kept.id()), Some(owner), Some(why));
        }
    }

    /// The kept sandbox, which is in grace no more; or the announcement of one that will be made.
    fn take_kept<'a>(&'a self, owner: &'a CorrelationId) -> Result<(u64, Arc<Kept>), Announced<'a>> {
        let now = self.clock.now();
        let mut state = self.locked();
        if let Some(owned) = state.owned.get_mut(owner) {
            let found = owned.resume(now);
            self.arm(&mut state);
            return Ok(found);
        }
        let number = state.count();
        state.making.entry(owner.clone()).or_default().count += 1;
        Err(Announced { table: self, owner, number, is_over: false })
    }

    /// Keeps what was made, unless that is not what it is for any more.
    fn keep(
        &self,
        mut announced: Announced<'_>,
        made: Arc<Kept>,
    ) -> Result<(Tenure, u64, Arc<Kept>), BackendError> {
        let now = self.clock.now();
        let (owner, started) = (announced.owner, announced.number);
        let mut state = self.locked();
        let is_released = announced.finish(&mut state) > started;
        if state.swept_at > started {
            drop(state);
            return Err(BackendError::Gone);
        }
        let tenure = Tenure::Owner(owner.clone());
        if let Some(owned) = state.owned.get_mut(owner) {
            let (number, first) = owned.resume(now);
            self.arm(&mut state);
            drop(state);
            self.tell(LifecycleChange::Surplus, Some(made.id()), Some(owner), None);
            return Ok((tenure, number, first));
        }
        let number = state.count();
        if is_released && self.rules.grace_period.is_none() {
            state.calls.insert(number, Arc::clone(&made));
            return Ok((Tenure::Call, number, made));
        }
        let grace = self.rules.grace_period.filter(|_| is_released);
        let grace_until = grace.and_then(|grace| now.checked_add(grace));
        state.owned.insert(owner.clone(), Owned::new(number, Arc::clone(&made), now, grace_until));
        self.arm(&mut state);
        Ok((tenure, number, made))
    }

    /// Looks whether the owner's sandbox is still there, if that was not seen lately.
    fn replace_if_gone(&self, owner: &CorrelationId) {
        let now = self.clock.now();
        let mut state = self.locked();
        let Some(owned) = state.owned.get_mut(owner) else { return };
        if !owned.is_check_due(now, self.rules.check_interval) {
            return;
        }
        owned.checked_at = now;
        let (number, kept) = (owned.number, Arc::clone(&owned.kept));
        drop(state);
        self.check(owner, number, &kept);
    }

    /// Asks a sandbox how it is, and takes it out if it is gone, or can't be asked for the second time.
    fn check(&self, owner: &CorrelationId, number: u64, kept: &Kept) {
        let health = kept.health();
        let was_in_doubt = {
            let mut state = self.locked();
            let Some(owned) = state.owned.get_mut(owner).filter(|owned| owned.number == number) else {
                return;
            };
            std::mem::replace(&mut owned.is_in_doubt, matches!(health, Health::Unknown(_)))
        };
        match health {
            Health::Well => {}
            Health::Unknown(why) if was_in_doubt => {
                self.take_gone(&Tenure::Owner(owner.clone()), number, &why);
            }
            Health::Unknown(_) => {}
            Health::Gone(why) => self.take_gone(&Tenure::Owner(owner.clone()), number, &why),
        }
    }

    /// Takes out what is over, and looks after what has not been looked after lately.
    fn take_due(&self) {
        let now = self.clock.now();
        let mut state = self.locked();
        state.armed_for = state.armed_for.filter(|at| *at > now);
        let over: Vec<_> = state.owned.extract_if(.., |_, owned| owned.is_over(now, &self.rules)).collect();
        let mut due = Vec::new();
        for (owner, owned) in &mut state.owned {
            if owned.is_check_due(now, self.rules.check_interval) {
                owned.checked_at = now;
                due.push((owner.clone(), owned.number, Arc::clone(&owned.kept)));
            }
        }
        self.arm(&mut state);
        drop(state);
        for (owner, owned) in over {
            if owned.grace_until.is_none_or(|until| until > now) {
                self.tell(LifecycleChange::Idle, Some(owned.kept.id()), Some(&owner), None);
            }
        }
        for (owner, number, kept) in due {
            self.check(&owner, number, &kept);
        }
    }

    /// Has the clock ring when something is due next, unless it rings before.
    fn arm(&self, state: &mut State) {
        let next = state.owned.values().filter_map(|owned| owned.due_at(&self.rules)).min();
        let Some(at) = next.filter(|at| state.armed_for.is_none_or(|armed| *at < armed)) else { return };
        state.armed_for = Some(at);
        let this: Weak<dyn Alarm> = self.this.clone();
        self.clock.wake(at, this);
    }

    fn tell(
        &self,
        what: LifecycleChange,
        sandbox: Option<&RunId>,
        owner: Option<&CorrelationId>,
        detail: Option<&str>,
    ) {
        let event = LifecycleEvent {
            what,
            sandbox: sandbox.cloned(),
            owner: owner.map(CorrelationId::to_string),
            detail: detail.map(str::to_owned),
        };
        // A sink that is full counts what it loses.
        let _ = self.events.offer(Event::Lifecycle(event));
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alarm for Table {
    fn ring(&self) {
        self.take_due();
    }
}

// === impl State ===

impl State {
    fn count(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

// === impl Announced ===

impl Announced<'_> {
    /// It has been made, or not: when the owner was released last meanwhile.
    fn finish(&mut self, state: &mut State) -> u64 {
        self.is_over = true;
        let Some(making) = state.making.get_mut(self.owner) else { return 0 };
        making.count -= 1;
        let released_at = making.released_at;
        if making.count == 0 {
            state.making.remove(self.owner);
        }
        released_at
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.finish(&mut self.table.locked());
        }
    }
}
