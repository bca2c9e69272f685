//! Enumerates the subschemas of a schema, and the parts of an instance they apply to.

use serde_json::{Map, Value};

/// Part of an instance that a subschema applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// The value itself.
    Value,
    /// The value itself again, to report mistakes.
    ValueAgain,
    /// The member with that name.
    Member(String),
    /// Members whose names match a pattern: any member.
    AnyMember,
    /// Members not named in `properties`.
    OtherMembers,
    /// Members that no other subschema has evaluated. Finding them takes another evaluation.
    UnevaluatedMembers,
    /// The names of the members.
    Names,
    /// The item with that index.
    Item(usize),
    /// The items from that index on.
    ItemsFrom(usize),
    /// Any item, evaluated a second time to count matches.
    AnyItem,
    /// Items that no other subschema has evaluated.
    UnevaluatedItems,
}

// === impl Target ===

impl Target {
    /// Returns true if the subschema applies to the same value.
    pub(super) const fn is_in_place(&self) -> bool {
        matches!(self, Self::Value | Self::ValueAgain)
    }
}

/// Calls `found` for each subschema applied by `schema`, except `$ref`. Keywords of older drafts count too, so the work may be
/// overestimated.
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

/// Work per value without subschemas: each entry of each keyword counts.
pub(super) fn own_work(schema: &Map<String, Value>) -> u64 {
    let entries = schema.iter().map(|(keyword, value)| match (keyword.as_str(), value) {
        ("enum" | "const", value) => values(value),
        (_, Value::Array(all)) => all.len() as u64,
        (_, Value::Object(all)) => all.len() as u64,
        _ => 0,
    });
    entries.sum::<u64>() + 1
}

/// Number of values within a value, including itself.
pub(super) fn values(value: &Value) -> u64 {
    1 + match value {
        Value::Array(all) => all.iter().map(values).sum(),
        Value::Object(all) => all.values().map(values).sum(),
        _ => 0,
    }
}
