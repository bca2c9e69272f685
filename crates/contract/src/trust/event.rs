//! Trust events of an agent. They fully determine the agent's level.

use super::level::{Transition, TrustLevel};
use super::measure::{Quality, Share};
use crate::category::Category;
use crate::id::{AgentId, JobId, TaskId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A trust event, as it is stored. Events are ordered by time, and by id at the same time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustEvent {
    /// Time of the event.
    pub at: Timestamp,
    /// Unique id of the event.
    pub event_id: Uuid,
    /// Agent that the event is about.
    pub agent_id: AgentId,
    /// Kind of the event, with its details.
    pub kind: TrustEventKind,
}

/// Kind of a trust event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum TrustEventKind {
    /// The agent was hired.
    AgentHired {
        /// Initial level, if one was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<TrustLevel>,
    },
    /// The agent completed a task.
    TaskCompleted {
        /// Category of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
        /// Difficulty of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        difficulty: Option<Share>,
        /// Quality of the result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quality: Option<Quality>,
    },
    /// A job of the agent succeeded at a node. Its difficulty and quality are unknown until it is assessed.
    JobCompleted {
        /// Category of the job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
        /// The task that the job was of.
        task_id: TaskId,
        /// Digest of the job's content: jobs with the same content have the same digest.
        content: Uuid,
        /// True if commands have verified the result, according to the job's acceptance criteria.
        is_checked: bool,
    },
    /// The orchestrator or a person assessed the difficulty of a completed job, and the quality of its result: once for
    /// each job.
    JobAssessed {
        /// The job.
        job_id: JobId,
        /// Difficulty of the job.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        difficulty: Option<Share>,
        /// Quality of the result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quality: Option<Quality>,
        /// User who assessed it.
        by: UserId,
    },
    /// The agent failed a task.
    TaskFailed {
        /// Category of the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
    },
    /// Feedback of a person.
    HumanFeedback {
        /// Score of the feedback.
        score: Share,
    },
    /// The agent's trust was evaluated. This changes nothing: scheduled changes happen without it.
    Evaluated,
    /// A person approved of a promotion that was proposed.
    PromotionApproved {
        /// The answer.
        approval_id: Uuid,
        /// Proposal that is approved.
        proposal_id: Uuid,
        /// Approved transition.
        transition: Transition,
        /// Category, if each category has a level of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
    },
    /// A person denied a promotion that was proposed.
    PromotionDenied {
        /// The answer.
        approval_id: Uuid,
        /// Proposal that is denied.
        proposal_id: Uuid,
    },
    /// A person set the level.
    LevelSet {
        /// The level.
        level: TrustLevel,
        /// Category; all of them if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
        /// Reason for the level.
        reason: String,
        /// User who set the level.
        by: UserId,
    },
    /// The agent violated a security rule.
    SecurityIncident,
    /// A person verified the agent again.
    ReVerified {
        /// User who verified the agent.
        by: UserId,
    },
}
