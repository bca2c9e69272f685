//! What comes of an event.

use belljar_contract::trust::{ProposedPromotion, TrustChange};
use uuid::Uuid;

/// Something that came of an event, or of the time that passed until it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A level is another.
    Changed(TrustChange),
    /// A person is to be asked.
    NeedsApproval(ProposedPromotion),
    /// A person need not be asked any more: what they would say to this proposal counts for nothing.
    Withdrawn {
        /// The proposal.
        proposal_id: Uuid,
    },
    /// The event changes nothing.
    Ignored(Ignored),
}

/// Why an event changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// It is about another agent.
    #[error("the event is about another agent")]
    OtherAgent,
    /// It happened before what has been worked out by now. All events from the beginning give what it leads to.
    #[error("the event comes after a later one, or after a look at a later time")]
    Late,
    /// There was one of its id.
    #[error("there is an event of this id already")]
    Duplicate,
    /// It has yet to happen.
    #[error("the event has yet to happen")]
    NotYet,
    /// Nobody has hired the agent.
    #[error("nobody has hired the agent")]
    NotHired,
    /// It has been hired already.
    #[error("the agent has been hired already")]
    HiredAlready,
    /// Levels are what people say they are.
    #[error("trust is disabled: no event but a person's word changes a level")]
    Disabled,
    /// There is one level for all categories.
    #[error("no category has a level of its own")]
    NoCategories,
    /// Nothing like it is proposed.
    #[error("nothing like it is proposed, or not any more")]
    NotProposed,
    /// The agent doesn't have what it takes, by now.
    #[error("what was proposed is not justified any more")]
    NotJustified,
    /// No command has checked what came of the job.
    #[error("no acceptance criterion of the job was checked by a command")]
    Unchecked,
    /// A job of the same content or of the same task has counted.
    #[error("a job with the same content, or of the same task, has counted already")]
    Repeated,
    /// As many jobs have counted lately as may.
    #[error("as many jobs as may have counted within the last hour or day")]
    TooFast,
    /// No such job counts.
    #[error("no job of that id counts for the agent, or not any more")]
    NotCounted,
    /// The job was assessed.
    #[error("the job has been assessed already")]
    Assessed,
}

// === impl Ignored ===

impl Ignored {
    /// A stable name of it.
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
