//! The Worker API between an orchestrator and a node (`docs/contracts/job.md#j4`).
//!
//! Every document, either way, has `"version": 1`. Requests are validated strictly: unknown, repeated, missing and
//! mistyped members are rejected at any depth, and all of them are reported.

pub mod acknowledgement;
pub mod approval;
pub mod assignment;
mod base64;
pub mod callback;
pub mod context_files;
pub mod event;
pub mod grant;
pub mod job;
pub mod managed;
pub mod openapi;
pub mod operation;
pub mod problem;
pub mod pty;
pub mod sandbox_order;
pub mod session;
pub mod state;
pub mod status;
pub mod stop;
pub mod telemetry;
pub mod token;
pub mod tool_call;
pub mod traceparent;
pub mod trust;

use crate::decode::{Decode, DecodeContext, whole_number};
use crate::json::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The version of the Worker API, which is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct ApiVersion;

/// Another version than the one that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not version 1 of the Worker API")]
pub struct UnknownVersionError;

/// Path prefix of the endpoints.
pub const BASE_PATH: &str = "/v1/worker";

const VERSION: u64 = 1;

// === impl ApiVersion ===

impl From<ApiVersion> for u64 {
    fn from(_: ApiVersion) -> Self {
        VERSION
    }
}

impl TryFrom<u64> for ApiVersion {
    type Error = UnknownVersionError;

    fn try_from(version: u64) -> Result<Self, UnknownVersionError> {
        (version == VERSION).then_some(Self).ok_or(UnknownVersionError)
    }
}

impl Decode for ApiVersion {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        whole_number(node, at, VERSION..=VERSION).map(|_| Self)
    }
}

impl JsonSchema for ApiVersion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ApiVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "The version of the Worker API.", "type": "integer", "const": VERSION })
    }
}
