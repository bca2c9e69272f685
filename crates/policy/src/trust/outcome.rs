//! Outcomes of events.

use belljar_contract::trust::{ProposedPromotion, TrustChange};
use uuid::Uuid;

/// Outcome of an event, or of the time that passed until it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A level has changed.
    Changed(TrustChange),
    /// A user's approval is needed.
    NeedsApproval(ProposedPromotion),
    /// A proposal was withdrawn: an answer to it has no effect any more.
    Withdrawn {
        /// Id of the proposal.
        proposal_id: Uuid,
    },
    /// The event changes nothing.
    Ignored(IgnoredReason),
}

/// Reason why an event changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IgnoredReason {
    /// The event belongs to another agent.
    #[error("the event is about another agent")]
    OtherAgent,
    /// The event is older than the evaluated time. A replay of all events includes it.
    #[error("the event is older than an already recorded event or evaluation")]
    Late,
    /// There was an event with the same id.
    #[error("an event with this id is already recorded")]
    Duplicate,
    /// The event is in the future.
    #[error("the event's time is in the future")]
    NotYet,
    /// The agent was not hired.
    #[error("the agent has not been hired")]
    NotHired,
    /// The agent is already hired.
    #[error("the agent has been hired already")]
    HiredAlready,
    /// Levels are only set by users.
    #[error("trust is disabled: only a user's decision changes a level")]
    Disabled,
    /// There is one level for all categories.
    #[error("no category has a level of its own")]
    NoCategories,
    /// There is no such proposal.
    #[error("no such promotion is proposed, or its proposal was withdrawn")]
    NotProposed,
    /// The agent doesn't meet the requirements any more.
    #[error("the proposed promotion is no longer justified")]
    NotJustified,
    /// No command has checked the result of the job.
    #[error("no acceptance criterion of the job was checked by a command")]
    Unchecked,
    /// A job with the same content or task has already counted.
    #[error("a job with the same content, or of the same task, has counted already")]
    Repeated,
    /// The limit of counted jobs per time is reached.
    #[error("the hourly or daily limit of counted jobs is reached")]
    TooFast,
    /// No such job has counted.
    #[error("no job with that id counts for the agent")]
    NotCounted,
    /// The job is already assessed.
    #[error("the job has been assessed already")]
    Assessed,
}

// === impl IgnoredReason ===

impl IgnoredReason {
    /// Returns a stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::OtherAgent => "other_agent",
            Self::Late => "late",
            Self::Duplicate => "duplicate",
            Self::NotYet => "not_yet",
            Self::NotHired => "not_hired",
            Self::HiredAlready => "hired_already",
            Self::Disabled => "disabled",
            Self::NoCategories => "no_categories",
            Self::NotProposed => "not_proposed",
            Self::NotJustified => "not_justified",
            Self::Unchecked => "unchecked",
            Self::Repeated => "repeated",
            Self::TooFast => "too_fast",
            Self::NotCounted => "not_counted",
            Self::Assessed => "assessed",
        }
    }
}
