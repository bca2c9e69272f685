//! Trust events that a client may report. Decisions of people are not among them: they have endpoints of their own,
//! with stricter requirements.

use super::event::TrustEventKind;
use super::level::TrustLevel;
use super::measure::{Quality, Share};
use crate::category::Category;
use crate::decode::{Decode, DecodeContext, Fields};
use crate::id::{JobId, UserId};
use crate::json::Node;
use schemars::JsonSchema;
use serde::Serialize;

/// A reported event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ReportedEvent {
    /// The agent was hired.
    AgentHired {
        /// Initial level, if one is given.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(default, with = "TrustLevel")]
        level: Option<TrustLevel>,
    },
    /// The agent completed a task.
    TaskCompleted {
        /// Category of the task.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(default, with = "Category")]
        category: Option<Category>,
        /// Difficulty of the task.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(default, with = "Share")]
        difficulty: Option<Share>,
        /// Quality of the result.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(default, with = "Quality")]
        quality: Option<Quality>,
    },
    /// Assessment of a completed job: once for each job, with a difficulty, a quality, or both.
    #[schemars(extend("anyOf" = [{ "required": ["difficulty"] }, { "required": ["quality"] }]))]
    JobAssessed {
        /// The job.
        #[schemars(extend("format" = "uuid"), with = "String")]
        job_id: JobId,
        /// Difficulty of the job.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(default, with = "Share")]
        difficulty: Option<Share>,
        /// Quality of the result.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(default, with = "Quality")]
        quality: Option<Quality>,
    },
    /// The agent failed a task.
    TaskFailed {
        /// Category of the task.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(default, with = "Category")]
        category: Option<Category>,
    },
    /// Feedback of a person.
    HumanFeedback {
        /// Score of the feedback.
        score: Share,
    },
    /// The agent's trust was evaluated. This changes nothing.
    Evaluated {},
    /// The agent violated a security rule.
    SecurityIncident {},
}

/// Names of the kinds, for error messages.
const KINDS: &str = "one of: agent_hired, task_completed, job_assessed, task_failed, human_feedback, evaluated, security_incident";

/// Kinds that only a person may record.
const WORDS: [&str; 4] = ["promotion_approved", "promotion_denied", "level_set", "re_verified"];

// === impl ReportedEvent ===

impl ReportedEvent {
    /// Returns the event in its stored form, with its reporter.
    pub fn reported_by(self, by: UserId) -> TrustEventKind {
        use TrustEventKind as Kind;
        match self {
            Self::AgentHired { level } => Kind::AgentHired { level },
            Self::TaskCompleted { category, difficulty, quality } => {
                Kind::TaskCompleted { category, difficulty, quality }
            }
            Self::JobAssessed { job_id, difficulty, quality } => {
                Kind::JobAssessed { job_id, difficulty, quality, by }
            }
            Self::TaskFailed { category } => Kind::TaskFailed { category },
            Self::HumanFeedback { score } => Kind::HumanFeedback { score },
            Self::Evaluated {} => Kind::Evaluated,
            Self::SecurityIncident {} => Kind::SecurityIncident,
        }
    }
}

impl Decode for ReportedEvent {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let kind: String = fields.required("type")?;
        let read = match kind.as_str() {
            "agent_hired" => fields.optional("level").map(|level| Self::AgentHired { level }),
            "task_completed" => completed(&mut fields),
            "job_assessed" => assessed(&mut fields),
            "task_failed" => fields.optional("category").map(|category| Self::TaskFailed { category }),
            "human_feedback" => fields.required("score").map(|score| Self::HumanFeedback { score }),
            "evaluated" => Some(Self::Evaluated {}),
            "security_incident" => Some(Self::SecurityIncident {}),
            word if WORDS.contains(&word) => {
                fields.refuse(format!("`{word}`, which only people can record"), KINDS);
                return None;
            }
            _ => {
                fields.refuse("an event of another type", KINDS);
                return None;
            }
        };
        fields.finish()?;
        read
    }
}

fn completed(fields: &mut Fields<'_, '_>) -> Option<ReportedEvent> {
    let category = fields.optional("category");
    let difficulty = fields.optional("difficulty");
    let quality = fields.optional("quality");
    Some(ReportedEvent::TaskCompleted { category: category?, difficulty: difficulty?, quality: quality? })
}

fn assessed(fields: &mut Fields<'_, '_>) -> Option<ReportedEvent> {
    let job_id = fields.required("job_id");
    let (difficulty, quality) = (fields.optional("difficulty")?, fields.optional("quality")?);
    if difficulty.is_none() && quality.is_none() {
        fields.refuse("neither `difficulty` nor `quality`", "one of both at least");
        return None;
    }
    Some(ReportedEvent::JobAssessed { job_id: job_id?, difficulty, quality })
}

impl Decode for Share {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        number(node).map_or_else(|| at.mistyped(node, "a number from 0 to 1"), Some)
    }
}

impl Decode for Quality {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        number(node).map_or_else(|| at.mistyped(node, "a number from 0 to 10"), Some)
    }
}

fn number<T: TryFrom<f64>>(node: &Node) -> Option<T> {
    match node {
        Node::Number(number) => number.as_f64().and_then(|number| T::try_from(number).ok()),
        _ => None,
    }
}

impl Decode for TrustLevel {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let level = node.as_str().and_then(Self::named);
        level.map_or_else(|| at.mistyped(node, "one of: sandboxed, restricted, standard, elevated"), Some)
    }
}

impl Decode for Category {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        let category = node.as_str().and_then(Self::named);
        category.map_or_else(|| at.mistyped(node, format!("one of: {}", known())), Some)
    }
}
