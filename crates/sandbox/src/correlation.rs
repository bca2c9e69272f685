//! Ids of the agent, session, task and request that a call in a sandbox is for, as others gave them: in the environment
//! inside, and in every event.

use belljar_contract::id::RunId;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Ids that a call is for, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Correlation {
    /// The agent.
    pub agent_id: Option<CorrelationId>,
    /// The agent's session.
    pub session_id: Option<CorrelationId>,
    /// The agent's task.
    pub task_id: Option<CorrelationId>,
    /// The request that led to the call.
    pub request_id: Option<CorrelationId>,
}

/// An id that another program chose: 1 to 128 letters, digits and `. _ : @ / + -`, the first a letter or digit. Harmless in
/// an environment, in a log line and on a terminal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CorrelationId(String);

/// The text is no id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is 1 to {LONGEST} letters, digits and . _ : @ / + -, the first a letter or digit")]
pub struct InvalidCorrelationId;

const LONGEST: usize = 128;

/// Our own names, and those that `docs/contracts/tools.md#t6.2` gives.
const PREFIXES: [&str; 2] = ["BELLJAR", "SYNTHORG"];

// === impl Correlation ===

impl Correlation {
    /// Returns the variables with these ids for the environment inside. Variables of unknown ids are empty, so that no
    /// other value can stand in.
    pub fn env(&self) -> BTreeMap<String, String> {
        let ids = [
            ("AGENT_ID", &self.agent_id),
            ("SESSION_ID", &self.session_id),
            ("TASK_ID", &self.task_id),
            ("REQUEST_ID", &self.request_id),
        ];
        let named = ids.into_iter().flat_map(|(name, id)| {
            let value = id.as_ref().map_or("", CorrelationId::as_str);
            PREFIXES.map(|prefix| (format!("{prefix}_{name}"), value.to_owned()))
        });
        named.collect()
    }
}

/// Puts the id of a session where its variables are and are empty: backends make the ids of sandboxes, and one that is a session's only one has
/// the id of that.
pub fn fill_session(env: &mut BTreeMap<String, String>, session: &RunId) {
    for prefix in PREFIXES {
        if let Some(value) = env.get_mut(&format!("{prefix}_SESSION_ID")).filter(|value| value.is_empty()) {
            session.as_str().clone_into(value);
        }
    }
}

// === impl CorrelationId ===

impl CorrelationId {
    /// Reads an id.
    ///
    /// # Errors
    /// [`InvalidCorrelationId`] if it is none.
    pub fn parse(text: &str) -> Result<Self, InvalidCorrelationId> {
        let may_stand = |c: char| c.is_ascii_alphanumeric() || "._:@/+-".contains(c);
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        match begins_well && text.len() <= LONGEST && text.chars().all(may_stand) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidCorrelationId),
        }
    }

    /// The id as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for CorrelationId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_harmless_wherever_it_is_written() {
        for text in ["agent-1", "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e", "team/sarah@example.org", "a"] {
            assert_eq!(CorrelationId::parse(text).unwrap().as_str(), text);
        }
        let too_long = "a".repeat(129);
        for text in ["", " ", "-x", "a b", "a\nb", "a\0", "a=b", "ä", "\u{1b}[0m", "$(id)", too_long.as_str()]
        {
            assert_eq!(CorrelationId::parse(text), Err(InvalidCorrelationId), "{text:?}");
        }
    }

    #[test]
    fn what_is_unknown_is_empty_under_both_names() {
        let correlation =
            Correlation { agent_id: CorrelationId::parse("a-1").ok(), ..Correlation::default() };
        let env = correlation.env();
        assert_eq!(env.len(), 8);
        assert_eq!((env["BELLJAR_AGENT_ID"].as_str(), env["SYNTHORG_AGENT_ID"].as_str()), ("a-1", "a-1"));
        assert_eq!((env["BELLJAR_TASK_ID"].as_str(), env["SYNTHORG_REQUEST_ID"].as_str()), ("", ""));
    }
}
