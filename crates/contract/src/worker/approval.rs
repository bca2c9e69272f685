//! Approvals of a node: `/v1/worker/approvals`.

use super::ApiVersion;
use crate::approval::{
    Approval, ApprovalPage, DIGEST_PATTERN, LONGEST_REASON, REASON_PATTERN, is_digest, is_reason,
};
use crate::decode::{Decode, DecodeContext, Fields, decode_document};
use crate::json::{self, Node};
use crate::problem::Problems;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A page of approvals, the last asked first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalListResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The page.
    #[serde(flatten)]
    pub page: ApprovalPage,
}

/// An approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The approval.
    #[serde(flatten)]
    pub approval: Approval,
}

/// A request to approve a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ApproveRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Reason, for the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", length(min = 1, max = LONGEST_REASON), regex(pattern = REASON_PATTERN))]
    pub reason: Option<String>,
    /// Digest of the reviewed arguments. The decision is rejected if the call has other arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", regex(pattern = DIGEST_PATTERN))]
    pub arguments_sha256: Option<String>,
}

/// A no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DenyRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Reason, which is reported to the caller of the tool.
    #[schemars(length(min = 1, max = LONGEST_REASON), regex(pattern = REASON_PATTERN))]
    pub reason: String,
    /// Digest of the reviewed arguments. The decision is rejected if the call has other arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", regex(pattern = DIGEST_PATTERN))]
    pub arguments_sha256: Option<String>,
}

/// A reason that is not blank.
pub(super) struct Reason(pub(super) String);

/// A digest of arguments.
struct Sha256(String);

// === impl ApproveRequest ===

impl ApproveRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for ApproveRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let reason = fields.optional("reason");
        let digest = fields.optional("arguments_sha256");
        fields.finish()?;
        Some(Self {
            version: version?,
            reason: reason?.map(|Reason(text)| text),
            arguments_sha256: digest?.map(|Sha256(text)| text),
        })
    }
}

// === impl DenyRequest ===

impl DenyRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for DenyRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let reason = fields.required("reason");
        let digest = fields.optional("arguments_sha256");
        fields.finish()?;
        let Reason(reason) = reason?;
        Some(Self { version: version?, reason, arguments_sha256: digest?.map(|Sha256(text)| text) })
    }
}

impl Decode for Reason {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str().filter(|text| is_reason(text)) {
            Some(text) => Some(Self(text.to_owned())),
            None => at.mistyped(node, "a reason of 1 to 1024 characters"),
        }
    }
}

impl Decode for Sha256 {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str().filter(|text| is_digest(text)) {
            Some(text) => Some(Self(text.to_owned())),
            None => at.mistyped(node, "a SHA-256 in 64 lower-case hexadecimal digits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_requires_a_reason_and_approval_does_not() {
        assert!(ApproveRequest::parse(br#"{"version":1}"#).is_ok());
        assert!(DenyRequest::parse(br#"{"version":1,"reason":"too risky"}"#).is_ok());
        for wrong in
            [r#"{"version":1}"#, r#"{"version":1,"reason":" "}"#, r#"{"version":1,"reason":"x","by":"ada"}"#]
        {
            assert!(DenyRequest::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let digest = "0123456789abcdef".repeat(4);
        let named =
            ApproveRequest::parse(format!(r#"{{"version":1,"arguments_sha256":"{digest}"}}"#).as_bytes());
        assert_eq!(named.unwrap().arguments_sha256, Some(digest));
        for wrong in [
            "{}",
            r#"{"version":1,"reason":7}"#,
            r#"{"version":1,"always":true}"#,
            r#"{"version":1,"arguments_sha256":"ABC"}"#,
        ] {
            assert!(ApproveRequest::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
