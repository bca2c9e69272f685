//! What a node tells an orchestrator of its own accord: one message for each state that a job comes to.
//!
//! Messages are sent until they are answered with a status of 2xx, so one may come more than once, and after a later one;
//! `event.id` tells which is which. Each is signed as Standard Webhooks says (`webhook-id`, `webhook-timestamp`,
//! `webhook-signature`). To answer the message with a job's last state is to say that its result is kept.

use super::ApiVersion;
use super::event::JobEvent;
use super::job::JobResponse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallbackMessage {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// What has happened.
    pub event: JobEvent,
    /// The job as it was when this was written, which may be later; with its outcome, if it was over.
    pub job: JobResponse,
}
