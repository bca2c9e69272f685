//! How far a job is, as the Worker API says it (`spec/1 §Job Lifecycle and Status Reporting`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far a job is. From one of the last five nothing leads on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// The node has it, durably; no runner has said yet that it works on it.
    Accepted,
    /// The runner has read and validated it.
    InProgress,
    /// It did what it should.
    Completed,
    /// It failed; `failure_code` says how.
    Failed,
    /// It ran out of time.
    Timeout,
    /// Somebody canceled it.
    Canceled,
    /// The node died or was stopped under it, and it may not be tried again.
    NodeFailure,
}

// === impl JobState ===

impl JobState {
    /// Every one, in the order of a job's life.
    pub const ALL: [Self; 7] = [
        Self::Accepted,
        Self::InProgress,
        Self::Completed,
        Self::Failed,
        Self::Timeout,
        Self::Canceled,
        Self::NodeFailure,
    ];

    /// Whether it is the last one that the job will have.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Accepted | Self::InProgress)
    }

    /// The state as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Canceled => "canceled",
            Self::NodeFailure => "node_failure",
        }
    }

    /// The state that is written so.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_the_same_in_text_and_on_the_wire() {
        for state in JobState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
            assert_eq!(JobState::from_name(state.as_str()), Some(state));
        }
        assert_eq!(JobState::from_name("success"), None);
    }
}
