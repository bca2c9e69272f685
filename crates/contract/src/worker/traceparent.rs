//! The trace that a request belongs to (W3C Trace Context, header `traceparent`).

use crate::decode::{Decode, DecodeContext};
use crate::json::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;

/// A `traceparent`: version, trace id, parent id and flags, in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct TraceParent(String);

/// The text is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not {EXPECTED}")]
pub struct ParseTraceParentError;

const EXPECTED: &str = "a W3C traceparent such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01, with ids that aren't zero";
const PATTERN: &str = "^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$";

// === impl TraceParent ===

impl TraceParent {
    /// Reads a `traceparent` of version 00.
    ///
    /// # Errors
    /// [`ParseTraceParentError`] for every other text.
    pub fn parse(text: &str) -> Result<Self, ParseTraceParentError> {
        let is_hex = |part: &str, digits: usize| {
            part.len() == digits && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
        let parts: Vec<&str> = text.split('-').collect();
        match parts.as_slice() {
            ["00", trace, parent, flags]
                if is_hex(trace, 32)
                    && is_hex(parent, 16)
                    && is_hex(flags, 2)
                    && !is_zero(trace)
                    && !is_zero(parent) =>
            {
                Ok(Self(text.to_owned()))
            }
            _ => Err(ParseTraceParentError),
        }
    }

    /// The id of the trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        self.0.get(3..35).unwrap_or_default()
    }
}

impl From<TraceParent> for String {
    fn from(parent: TraceParent) -> Self {
        parent.0
    }
}

impl JsonSchema for TraceParent {
    fn schema_name() -> Cow<'static, str> {
        "TraceParent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN })
    }
}

impl Decode for TraceParent {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        at.parsed(node, EXPECTED, Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparent_accepts_only_version_00_with_nonzero_ids() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(TraceParent::parse(good).unwrap().trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let (zero, upper, longer) = (
            good.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            good.to_uppercase(),
            format!("{good}-00"),
        );
        for text in ["", "00", &good[1..], &zero, &upper, &longer, &good.replace("00-4", "01-4"), &good[..54]]
        {
            assert_eq!(TraceParent::parse(text), Err(ParseTraceParentError), "{text}");
        }
    }
}
