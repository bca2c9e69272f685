//! What shall go wrong, in which order, and what was asked for. The same script gives the same course, every time.

use crate::backend::BackendError;
use belljar_contract::id::RunId;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Something that a backend or a sandbox is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// To say whether sandboxes can be made.
    Health,
    /// To make one.
    Create,
    /// To start a program.
    Exec,
    /// To take files in.
    CopyIn,
    /// To give files out.
    CopyOut,
    /// To say what is used.
    Stats,
    /// To stop everything.
    Pause,
    /// To let it go on.
    Resume,
    /// To end a sandbox.
    Destroy,
    /// To clear leftovers away.
    Reconcile,
}

/// What goes wrong with one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It fails, with these words.
    Fails {
        /// Why.
        why: &'static str,
    },
    /// The program is started and killed at once, and the sandbox with it: its memory was used up. Of other calls than
    /// [`Operation::Exec`] it means that they find the sandbox so.
    OutOfMemory,
    /// It takes its time, and then is done.
    Slow {
        /// How long.
        by: Duration,
    },
}

/// A call, as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What was asked for.
    pub operation: Operation,
    /// Of which sandbox; none if of the backend.
    pub sandbox: Option<RunId>,
    /// With what: the arguments of a program, a path inside.
    pub detail: String,
}

/// What shall go wrong, and what was asked for. Copies are the same script.
#[derive(Debug, Clone, Default)]
pub struct Script(Arc<Mutex<Course>>);

#[derive(Debug, Default)]
struct Course {
    to_come: VecDeque<(Operation, Fault)>,
    calls: Vec<Call>,
}

// === impl Script ===

impl Script {
    /// Has the next call of that kind, for which nothing is foreseen yet, go wrong in this way.
    pub fn next(&self, operation: Operation, fault: Fault) {
        self.course().to_come.push_back((operation, fault));
    }

    /// Everything that was asked for so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.course().calls.clone()
    }

    /// Records a call, and says whether memory is used up with it.
    ///
    /// # Errors
    /// What was foreseen.
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

    fn course(&self) -> MutexGuard<'_, Course> {
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
