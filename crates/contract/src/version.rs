//! The protocol's version, `MAJOR.MINOR` (`docs/contracts/job.md#j16`).
//!
//! An unknown major version is rejected. A minor version above ours is accepted, but treated like ours: members that
//! only that version knows are unknown here and rejected, so that nothing requested is silently ignored.

use crate::decode::{Decode, DecodeContext};
use crate::json::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A version whose major is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProtocolVersion {
    minor: u32,
}

/// Reason why a version is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseVersionError {
    /// The text is not two decimal numbers.
    #[error("not of the form MAJOR.MINOR")]
    Malformed,
    /// The major version is not supported by this build.
    #[error("unknown major version {major}")]
    UnknownMajor {
        /// The major found.
        major: u32,
    },
}

// === impl ProtocolVersion ===

impl ProtocolVersion {
    /// The only supported major version.
    pub const MAJOR: u32 = 1;
    const MOST_DIGITS: usize = 9;
    /// Version that this build writes.
    pub const OURS: Self = Self { minor: 0 };

    /// Reads `MAJOR.MINOR`.
    ///
    /// # Errors
    /// [`ParseVersionError`] when the text has another form or another major.
    pub fn parse(text: &str) -> Result<Self, ParseVersionError> {
        let (major, minor) = text.split_once('.').ok_or(ParseVersionError::Malformed)?;
        let (major, minor) = (parse_part(major)?, parse_part(minor)?);
        match major {
            Self::MAJOR => Ok(Self { minor }),
            major => Err(ParseVersionError::UnknownMajor { major }),
        }
    }
}

fn parse_part(digits: &str) -> Result<u32, ParseVersionError> {
    let canonical = digits == "0" || !digits.starts_with('0');
    if !canonical
        || digits.len() > ProtocolVersion::MOST_DIGITS
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(ParseVersionError::Malformed);
    }
    digits.parse().map_err(|_| ParseVersionError::Malformed)
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", Self::MAJOR, self.minor)
    }
}

impl TryFrom<String> for ProtocolVersion {
    type Error = ParseVersionError;

    fn try_from(text: String) -> Result<Self, ParseVersionError> {
        Self::parse(&text)
    }
}

impl From<ProtocolVersion> for String {
    fn from(version: ProtocolVersion) -> Self {
        version.to_string()
    }
}

impl JsonSchema for ProtocolVersion {
    fn schema_name() -> Cow<'static, str> {
        "ProtocolVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "MAJOR.MINOR; the major must be 1.",
            "type": "string",
            "pattern": "^1\\.(0|[1-9][0-9]{0,8})$",
        })
    }
}

impl Decode for ProtocolVersion {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        at.parsed(node, "a version of major 1, such as \"1.0\"", Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_minor_version_is_accepted_and_other_major_rejected() {
        assert_eq!(ProtocolVersion::parse("1.7").unwrap().to_string(), "1.7");
        assert_eq!(ProtocolVersion::parse("99.0"), Err(ParseVersionError::UnknownMajor { major: 99 }));
        for malformed in
            ["", "1", "1.", ".0", "01.0", "1.00", "1.0.0", "+1.0", "1.-1", "1.1000000000", "one.two"]
        {
            assert_eq!(ProtocolVersion::parse(malformed), Err(ParseVersionError::Malformed), "{malformed}");
        }
    }
}
