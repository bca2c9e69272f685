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
    Ignored(Ignored),
}

/// Reason why an event changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// The event belongs to another agent.
    #[error("the event is about another agent")]
    OtherAgent,
    /// The event is older than the evaluated time. A replay of all events includes it.
    #[error("the event comes after a later one, or after a look at a later time")]
    Late,
    /// There was an event with the same id.
    #[error("there is an event of this id already")]
    Duplicate,
    /// The event is in the future.
    #[error("the event has yet to happen")]
    NotYet,
    /// The agent was not hired.
    #[error("nobody has hired the agent")]
    NotHired,
    /// The agent is already hired.
    #[error("the agent has been hired already")]
    HiredAlready,
    /// Levels are only set by users.
    #[error("trust is disabled: no event but a person's word changes a level")]
    Disabled,
    /// There is one level for all categories.
    #[error("no category has a level of its own")]
    NoCategories,
    /// There is no such proposal.
    #[error("nothing like it is proposed, or not any more")]
    NotProposed,
    /// The agent doesn't meet the requirements any more.
    #[error("what was proposed is not justified any more")]
    NotJustified,
    /// No command has checked the result of the job.
    #[error("no acceptance criterion of the job was checked by a command")]
    Unchecked,
    /// A job with the same content or task has already counted.
    #[error("a job with the same content, or of the same task, has counted already")]
    Repeated,
    /// The limit of counted jobs per time is reached.
    #[error("as many jobs as may have counted within the last hour or day")]
    TooFast,
    /// No such job has counted.
    #[error("no job of that id counts for the agent, or not any more")]
    NotCounted,
    /// The job is already assessed.
    #[error("the job has been assessed already")]
    Assessed,
}

// === impl Ignored ===

impl Ignored {
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
