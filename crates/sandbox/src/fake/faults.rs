//! Scripted faults and their order, and a record of the calls. A script gives the same course every time.

use crate::backend::BackendError;
use belljar_contract::id::RunId;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Something that a backend or a sandbox is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Check that sandboxes can be made.
    Health,
    /// Make a sandbox.
    Create,
    /// Start a program.
    Exec,
    /// Copy files in.
    CopyIn,
    /// Copy files out.
    CopyOut,
    /// Report the resource usage.
    Stats,
    /// Stop everything.
    Pause,
    /// Continue everything.
    Resume,
    /// End a sandbox.
    Destroy,
    /// Clear leftovers away.
    Reconcile,
}

/// Fault of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The call fails, with this message.
    Fails {
        /// Why.
        why: &'static str,
    },
    /// The program is started and killed at once, and the sandbox with it: its memory was used up. Of other calls than
    /// [`Operation::Exec`] it means that they find the sandbox so.
    OutOfMemory,
    /// The call is slow, and then succeeds.
    Slow {
        /// Delay.
        by: Duration,
    },
}

/// A call, as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Operation that was called.
    pub operation: Operation,
    /// Sandbox of the call; `None` for one to the backend.
    pub sandbox: Option<RunId>,
    /// Arguments of the call: those of a program, or a path inside.
    pub detail: String,
}

/// Scripted faults, and the calls so far. Copies share one script.
#[derive(Debug, Clone, Default)]
pub struct FaultScript(Arc<Mutex<ScriptState>>);

#[derive(Debug, Default)]
struct ScriptState {
    to_come: VecDeque<(Operation, Fault)>,
    calls: Vec<Call>,
}

// === impl FaultScript ===

impl FaultScript {
    /// Makes the next call of that kind, for which no fault is planned yet, fail in this way.
    pub fn next(&self, operation: Operation, fault: Fault) {
        self.course().to_come.push_back((operation, fault));
    }

    /// Returns all calls so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.course().calls.clone()
    }

    /// Records a call. Returns true if memory is used up with it.
    ///
    /// # Errors
    /// The planned fault.
    pub(super) fn pass(&self, call: Call) -> Result<bool, BackendError> {
        let operation = call.operation;
        let detail = call.detail.clone();
        let fault = {
            let mut course = self.course();
            course.calls.push(call);
            let at = course.to_come.iter().position(|(one, _)| *one == operation);
            at.and_then(|at| course.to_come.remove(at))
        };
        match fault {
            None => Ok(false),
            Some((_, Fault::Slow { by })) => {
                std::thread::sleep(by);
                Ok(false)
            }
            Some((_, Fault::OutOfMemory)) => Ok(true),
            Some((_, Fault::Fails { why })) => Err(operation.failure(why, detail)),
        }
    }

    fn course(&self) -> MutexGuard<'_, ScriptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Operation ===

impl Operation {
    fn failure(self, why: &'static str, path: String) -> BackendError {
        match self {
            Self::Health => {
                BackendError::Unavailable { backend: super::FakeBackend::NAME, why: why.to_owned() }
            }
            Self::Create => BackendError::Create(why.into()),
            Self::CopyIn | Self::CopyOut => BackendError::Copy { path, source: io::Error::other(why) },
            Self::Destroy | Self::Reconcile => BackendError::Clear(why.into()),
            Self::Exec | Self::Stats | Self::Pause | Self::Resume => BackendError::Reach(why.into()),
        }
    }
}
