//! Callbacks from a node to an orchestrator: one message for each state that a job reaches.
//!
//! A message is repeated until it is answered with a status of 2xx, so it may arrive more than once, and after a later
//! one; `event.id` identifies it. Each is signed according to Standard Webhooks (`webhook-id`, `webhook-timestamp`,
//! `webhook-signature`). A 2xx answer to the message with a job's final state acknowledges that its result is stored.

use super::ApiVersion;
use super::event::JobEvent;
use super::job::JobResponse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A callback message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallbackMessage {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Event that occurred.
    pub event: JobEvent,
    /// State of the job when this message was written, which may be later than the event; with its outcome, if it was
    /// over.
    pub job: JobResponse,
}
