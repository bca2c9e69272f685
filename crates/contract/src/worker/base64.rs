//! Bytes in a document: base64 (RFC 4648 §4, with padding), up to a bound.

use crate::decode::DecodeContext;
use crate::json::Node;
use ::base64::Engine;
use ::base64::engine::general_purpose::STANDARD;

/// Pattern of the accepted texts, for schemas.
pub(super) const PATTERN: &str =
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";

/// Decodes bytes, up to a maximum number.
pub(super) fn decode(node: &Node, at: &mut DecodeContext<'_, '_>, most: usize) -> Option<Vec<u8>> {
    let expected = format!("at most {most} bytes, in base64");
    let Some(text) = node.as_str() else { return at.mistyped(node, expected) };
    match STANDARD.decode(text) {
        Ok(data) if data.len() <= most => Some(data),
        Ok(data) => {
            at.refuse(format!("{} bytes", data.len()), expected);
            None
        }
        Err(_) => at.mistyped(node, expected),
    }
}
