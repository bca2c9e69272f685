//! Typed ids: a job's id can't be passed where a task's is expected.
//!
//! Ids from outside are UUIDs in the hyphenated form and are kept as written, so that a client that correlates by text
//! finds the text it sent. They are therefore also safe as file names.

mod named;

pub use named::{AgentId, GroupId, LONGEST, ParseNamedIdError, ProjectId, SkillId, UserId};

use crate::decode::{Decode, DecodeContext};
use crate::json::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use uuid::Uuid;

/// The text is not a UUID in the hyphenated form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID in the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")]
pub struct ParseIdError;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// Reads the hyphenated form.
            ///
            /// # Errors
            /// [`ParseIdError`] for every other text, the other notations of UUIDs included.
            pub fn parse(text: &str) -> Result<Self, ParseIdError> {
                check_uuid(text).map(|()| Self(text.to_owned()))
            }

            /// The id that is that UUID.
            pub fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid.as_hyphenated().to_string())
            }

            /// Returns the id in lower case, for comparisons.
            pub fn key(&self) -> String {
                self.0.to_ascii_lowercase()
            }

            /// Equal id in lower case; two ids are the same if these are equal.
            #[must_use]
            pub fn canonical(&self) -> Self {
                Self(self.key())
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
            type Error = ParseIdError;

            fn try_from(text: String) -> Result<Self, ParseIdError> {
                check_uuid(&text).map(|()| Self(text))
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
                json_schema!({ "type": "string", "format": "uuid", "pattern": UUID_PATTERN })
            }
        }

        impl Decode for $name {
            fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
                at.parsed(node, "a UUID such as 0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e", Self::parse)
            }
        }
    };
}

id! {
    /// Id of a job; chosen by the client that submits it (`docs/contracts/job.md#j7.2`).
    JobId
}
id! {
    /// The task a job belongs to.
    TaskId
}
id! {
    /// Id of an attempt at a job in one sandbox; made by the host.
    RunId
}
id! {
    /// Id of a sandbox that persists over many commands; chosen by the client that opens it.
    SessionId
}
id! {
    /// A terminal in a session; made by the host.
    PtyId
}
id! {
    /// Id of an execution grant ([`crate::grant`]).
    GrantId
}
id! {
    /// Id of a call of a model; made by the host, and known to the upstream.
    CallId
}

id! {
    /// Id of a tunnel or request through the egress proxy; made by the host.
    PassageId
}
id! {
    /// Id of an approval; made by the host.
    ApprovalId
}

/// The hyphenated form, either case.
const UUID_PATTERN: &str = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$";

/// Reads a UUID in the hyphenated form.
///
/// # Errors
/// [`ParseIdError`] for every other text, the other notations of UUIDs included.
pub fn parse_uuid(text: &str) -> Result<Uuid, ParseIdError> {
    // The crate also reads braced, URN and undashed notations; only one of them is our wire form.
    const HYPHENATED_LENGTH: usize = 36;
    Uuid::try_parse(text).ok().filter(|_| text.len() == HYPHENATED_LENGTH).ok_or(ParseIdError)
}

fn check_uuid(text: &str) -> Result<(), ParseIdError> {
    parse_uuid(text).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_accepts_only_hyphenated_uuids_and_preserves_case() {
        let upper = "0192F0C1-7D3E-7C4A-9B1E-5F6A7B8C9D0E";
        assert_eq!(JobId::parse(upper).unwrap().as_str(), upper);
        for other in
            ["", "..", "job-1", "0192f0c17d3e7c4a9b1e5f6a7b8c9d0e", "{0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e}"]
        {
            assert_eq!(JobId::parse(other), Err(ParseIdError), "{other}");
        }
    }
}
