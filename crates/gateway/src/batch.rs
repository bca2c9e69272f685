//! Several calls at once (`spec/3 §Tool Execution Model`): answers in the order of the calls, whatever the order in which they end.

use crate::Gateway;
use crate::call::Called;
use crate::seat::Seat;
use belljar_tools::Arguments;
use futures_util::{FutureExt, StreamExt, stream};
use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;

/// A call that is to be made.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool's name.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
}

/// Tools that have broken off where none may. All other calls have come to their ends.
#[derive(Debug, thiserror::Error)]
#[error("{}", Broken(&self.panics))]
pub struct BatchError {
    /// Which calls, by their places, each with what it said.
    pub panics: Vec<(usize, String)>,
    /// What came of the others, each at its place.
    pub others: Vec<Option<Called>>,
}

struct Broken<'a>(&'a [(usize, String)]);

// === impl Gateway ===

impl Gateway {
    /// Makes these calls, so many at a time; all at once, if nothing is said. One that fails, or may not be made, keeps no other from being
    /// made.
    ///
    /// # Errors
    /// [`BatchError`] when a tool has panicked, after all have ended.
    pub async fn invoke_all(
        &self,
        seat: &Seat,
        calls: impl IntoIterator<Item = Call>,
        at_once: Option<NonZeroUsize>,
    ) -> Result<Vec<Called>, BatchError> {
        let calls = calls.into_iter().map(|Call { name, arguments }| async move {
            AssertUnwindSafe(self.call(seat, &name, arguments)).catch_unwind().await
        });
        let ended: Vec<_> = match at_once {
            Some(at_once) => stream::iter(calls).buffered(at_once.get()).collect().await,
            None => futures_util::future::join_all(calls).await,
        };
        let mut panics = Vec::new();
        let mut all = Vec::with_capacity(ended.len());
        for (place, ended) in ended.into_iter().enumerate() {
            match ended {
                Ok(called) => all.push(Some(called)),
                Err(panic) => {
                    panics.push((place, said(panic.as_ref())));
                    all.push(None);
                }
            }
        }
        match panics.is_empty() {
            true => Ok(all.into_iter().flatten().collect()),
            false => Err(BatchError { panics, others: all }),
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "nothing".to_owned())
}

impl fmt::Display for Broken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(panics) = self;
        for (at, (place, said)) in panics.iter().enumerate() {
            let before = if at == 0 { "" } else { "; " };
            write!(f, "{before}call {place} has broken off: {said}")?;
        }
        Ok(())
    }
}
