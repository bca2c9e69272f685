//! Which subschemas a schema applies, and to what of an instance.

use serde_json::{Map, Value};

/// What a subschema is applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// The value itself.
    Value,
    /// The value itself, a second time to say what is wrong with it.
    ValueAgain,
    /// The member of that name.
    Member(String),
    /// Members whose names match a pattern: any of them.
    AnyMember,
    /// Members that `properties` doesn't name.
    OtherMembers,
    /// Members that no subschema has looked at: whether one has takes looking again.
    UnevaluatedMembers,
    /// The names of the members.
    Names,
    /// The item of that index.
    Item(usize),
    /// The items from that index on.
    ItemsFrom(usize),
    /// Any item, a second time to count those that match.
    AnyItem,
    /// Items that no subschema has looked at.
    UnevaluatedItems,
}

// === impl Target ===

impl Target {
    /// Returns true if the subschema consumes nothing of the instance.
    pub(super) const fn is_in_place(&self) -> bool {
        matches!(self, Self::Value | Self::ValueAgain)
    }
}

/// Calls `found` for each subschema that `schema` applies, but for that of `$ref`. Keywords of older drafts count, too: at worst, a
/// schema is taken for a more expensive one.
pub(super) fn each<'v>(schema: &'v Map<String, Value>, mut found: impl FnMut(Target, &'v Value)) {
    let prefix = ["prefixItems", "items"].iter().filter_map(|name| schema.get(*name)?.as_array());
    let prefix = prefix.map(Vec::len).max().unwrap_or_default();
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("allOf", Value::Array(all)) => all.iter().for_each(|one| found(Target::Value, one)),
            ("anyOf" | "oneOf", Value::Array(all)) => {
                all.iter().for_each(|one| found(Target::ValueAgain, one));
            }
            ("not" | "if" | "then" | "else" | "contentSchema", one) => found(Target::ValueAgain, one),
            ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                let schemas = all.values().filter(|one| !one.is_array());
                schemas.for_each(|one| found(Target::ValueAgain, one));
            }
            ("properties", Value::Object(all)) => {
                all.iter().for_each(|(name, one)| found(Target::Member(name.clone()), one));
            }
            ("patternProperties", Value::Object(all)) => {
                all.values().for_each(|one| found(Target::AnyMember, one));
            }
            ("additionalProperties", one) => found(Target::OtherMembers, one),
            ("unevaluatedProperties", one) => found(Target::UnevaluatedMembers, one),
            ("propertyNames", one) => found(Target::Names, one),
            ("prefixItems" | "items", Value::Array(all)) => {
                all.iter().enumerate().for_each(|(index, one)| found(Target::Item(index), one));
            }
            ("items" | "additionalItems", one) => found(Target::ItemsFrom(prefix), one),
            ("contains", one) => found(Target::AnyItem, one),
            ("unevaluatedItems", one) => found(Target::UnevaluatedItems, one),
            _ => {}
        }
    }
}

/// What a look at one value takes besides the subschemas: each entry of each keyword counts.
pub(super) fn own_work(schema: &Map<String, Value>) -> u64 {
    let entries = schema.iter().map(|(keyword, value)| match (keyword.as_str(), value) {
        ("enum" | "const", value) => values(value),
        (_, Value::Array(all)) => all.len() as u64,
        (_, Value::Object(all)) => all.len() as u64,
        _ => 0,
    });
    entries.sum::<u64>() + 1
}

/// The number of values of which a value is made.
pub(super) fn values(value: &Value) -> u64 {
    1 + match value {
        Value::Array(all) => all.iter().map(values).sum(),
        Value::Object(all) => all.values().map(values).sum(),
        _ => 0,
    }
}
