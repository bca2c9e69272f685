//! What is recorded of an agent and counts for the trust in it. Whoever has all of it can tell what level the agent has.

use super::level::{Transition, TrustLevel};
use super::measure::{Quality, Share};
use crate::category::Category;
use crate::id::{AgentId, JobId, TaskId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Something that happened, as it is kept. Events are in the order of their times, and of their ids at the same time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustEvent {
    /// When it happened.
    pub at: Timestamp,
    /// This event, and no other.
    pub event_id: Uuid,
    /// Whom it is about.
    pub agent_id: AgentId,
    /// What happened.
    pub kind: TrustEventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum TrustEventKind {
    /// The agent is there from now on.
    AgentHired {
        /// The level that it was hired with, if one was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<TrustLevel>,
    },
    /// The agent did what it should.
    TaskCompleted {
        /// What kind of thing that was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
        /// How hard it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        difficulty: Option<Share>,
        /// How well it was done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quality: Option<Quality>,
    },
    /// A job of the agent ended well at a node. Its difficulty and quality are unknown until it is assessed.
    JobCompleted {
        /// What kind of thing that was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
        /// The task that the job was of.
        task_id: TaskId,
        /// What was to be done, as a digest: jobs with the same content have the same.
        content: Uuid,
        /// Whether commands have checked what came of it, as the job's acceptance criteria say.
        is_checked: bool,
    },
    /// The orchestrator or a person said how hard a completed job was, and how well it was done: once for each job.
    JobAssessed {
        /// The job.
        job_id: JobId,
        /// How hard it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        difficulty: Option<Share>,
        /// How well it was done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quality: Option<Quality>,
        /// Who said so.
        by: UserId,
    },
    /// The agent did not do what it should.
    TaskFailed {
        /// What kind of thing that was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
    },
    /// A person said how content they are.
    HumanFeedback {
        /// So content.
        score: Share,
    },
    /// A look at what the agent has earned. It changes nothing: what is due falls due without it.
    Evaluated,
    /// A person approved of a promotion that was proposed.
    PromotionApproved {
        /// The answer.
        approval_id: Uuid,
        /// What it answers.
        proposal_id: Uuid,
        /// The step that they approved of.
        transition: Transition,
        /// For which category, where each has a level of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
    },
    /// A person denied a promotion that was proposed.
    PromotionDenied {
        /// The answer.
        approval_id: Uuid,
        /// What it answers.
        proposal_id: Uuid,
    },
    /// A person said which level it is to be.
    LevelSet {
        /// The level.
        level: TrustLevel,
        /// For which category; for all of them, if none is said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
        /// Why.
        reason: String,
        /// Who.
        by: UserId,
    },
    /// The agent did what it must never do.
    SecurityIncident,
    /// A person looked at the agent again, and found it in order.
    ReVerified {
        /// Who.
        by: UserId,
    },
}
