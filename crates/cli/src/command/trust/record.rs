//! `belljar trust record`

use super::record;
use crate::error::{BAD_INPUT, CliError};
use crate::trust::TrustEventStore;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use jiff::Timestamp;
use serde_json::Value;
use std::process::ExitCode;
use uuid::Uuid;

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct RecordArguments {
    /// The agent
    #[arg(value_parser = AgentId::parse)]
    agent: AgentId,
    /// The event, a JSON object
    event: String,
    /// When; now, if nothing is said
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// This event, and no other: recorded again by the same id, it counts once
    #[arg(long, value_name = "UUID")]
    id: Option<Uuid>,
}

const AFTER_HELP: &str = "\
What happened, as docs/concepts/trust.md lists it:
  {\"type\": \"agent_hired\"}
  {\"type\": \"task_completed\", \"category\": \"file_system\", \"difficulty\": 0.5, \"quality\": 8.5}
  {\"type\": \"task_failed\"}
  {\"type\": \"human_feedback\", \"score\": 0.9}
  {\"type\": \"security_incident\"}

A person's word is not recorded by this: there are approve, deny, assess, set and verify.";

// === impl RecordArguments ===

impl RecordArguments {
    pub(super) fn run(&self, book: &TrustEventStore) -> Result<ExitCode, CliError> {
        let kind = match self.kind() {
            Ok(kind) => kind,
            Err(why) => {
                crate::output::errln!("belljar: {why}");
                return Ok(ExitCode::from(BAD_INPUT));
            }
        };
        record(
            book,
            &TrustEvent {
                at: self.at.unwrap_or_else(Timestamp::now),
                event_id: self.id.unwrap_or_else(Uuid::now_v7),
                agent_id: self.agent.clone(),
                kind,
            },
        )
    }

    fn kind(&self) -> Result<TrustEventKind, String> {
        let value: Value =
            serde_json::from_str(&self.event).map_err(|error| format!("the event is no JSON: {error}"))?;
        let kind = serde_json::from_value(value).map_err(|error| format!("that is no event: {error}"))?;
        match kind {
            TrustEventKind::PromotionApproved { .. } | TrustEventKind::PromotionDenied { .. } => {
                Err("promotions are answered by `belljar trust approve` and `deny`".to_owned())
            }
            TrustEventKind::LevelSet { .. } => Err("levels are set by `belljar trust set`".to_owned()),
            TrustEventKind::ReVerified { .. } => Err("that is said by `belljar trust verify`".to_owned()),
            TrustEventKind::JobCompleted { .. } => Err("the end of a job is recorded by its node".to_owned()),
            TrustEventKind::JobAssessed { .. } => {
                Err("what is thought of a job is said by `belljar trust assess`".to_owned())
            }
            kind => Ok(kind),
        }
    }
}
