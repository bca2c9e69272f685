//! A sandbox in the hands of one call.

use super::kept::Kept;
use super::table::Table;
use crate::backend::{BackendError, Execution, Sandbox, Stats, TerminalSize};
use crate::correlation::CorrelationId;
use crate::limits::Limit;
use crate::spec::Program;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::Ending;
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use rustix::fd::{BorrowedFd, OwnedFd};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Instant;

/// A sandbox for one call. Everything in it says [`BackendError::Gone`] once the sandbox was destroyed, whoever did that.
#[derive(Debug)]
pub struct Lease {
    table: Arc<Table>,
    tenure: Tenure,
    number: u64,
    id: RunId,
    isolation: Isolation,
    degraded: bool,
}

/// For whom a sandbox is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenure {
    /// For this call: it is destroyed when the lease is dropped.
    Call,
    /// For an owner, whose later calls get the same one.
    Owner(CorrelationId),
}

/// A sandbox in use: it isn't idle as long as this lives.
#[derive(Debug)]
pub(super) struct Use {
    table: Arc<Table>,
    tenure: Tenure,
    number: u64,
}

/// A program, and its sandbox in use as long as it is held.
#[derive(Debug)]
struct LeasedExecution {
    execution: Box<dyn Execution>,
    _in_use: Use,
}

// === impl Lease ===

impl Lease {
    pub(super) fn new(
        table: &Arc<Table>,
        tenure: Tenure,
        number: u64,
        kept: &Kept,
    ) -> Result<Self, BackendError> {
        let isolation = kept.sandbox()?.isolation().clone();
        let (table, id) = (Arc::clone(table), kept.id().clone());
        Ok(Self { table, tenure, number, id, isolation, degraded: false })
    }

    pub(super) fn degraded(mut self) -> Self {
        self.degraded = true;
        self
    }

    /// The sandbox's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Every layer, in force or not.
    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// For whom the sandbox is.
    pub fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// Whether the strategy would have kept it, if only an owner had been told.
    pub fn is_degraded(&self) -> bool {
        self.degraded
    }

    /// Starts a program. The sandbox is in use until what comes back is dropped.
    ///
    /// # Errors
    /// Those of [`Sandbox::exec`].
    pub fn exec(&self, program: &Program, stdio: Stdio) -> Result<Box<dyn Execution>, BackendError> {
        let (execution, in_use) = self.with(|sandbox| sandbox.exec(program, stdio))?;
        Ok(Box::new(LeasedExecution { execution, _in_use: in_use }))
    }

    /// Unpacks a tar archive below a directory of the sandbox.
    ///
    /// # Errors
    /// Those of [`Sandbox::copy_in`].
    pub fn copy_in(&self, inside: &str, archive: &mut dyn Read) -> Result<(), BackendError> {
        self.with(|sandbox| sandbox.copy_in(inside, archive)).map(|((), _)| ())
    }

    /// Packs what is at a path of the sandbox into a tar archive.
    ///
    /// # Errors
    /// Those of [`Sandbox::copy_out`].
    pub fn copy_out(&self, inside: &str, archive: &mut dyn Write) -> Result<(), BackendError> {
        self.with(|sandbox| sandbox.copy_out(inside, archive)).map(|((), _)| ())
    }

    /// What runs in it and what that uses.
    ///
    /// # Errors
    /// Those of [`Sandbox::stats`].
    pub fn stats(&self) -> Result<Stats, BackendError> {
        self.with(|sandbox| sandbox.stats()).map(|(stats, _)| stats)
    }

    /// The limit that has ended it, if one has and it is still there to be asked.
    pub fn ended_by(&self) -> Option<Limit> {
        self.with(|sandbox| Ok(sandbox.ended_by())).ok().and_then(|(limit, _)| limit)
    }

    /// Has the sandbox destroyed, whoever uses it; the owner's next call gets another one. For one of which nobody can say any
    /// more what runs in it. It takes time.
    pub fn discard(self, why: &str) {
        self.table.take_gone(&self.tenure, self.number, why);
    }

    fn with<T>(
        &self,
        act: impl FnOnce(&dyn Sandbox) -> Result<T, BackendError>,
    ) -> Result<(T, Use), BackendError> {
        let kept = self.table.begin_use(&self.tenure, self.number).ok_or(BackendError::Gone)?;
        let in_use = Use { table: Arc::clone(&self.table), tenure: self.tenure.clone(), number: self.number };
        let done = kept.sandbox().and_then(act);
        if matches!(done, Err(BackendError::Gone)) {
            self.table.take_gone(&self.tenure, self.number, "it was found gone in use");
        }
        done.map(|value| (value, in_use))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.tenure == Tenure::Call {
            self.table.end_call(self.number);
        }
    }
}

// === impl Use ===

impl Drop for Use {
    fn drop(&mut self) {
        self.table.end_use(&self.tenure, self.number);
    }
}

// === impl LeasedExecution ===

impl Execution for LeasedExecution {
    fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.execution.take_terminal()
    }

    fn resize(&self, size: TerminalSize) -> Result<(), BackendError> {
        self.execution.resize(size)
    }

    fn signal(&self, signal: i32) -> Result<(), BackendError> {
        self.execution.signal(signal)
    }

    fn kill(&self) -> Result<(), BackendError> {
        self.execution.kill()
    }

    fn ending(&self) -> BorrowedFd<'_> {
        self.execution.ending()
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<Ending>, BackendError> {
        self.execution.wait_until(deadline)
    }
}
