//! Acknowledgement of a result by an orchestrator: `POST /v1/worker/jobs/{job_id}:ack`.

use super::ApiVersion;
use crate::decode::{Decode, DecodeContext, Fields, decode_document};
use crate::json::{self, Node};
use crate::problem::Problems;
use schemars::JsonSchema;

/// Acknowledges that the orchestrator has received and stored the result of a job.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AcknowledgeRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Digest of the received outcome. Without it, any outcome is acknowledged.
    #[schemars(default, with = "String", regex(pattern = "^[0-9a-f]{64}$"))]
    pub outcome_sha256: Option<String>,
}

struct Digest(String);

// === impl AcknowledgeRequest ===

impl AcknowledgeRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for AcknowledgeRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let outcome_sha256 = fields.optional("outcome_sha256");
        fields.finish()?;
        Some(Self { version: version?, outcome_sha256: outcome_sha256?.map(|Digest(digest)| digest) })
    }
}

impl Decode for Digest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let is_digest = |text: &&str| {
            text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        match node.as_str().filter(is_digest) {
            Some(text) => Some(Self(text.to_owned())),
            None => at.mistyped(node, "64 lower-case hexadecimal digits"),
        }
    }
}
