//! Sandboxes that are nothing but a record of what became of them.

use belljar_confine::plan::Stdio;
use belljar_confine::sealed::{Ending, Outcome};
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use belljar_sandbox::backend::{BackendError, Execution, Sandbox, Stats, TerminalSize};
use belljar_sandbox::clock::ManualClock;
use belljar_sandbox::config::{LifecycleConfig, Strategy};
use belljar_sandbox::correlation::{Correlation, CorrelationId};
use belljar_sandbox::event::{Event, EventQueue, LifecycleChange};
use belljar_sandbox::lifecycle::{Claim, Create, Lease, Lifecycle, configured};
use belljar_sandbox::limits::Limit;
use belljar_sandbox::spec::Program;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// What became of every sandbox, each by a number from one on.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) made: u128,
    pub(crate) destroyed: Vec<u128>,
    /// Dropped without being destroyed, which nothing may be.
    pub(crate) dropped: Vec<u128>,
    /// Ended by themselves.
    pub(crate) gone: BTreeSet<u128>,
    /// Can't be asked.
    pub(crate) unreachable: BTreeSet<u128>,
    pub(crate) destroying_fails: bool,
}

/// A lifecycle with a clock, a record and somebody who listens.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) lifecycle: Arc<dyn Lifecycle>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) events: Arc<EventQueue>,
    record: Arc<Mutex<Record>>,
}

#[derive(Debug)]
struct Double {
    number: u128,
    id: RunId,
    isolation: Isolation,
    record: Arc<Mutex<Record>>,
    is_destroyed: bool,
}

#[derive(Debug)]
struct DoubleExecution(OwnedFd);

// === impl Setting ===

impl Setting {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self::of(LifecycleConfig { strategy, ..LifecycleConfig::default() })
    }

    pub(crate) fn of(config: LifecycleConfig) -> Self {
        let clock = Arc::new(ManualClock::new());
        let events = Arc::new(EventQueue::with_room_for(10_000));
        let lifecycle = configured(&config, clock.clone(), events.clone());
        Self { lifecycle, clock, events, record: Arc::default() }
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap()
    }

    /// A sandbox that does as the record says.
    pub(crate) fn sandbox(&self) -> Result<Box<dyn Sandbox>, BackendError> {
        let mut record = self.record();
        record.made += 1;
        let number = record.made;
        drop(record);
        Ok(Box::new(Double {
            number,
            id: RunId::from_uuid(Uuid::from_u128(number)),
            isolation: Isolation { backend: "double".to_owned(), layers: Vec::new() },
            record: Arc::clone(&self.record),
            is_destroyed: false,
        }))
    }

    pub(crate) fn create(&self) -> Create<'_> {
        Box::new(|| self.sandbox())
    }

    pub(crate) fn acquire(&self, owner: &str) -> Lease {
        self.try_acquire(owner, self.create()).unwrap()
    }

    pub(crate) fn try_acquire(&self, owner: &str, create: Create<'_>) -> Result<Lease, BackendError> {
        let owner = CorrelationId::parse(owner).unwrap();
        let claim = Claim { owner: Some(&owner), correlation: &Correlation::default() };
        self.lifecycle.acquire(&claim, create)
    }

    pub(crate) fn release(&self, owner: &str) {
        let owner = CorrelationId::parse(owner).unwrap();
        self.lifecycle.release(&Claim { owner: Some(&owner), correlation: &Correlation::default() });
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub(crate) fn alive(&self) -> Vec<u128> {
        let record = self.record();
        (1..=record.made).filter(|number| !record.destroyed.contains(number)).collect()
    }

    /// What was told of sandboxes' lives since this was asked last.
    pub(crate) fn told(&self) -> Vec<LifecycleChange> {
        let of_lives = |event| match event {
            Event::Lifecycle(event) => Some(event.what),
            Event::Execution(_) => None,
        };
        self.events.take().into_iter().filter_map(of_lives).collect()
    }
}

/// The number of a lease's sandbox.
pub(crate) fn number(lease: &Lease) -> u128 {
    Uuid::parse_str(lease.id().as_str()).unwrap().as_u128()
}

/// Starts something in it.
pub(crate) fn exec(lease: &Lease) -> Result<Box<dyn Execution>, BackendError> {
    let program = Program { argv: vec!["true".into()], directory: "/workspace".to_owned() };
    lease.exec(&program, Stdio::Terminal)
}

// === impl Double ===

impl Double {
    fn reach(&self) -> Result<(), BackendError> {
        let record = self.record.lock().unwrap();
        match (record.gone.contains(&self.number), record.unreachable.contains(&self.number)) {
            (true, _) => Err(BackendError::Gone),
            (_, true) => Err(BackendError::Reach("no answer".into())),
            _ => Ok(()),
        }
    }
}

impl Sandbox for Double {
    fn id(&self) -> &RunId {
        &self.id
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn exec(&self, _: &Program, _: Stdio) -> Result<Box<dyn Execution>, BackendError> {
        self.reach()?;
        let nothing = std::fs::File::open("/dev/null").unwrap();
        Ok(Box::new(DoubleExecution(nothing.into())))
    }

    fn copy_in(&self, _: &str, _: &mut dyn Read) -> Result<(), BackendError> {
        self.reach()
    }

    fn copy_out(&self, _: &str, _: &mut dyn Write) -> Result<(), BackendError> {
        self.reach()
    }

    fn stats(&self) -> Result<Stats, BackendError> {
        self.reach().map(|()| Stats::default())
    }

    fn has_ended(&self) -> bool {
        self.reach().is_err()
    }

    fn ended_by(&self) -> Option<Limit> {
        None
    }

    fn pause(&self) -> Result<(), BackendError> {
        self.reach()
    }

    fn resume(&self) -> Result<(), BackendError> {
        self.reach()
    }

    fn destroy(mut self: Box<Self>) -> Result<(), BackendError> {
        self.is_destroyed = true;
        let mut record = self.record.lock().unwrap();
        record.destroyed.push(self.number);
        match record.destroying_fails {
            true => Err(BackendError::Clear("it is stuck".into())),
            false => Ok(()),
        }
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        if !self.is_destroyed {
            self.record.lock().unwrap().dropped.push(self.number);
        }
    }
}

// === impl DoubleExecution ===

impl Execution for DoubleExecution {
    fn take_terminal(&mut self) -> Option<OwnedFd> {
        None
    }

    fn resize(&self, _: TerminalSize) -> Result<(), BackendError> {
        Ok(())
    }

    fn signal(&self, _: i32) -> Result<(), BackendError> {
        Ok(())
    }

    fn kill(&self) -> Result<(), BackendError> {
        Ok(())
    }

    fn ending(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn wait_until(&mut self, _: Option<Instant>) -> Result<Option<Ending>, BackendError> {
        Ok(Some(Ending { outcome: Outcome::Exited(0), usage: Default::default() }))
    }
}
