//! Which preferences hold for somebody: of each key the nearest value, by task > project > user > group > system.
//!
//! ```text
//! entries ─► those of the scopes ─► by nearness (groups by their ids), then age, then id ─► later over earlier
//!                 └─ a value that isn't what it is said to be: skipped, and told; what is further away shows through
//! ```

use belljar_contract::key::Key;
use belljar_contract::preference::{Preference, ValueType};
use belljar_contract::scope::{Scope, Scopes};
use serde_json::Value;
use std::collections::BTreeMap;

/// What holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effective {
    /// Of each key the value that holds. One of `null` says that nothing does, whatever is further away.
    pub values: BTreeMap<Key, Applied>,
    /// What was passed over, in the order in which it was come by.
    pub skipped: Vec<Skipped>,
}

/// A value that holds, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The value.
    pub value: Value,
    /// Whom it is for.
    pub scope: Scope,
    /// Which version of the entry it is.
    pub version: u64,
}

/// An entry that was passed over, as its value is not what it is said to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The entry.
    pub id: u64,
    /// Whom it is for.
    pub scope: Scope,
    /// What it is about.
    pub key: Key,
    /// Which version it is.
    pub version: u64,
    /// What the value is said to be.
    pub value_type: ValueType,
}

/// The agents to whom something more may be told than their task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// `agents.project_manager`
    ProjectManager,
    /// `agents.project_analyst`
    ProjectAnalyst,
    /// `agents.sandbox_agent`
    Sandbox,
}

/// What several pieces of additional context have between them.
const BETWEEN: &str = "\n\n";

/// What holds of these for somebody who is in those scopes. Entries of other scopes are none of theirs.
pub fn effective(entries: &[Preference], scopes: &Scopes) -> Effective {
    let nearness: BTreeMap<String, usize> =
        scopes.all().iter().enumerate().map(|(near, scope)| (scope.key(), near)).collect();
    let mut theirs: Vec<_> =
        entries.iter().filter_map(|entry| Some((*nearness.get(&entry.scope.key())?, entry))).collect();
    theirs.sort_by_key(|(near, entry)| (*near, entry.updated_at, entry.id));
    let mut effective = Effective::default();
    for (_, entry) in theirs {
        effective.apply(entry);
    }
    effective
}

// === impl Effective ===

impl Effective {
    fn apply(&mut self, entry: &Preference) {
        let Preference { id, scope, key, value, value_type, version, .. } = entry.clone();
        if is_what_it_should_be(entry) {
            self.values.insert(key, Applied { value, scope, version });
        } else {
            self.skipped.push(Skipped { id, scope, key, version, value_type });
        }
    }

    /// The value of a key, if there is one that isn't `null`.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.values.get(key).map(|applied| &applied.value).filter(|value| !value.is_null())
    }

    /// What an agent is to be told besides its task: the text, or the texts of a list one after the other. Nothing if there is
    /// nothing in it.
    pub fn additional_context(&self, agent: Agent) -> Option<String> {
        let key = Key::parse(agent.key()).ok()?;
        let text = match self.get(&key)? {
            Value::String(text) => text.clone(),
            Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(BETWEEN),
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    }
}

/// Whether the value is what it is said to be, and, where the key has a meaning here, what that takes.
fn is_what_it_should_be(entry: &Preference) -> bool {
    if !entry.value_type.is_of(&entry.value) {
        return false;
    }
    let is_context = Agent::ALL.iter().any(|agent| agent.key() == entry.key.as_str());
    !is_context
        || match &entry.value {
            Value::Null | Value::String(_) => true,
            Value::Array(texts) => texts.iter().all(Value::is_string),
            _ => false,
        }
}

// === impl Agent ===

impl Agent {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ProjectManager, Self::ProjectAnalyst, Self::Sandbox];

    /// The key of what it is told besides.
    pub fn key(self) -> &'static str {
        match self {
            Self::ProjectManager => "agents.project_manager.additional_context",
            Self::ProjectAnalyst => "agents.project_analyst.additional_context",
            Self::Sandbox => "agents.sandbox_agent.additional_context",
        }
    }
}

#[cfg(test)]
mod tests;
