//! Remaining work budget of a patch.

/// Steps left for one patch, shared by all its files: many small searches take as long as a large one.
///
/// A step is about 10 ns: a line looked at, 64 bytes compared or copied.
#[derive(Debug, Clone, Copy)]
pub struct WorkBudget {
    steps: u64,
}

/// The budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkBudgetExhausted;

// === impl WorkBudget ===

impl WorkBudget {
    /// A budget of `steps`.
    pub fn new(steps: u64) -> Self {
        Self { steps }
    }

    /// Takes off `steps`.
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), WorkBudgetExhausted> {
        self.steps = self.steps.checked_sub(steps as u64).ok_or(WorkBudgetExhausted)?;
        Ok(())
    }
}

/// Returns the cost of scanning that many bytes.
pub(super) fn steps_for_bytes(bytes: usize) -> usize {
    bytes / 64
}
