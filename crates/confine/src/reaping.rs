//! Reaps children, a bounded number at a time.
//!
//! Programs decide how many processes end: where they fork faster than these are reaped, there is always another one. What looks
//! after a sandbox has limits to watch and requests to answer meanwhile.

use crate::kernel::{self, Reaped};
use std::ops::ControlFlow;
use std::time::Duration;

/// Children that are left after some have been reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// No children at all.
    None,
    /// Children that run.
    Running,
    /// Perhaps children that have ended.
    Ended,
}

const MOST_AT_ONCE: u32 = 64;

/// Reaps some children, until `each` breaks off.
pub(crate) fn reap_some<B>(mut each: impl FnMut(Reaped) -> ControlFlow<B>) -> ControlFlow<B, Left> {
    for _ in 0..MOST_AT_ONCE {
        match kernel::reap() {
            Ok(Some(reaped)) => each(reaped)?,
            Ok(None) => return ControlFlow::Continue(Left::Running),
            Err(_) => return ControlFlow::Continue(Left::None),
        }
    }
    ControlFlow::Continue(Left::Ended)
}

// === impl Left ===

impl Left {
    /// Time to wait for something else: zero where children may have ended, because no signal reports them again. `None`
    /// where that doesn't matter.
    pub(crate) fn patience(self) -> Option<Duration> {
        match self {
            Self::None | Self::Running => None,
            Self::Ended => Some(Duration::ZERO),
        }
    }
}
