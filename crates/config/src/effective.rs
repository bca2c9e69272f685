//! The effective configuration: each value with the source that it comes from.
//!
//! Secrets are never in it. A value that may be one is left out, and its source is stated.

mod lines;

use crate::json;
use crate::reference::{AcceptedValues, Member, MemberDefault, Override, ROOT};
use belljar_contract::category::Category;
use belljar_contract::yaml::{Node, Value};
use belljar_sandbox::config::Sandboxing;
use serde_json::Value as Json;
use std::collections::BTreeMap;

pub use lines::lines;

/// A member with its value and the source of the value.
#[derive(Debug, Clone, PartialEq)]
pub struct EffectiveValue {
    /// Path from the root, such as `sandboxing.docker.image`, with the index of list items.
    pub path: String,
    /// The value.
    pub value: ShownValue,
    /// Source of the value.
    pub source: ValueSource,
}

/// A value, as far as it can be shown.
#[derive(Debug, Clone, PartialEq)]
pub enum ShownValue {
    /// A value, as YAML in one line and as JSON.
    Value {
        /// YAML.
        yaml: String,
        /// JSON.
        json: Json,
    },
    /// A default that no value expresses, in words.
    Described(&'static str),
    /// A value that may be a secret.
    Secret,
    /// The member has members of its own, which follow.
    Members,
    /// The member is a list, whose items follow.
    Items,
    /// An item of a list, whose members follow.
    Item,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSource {
    /// The default.
    Default,
    /// The configuration file.
    File {
        /// The line.
        line: usize,
    },
    /// An environment variable.
    Variable(&'static str),
    /// An option of the command line.
    Flag(&'static str),
}

/// Values that take precedence over the file or its defaults.
#[derive(Debug, Default)]
pub struct Overrides {
    /// Values of options, by option.
    pub flags: BTreeMap<&'static str, String>,
    /// Values of environment variables, by name.
    pub variables: BTreeMap<&'static str, String>,
}

/// State while one configuration is read.
struct Reader<'r> {
    overrides: &'r Overrides,
    sandboxing: &'r Sandboxing,
    values: Vec<EffectiveValue>,
}

/// Returns the values of a document, `None` standing for no file. `sandboxing` is the parsed section of it.
pub fn effective(root: Option<&Node>, sandboxing: &Sandboxing, overrides: &Overrides) -> Vec<EffectiveValue> {
    let mut reader = Reader { overrides, sandboxing, values: Vec::new() };
    reader.members("", ROOT, root);
    reader.values
}

/// Returns the environment variables that members may take a value from.
pub fn variables() -> Vec<&'static str> {
    fn walk(members: &[Member], found: &mut Vec<&'static str>) {
        for member in members {
            found.extend(member.overrides.iter().filter_map(|source| match source {
                Override::Variable(name) => Some(*name),
                Override::Flag { .. } => None,
            }));
            member.below().into_iter().for_each(|below| walk(below, found));
        }
    }
    let mut found = Vec::new();
    walk(ROOT, &mut found);
    found
}

// === impl Reader ===

impl Reader<'_> {
    fn members(&mut self, above: &str, members: &[Member], node: Option<&Node>) {
        for member in members {
            let path = format!("{above}{}", member.name);
            self.member(path, member, node.and_then(|node| node.member(&[member.name])));
        }
    }

    fn member(&mut self, path: String, member: &Member, node: Option<&Node>) {
        if path == "sandboxing.overrides" {
            return self.backends(&path, node);
        }
        if let Some((source, text)) = self.overriding(member, node.is_some()) {
            let value = match is_secret_url(&text) {
                true => ShownValue::Secret,
                false => ShownValue::Value { json: json::of_text(&text), yaml: text },
            };
            return self.note(path, value, source);
        }
        match (member.takes, node) {
            (AcceptedValues::Section(below), node) if node.is_some() || self.descends(member) => {
                self.note(path.clone(), ShownValue::Members, source_of(node));
                self.members(&format!("{path}."), below, node);
            }
            (AcceptedValues::Sections(below), Some(node)) => self.items(&path, below, node),
            (_, Some(node)) if (member.is_secret && !is_empty(node)) || holds_secret(node) => {
                self.note(path, ShownValue::Secret, source_of(Some(node)));
            }
            (_, Some(node)) => {
                let value = ShownValue::Value { yaml: lines::written(node), json: json::of_node(node) };
                self.note(path, value, source_of(Some(node)));
            }
            // Another of several members has the value.
            (_, None) if member.is_alternative => {}
            (_, None) => self.default(path, member),
        }
    }

    /// Returns true if an absent section has the defaults of its members, or a value from the environment.
    fn descends(&self, member: &Member) -> bool {
        let is_set = |below: &&Member| self.overriding(below, false).is_some();
        matches!(member.default, MemberDefault::Members)
            || member.name == "sandboxing"
            || member.below().is_some_and(|below| below.iter().any(|member| is_set(&member)))
    }

    fn items(&mut self, path: &str, below: &[Member], node: &Node) {
        let Value::Sequence(items) = &node.value else { return };
        self.note(path.to_owned(), ShownValue::Items, source_of(Some(node)));
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            self.note(path.clone(), ShownValue::Item, source_of(Some(item)));
            self.members(&format!("{path}."), below, Some(item));
        }
    }

    fn default(&mut self, path: String, member: &Member) {
        let value = match member.default {
            MemberDefault::Value(text) => {
                ShownValue::Value { yaml: text.to_owned(), json: json::of_text(text) }
            }
            MemberDefault::Described(words, _) => ShownValue::Described(words),
            MemberDefault::Required(_) | MemberDefault::Members => return,
        };
        self.note(path, value, ValueSource::Default);
    }

    /// Notes the backend of each category that has another one than the default, or a written one.
    fn backends(&mut self, path: &str, node: Option<&Node>) {
        self.note(path.to_owned(), ShownValue::Members, source_of(node));
        for category in Category::ALL {
            let written = match node.map(|node| &node.value) {
                Some(Value::Mapping(members)) => {
                    members.iter().find(|(key, _)| Category::named(&key.name) == Some(category))
                }
                _ => None,
            };
            let backend = self.sandboxing.backend_for(category);
            if written.is_some() || backend != self.sandboxing.default_backend {
                let yaml = backend.to_string();
                let value = ShownValue::Value { json: Json::from(yaml.as_str()), yaml };
                self.note(format!("{path}.{category}"), value, source_of(written.map(|(_, node)| node)));
            }
        }
    }

    fn overriding(&self, member: &Member, is_written: bool) -> Option<(ValueSource, String)> {
        member.overrides.iter().find_map(|source| match *source {
            Override::Flag { name, .. } => {
                self.overrides.flags.get(name).map(|value| (ValueSource::Flag(name), value.clone()))
            }
            Override::Variable(_) if is_written => None,
            Override::Variable(name) => {
                let value = self.overrides.variables.get(name)?;
                // In quotes: it may be any text.
                Some((ValueSource::Variable(name), Json::from(value.as_str()).to_string()))
            }
        })
    }

    fn note(&mut self, path: String, value: ShownValue, source: ValueSource) {
        self.values.push(EffectiveValue { path, value, source });
    }
}

/// Returns true for a list or a mapping without entries, which holds no secret.
fn is_empty(node: &Node) -> bool {
    match &node.value {
        Value::Sequence(items) => items.is_empty(),
        Value::Mapping(members) => members.is_empty(),
        Value::Plain(_) | Value::Text(_) => false,
    }
}

/// Returns true if a text in a value is a URL that may hold a secret.
fn holds_secret(node: &Node) -> bool {
    match &node.value {
        Value::Plain(text) | Value::Text(text) => is_secret_url(text),
        Value::Sequence(items) => items.iter().any(holds_secret),
        Value::Mapping(members) => members.iter().any(|(_, node)| holds_secret(node)),
    }
}

/// Returns true for a URL with a query, or with a user and perhaps a password.
fn is_secret_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| rest.contains(['?', '@']))
}

fn source_of(node: Option<&Node>) -> ValueSource {
    node.map_or(ValueSource::Default, |node| ValueSource::File { line: node.position.line })
}

#[cfg(test)]
mod tests;
