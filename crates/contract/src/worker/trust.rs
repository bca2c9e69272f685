//! The trust in a node's agents: `/v1/worker/trust`.

use super::ApiVersion;
use super::approval::Reason;
use crate::approval::{LONGEST_REASON, REASON_PATTERN};
use crate::category::Category;
use crate::decode::{Decode, DecodeContext, Fields, decode_document};
use crate::id::parse_uuid;
use crate::json::{self, Node};
use crate::problem::Problems;
use crate::trust::{AgentTrust, ReportedEvent, TrustLevel, TrustState};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A page of the agents that have trust events, in the order of their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustListResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The trust in each of them.
    pub agents: Vec<TrustState>,
    /// Token for the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// The trust in one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The trust.
    #[serde(flatten)]
    pub trust: AgentTrust,
}

/// An event was recorded; this is the resulting trust in its agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustEventResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The event.
    #[schemars(with = "String")]
    pub event_id: Uuid,
    /// Reason why it changes nothing, if it doesn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
    /// The trust.
    pub state: TrustState,
}

/// A trust event: `POST /v1/worker/trust/{agent_id}/events`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RecordEventRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Id of the event. It counts once, however often it is reported.
    #[schemars(extend("format" = "uuid"), with = "String")]
    pub event_id: Uuid,
    /// Time of the event (UTC). Default: the time at which it is first recorded.
    #[schemars(default, with = "Timestamp")]
    pub at: Option<Timestamp>,
    /// Event that occurred.
    pub event: ReportedEvent,
}

/// A person's decision on a level: `POST /v1/worker/trust/{agent_id}/level`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SetLevelRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// New level: a lower one takes effect at once, `elevated` is only proposed.
    pub level: TrustLevel,
    /// Category that the level is for, if each category has a level of its own.
    #[schemars(default, with = "Category")]
    pub category: Option<Category>,
    /// Why.
    #[schemars(length(min = 1, max = LONGEST_REASON), regex(pattern = REASON_PATTERN))]
    pub reason: String,
}

/// A person's decision without further members: on a promotion, or on the verification of an agent. The body may be
/// empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TrustDecisionRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
}

struct EventId(Uuid);

struct EventTime(Timestamp);

// === impl RecordEventRequest ===

impl RecordEventRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for RecordEventRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let event_id = fields.required("event_id");
        let happened = fields.optional("at");
        let event = fields.required("event");
        fields.finish()?;
        Some(Self {
            version: version?,
            event_id: event_id.map(|EventId(id)| id)?,
            at: happened?.map(|EventTime(time)| time),
            event: event?,
        })
    }
}

// === impl SetLevelRequest ===

impl SetLevelRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for SetLevelRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let level = fields.required("level");
        let category = fields.optional("category");
        let reason = fields.required("reason");
        fields.finish()?;
        let Reason(reason) = reason?;
        Some(Self { version: version?, level: level?, category: category?, reason })
    }
}

// === impl TrustDecisionRequest ===

impl TrustDecisionRequest {
    /// Parses a request, which may be empty.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        match document {
            [] => Ok(Self::default()),
            document => decode_document(&json::parse(document)?),
        }
    }
}

impl Decode for TrustDecisionRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        fields.finish()?;
        Some(Self { version: version? })
    }
}

impl Decode for EventId {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        at.parsed(node, "a UUID", parse_uuid).map(Self)
    }
}

impl Decode for EventTime {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        at.parsed(node, "a time such as 2026-01-02T03:04:05Z", str::parse).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const ID: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

    fn recorded(event: &Value) -> Result<RecordEventRequest, Problems> {
        RecordEventRequest::parse(
            json!({ "version": 1, "event_id": ID, "event": event }).to_string().as_bytes(),
        )
    }

    #[test]
    fn reported_events_exclude_decisions_of_people() {
        for event in [
            json!({ "type": "agent_hired", "level": "restricted" }),
            json!({ "type": "task_completed", "category": "git", "difficulty": 0.5, "quality": 8.5 }),
            json!({ "type": "job_assessed", "job_id": ID, "quality": 8.5 }),
            json!({ "type": "task_failed" }),
            json!({ "type": "human_feedback", "score": 1 }),
            json!({ "type": "evaluated" }),
            json!({ "type": "security_incident" }),
        ] {
            recorded(&event).unwrap();
        }
        for (wrong, place) in [
            (json!({ "type": "level_set", "level": "standard", "reason": "x", "by": "me" }), "$.event"),
            (json!({ "type": "re_verified", "by": "me" }), "$.event"),
            (json!({ "type": "task_completed", "quality": 11 }), "$.event.quality"),
            (json!({ "type": "job_assessed", "job_id": ID }), "$.event"),
            (json!({ "type": "job_assessed", "quality": 8 }), "$.event.job_id"),
            (json!({ "type": "task_failed", "category": "gardening" }), "$.event.category"),
            (json!({ "type": "human_feedback" }), "$.event.score"),
            (json!({ "type": "security_incident", "level": "standard" }), "$.event.level"),
        ] {
            let told = recorded(&wrong).unwrap_err().to_string();
            assert!(told.contains(place), "{wrong}: {told}");
        }
    }

    #[test]
    fn set_level_requires_a_reason_and_record_event_requires_a_uuid() {
        let set = |body: Value| SetLevelRequest::parse(body.to_string().as_bytes());
        set(json!({ "version": 1, "level": "standard", "reason": "seen at work" })).unwrap();
        for wrong in [
            json!({ "version": 1, "level": "standard" }),
            json!({ "version": 1, "level": "standard", "reason": " " }),
            json!({ "version": 1, "level": "custom", "reason": "x" }),
        ] {
            assert!(set(wrong.clone()).is_err(), "{wrong}");
        }
        let event = json!({ "type": "task_failed" });
        for id in ["{0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e}", "x", ""] {
            let body = json!({ "version": 1, "event_id": id, "event": event });
            assert!(RecordEventRequest::parse(body.to_string().as_bytes()).is_err(), "{id}");
        }
        assert!(
            TrustDecisionRequest::parse(b"").is_ok()
                && TrustDecisionRequest::parse(br#"{"version":1}"#).is_ok()
        );
        assert!(TrustDecisionRequest::parse(br#"{"version":1,"by":"ada"}"#).is_err());
    }
}
