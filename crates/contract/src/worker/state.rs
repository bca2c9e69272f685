//! States of a job in the Worker API (`docs/contracts/job.md#j5`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// State of a job. The last five are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// The node has stored the job; no runner has reported that it works on it.
    Accepted,
    /// The runner has read and validated it.
    InProgress,
    /// The job succeeded.
    Completed,
    /// The job failed; `failure_code` gives the reason.
    Failed,
    /// The job exceeded its time limit.
    Timeout,
    /// The job was cancelled.
    Canceled,
    /// The node died or was stopped during the job, which has no attempts left.
    NodeFailure,
}

// === impl JobState ===

impl JobState {
    /// All states, in the order of a job's life.
    pub const ALL: [Self; 7] = [
        Self::Accepted,
        Self::InProgress,
        Self::Completed,
        Self::Failed,
        Self::Timeout,
        Self::Canceled,
        Self::NodeFailure,
    ];

    /// Returns true if the state is final.
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
    fn job_state_text_matches_serialized_form() {
        for state in JobState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
            assert_eq!(JobState::from_name(state.as_str()), Some(state));
        }
        assert_eq!(JobState::from_name("success"), None);
    }
}
