//! Reaps children, a bounded number at a time.
//!
//! Programs decide how many processes end: where they fork faster than these are reaped, there is always another one. What looks
//! after a sandbox has limits to watch and requests to answer meanwhile.

use crate::kernel::{self, ReapedChild};
use std::ops::ControlFlow;
use std::time::Duration;

/// Children that are left after some have been reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemainingChildren {
    /// No children at all.
    None,
    /// Children that run.
    Running,
    /// Perhaps children that have ended.
    Ended,
}

const MOST_AT_ONCE: u32 = 64;

/// Reaps some children, until `each` breaks off.
pub(crate) fn reap_some<B>(
    mut each: impl FnMut(ReapedChild) -> ControlFlow<B>,
) -> ControlFlow<B, RemainingChildren> {
    for _ in 0..MOST_AT_ONCE {
        match kernel::reap() {
            Ok(Some(reaped)) => each(reaped)?,
            Ok(None) => return ControlFlow::Continue(RemainingChildren::Running),
            Err(_) => return ControlFlow::Continue(RemainingChildren::None),
        }
    }
    ControlFlow::Continue(RemainingChildren::Ended)
}

// === impl RemainingChildren ===

impl RemainingChildren {
    /// Time to wait for something else: zero where children may have ended, because no signal reports them again. `None`
    /// where that doesn't matter.
    pub(crate) fn patience(self) -> Option<Duration> {
        match self {
            Self::None | Self::Running => None,
            Self::Ended => Some(Duration::ZERO),
        }
    }
}
