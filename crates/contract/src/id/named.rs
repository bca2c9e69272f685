//! Ids that other systems assign: of people, groups, projects, skills. They are printable text, kept as written, and
//! compared case-sensitively.

use crate::decode::{Decode, DecodeContext};
use crate::json::Node;
use crate::text::is_printable;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The text is no such id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of 1 to {LONGEST} bytes of printable text")]
pub struct ParseNamedIdError;

/// An id has no more bytes.
pub const LONGEST: usize = 128;

/// Pattern for schemas, which requests must match.
const ON_THE_WIRE: &str = "^[!-~]{1,128}$";

/// Checks an id from a request.
fn on_the_wire(text: &str) -> Result<&str, ParseNamedIdError> {
    let is_one = (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_one.then_some(text).ok_or(ParseNamedIdError)
}

macro_rules! named {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// Reads an id: 1 to 128 bytes, nothing hidden, no line ends, no space at its ends.
            ///
            /// # Errors
            /// [`ParseNamedIdError`] for every other text.
            pub fn parse(text: &str) -> Result<Self, ParseNamedIdError> {
                check(text).map(|()| Self(text.to_owned()))
            }

            /// The id as it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseNamedIdError;

            fn try_from(text: String) -> Result<Self, ParseNamedIdError> {
                check(&text).map(|()| Self(text))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": ON_THE_WIRE })
            }
        }

        impl Decode for $name {
            fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
                at.parsed(node, "1 to 128 visible characters of ASCII", |text| on_the_wire(text).and_then(Self::parse))
            }
        }
    };
}

named! {
    /// A person who uses the system.
    UserId
}
named! {
    /// Id of a group of users.
    GroupId
}
named! {
    /// Id of an agent, assigned by the system that runs it.
    AgentId
}
named! {
    /// A project that tasks belong to.
    ProjectId
}
named! {
    /// Id of a skill.
    SkillId
}

fn check(text: &str) -> Result<(), ParseNamedIdError> {
    match text.len() <= LONGEST && is_printable(text) {
        true => Ok(()),
        false => Err(ParseNamedIdError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_id_must_be_printable_and_short_and_is_unchanged() {
        for text in ["a", "Ada Lovelace", "grüße", &"x".repeat(LONGEST)] {
            assert_eq!(UserId::parse(text).unwrap().as_str(), text);
        }
        for text in ["", " a", "a\n", "a\0b", "a\u{202e}b", &"x".repeat(LONGEST + 1), &"é".repeat(65)] {
            assert_eq!(UserId::parse(text), Err(ParseNamedIdError), "{text:?}");
        }
    }
}
