//! Effective preferences of a caller: for each key the value of the nearest scope, by task > project > user > group > system.
//!
//! ```text
//! entries ─► those of the scopes ─► by nearness (groups by their ids), then age, then id ─► later over earlier
//!                 └─ a value of another type than declared: skipped and reported; the next farther value counts
//! ```

use belljar_contract::key::Key;
use belljar_contract::preference::{Preference, ValueType};
use belljar_contract::scope::{Scope, Scopes};
use serde_json::Value;
use std::collections::BTreeMap;

/// Effective preferences.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EffectivePreferences {
    /// Effective value of each key. `null` unsets the key, whatever values farther scopes have.
    pub values: BTreeMap<Key, EffectiveValue>,
    /// Entries that were skipped, in the order in which they were found.
    pub skipped: Vec<SkippedPreference>,
}

/// Effective value with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveValue {
    /// The value.
    pub value: Value,
    /// Scope of the entry.
    pub scope: Scope,
    /// Version of the entry.
    pub version: u64,
}

/// Entry that was skipped because its value does not match its declared type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedPreference {
    /// Id of the entry.
    pub id: u64,
    /// Scope of the entry.
    pub scope: Scope,
    /// Key of the entry.
    pub key: Key,
    /// Version of the entry.
    pub version: u64,
    /// Declared type of the value.
    pub value_type: ValueType,
}

/// Agents that can get additional context besides their task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextAgent {
    /// `agents.project_manager`
    ProjectManager,
    /// `agents.project_analyst`
    ProjectAnalyst,
    /// `agents.sandbox_agent`
    Sandbox,
}

/// Separator between several pieces of additional context.
const BETWEEN: &str = "\n\n";

/// Returns the effective preferences of a caller with those scopes. Entries of other scopes are ignored.
pub fn effective(entries: &[Preference], scopes: &Scopes) -> EffectivePreferences {
    let nearness: BTreeMap<String, usize> =
        scopes.all().iter().enumerate().map(|(near, scope)| (scope.key(), near)).collect();
    let mut theirs: Vec<_> =
        entries.iter().filter_map(|entry| Some((*nearness.get(&entry.scope.key())?, entry))).collect();
    theirs.sort_by_key(|(near, entry)| (*near, entry.updated_at, entry.id));
    let mut effective = EffectivePreferences::default();
    for (_, entry) in theirs {
        effective.apply(entry);
    }
    effective
}

// === impl EffectivePreferences ===

impl EffectivePreferences {
    fn apply(&mut self, entry: &Preference) {
        let Preference { id, scope, key, value, value_type, version, .. } = entry.clone();
        if is_what_it_should_be(entry) {
            self.values.insert(key, EffectiveValue { value, scope, version });
        } else {
            self.skipped.push(SkippedPreference { id, scope, key, version, value_type });
        }
    }

    /// Returns the value of a key, unless it is missing or `null`.
    pub fn get(&self, key: &Key) -> Option<&Value> {
        self.values.get(key).map(|applied| &applied.value).filter(|value| !value.is_null())
    }

    /// Returns the additional context of an agent: a text, or the texts of a list one after the other. Returns `None` if it is
    /// empty.
    pub fn additional_context(&self, agent: ContextAgent) -> Option<String> {
        let key = Key::parse(agent.key()).ok()?;
        let text = match self.get(&key)? {
            Value::String(text) => text.clone(),
            Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(BETWEEN),
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    }
}

/// Returns true if the value has its declared type and, for a key with a known meaning, the type that the key requires.
fn is_what_it_should_be(entry: &Preference) -> bool {
    if !entry.value_type.is_of(&entry.value) {
        return false;
    }
    let is_context = ContextAgent::ALL.iter().any(|agent| agent.key() == entry.key.as_str());
    !is_context
        || match &entry.value {
            Value::Null | Value::String(_) => true,
            Value::Array(texts) => texts.iter().all(Value::is_string),
            _ => false,
        }
}

// === impl ContextAgent ===

impl ContextAgent {
    /// All agents.
    pub const ALL: [Self; 3] = [Self::ProjectManager, Self::ProjectAnalyst, Self::Sandbox];

    /// Returns the key of the agent's additional context.
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
