//! [`Decode`] for the types of JSON itself.

use super::fields::refuse_repeated_names;
use super::{Decode, DecodeContext};
use crate::json::Node;
use serde_json::Value;
use std::collections::BTreeMap;

impl Decode for bool {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node {
            Node::Bool(value) => Some(*value),
            other => at.mistyped(other, "true or false"),
        }
    }
}

impl Decode for String {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node {
            Node::String(text) => Some(text.clone()),
            other => at.mistyped(other, "a string"),
        }
    }
}

impl Decode for Value {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        refuse_repeated_below(node, at).then(|| node.to_value())
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let Node::Array(elements) = node else { return at.mistyped(node, "an array") };
        // Every element is read, also after a bad one, so that all their problems are listed.
        let decoded: Vec<Option<T>> = elements
            .iter()
            .enumerate()
            .map(|(index, element)| T::decode(element, &mut at.element(index)))
            .collect();
        decoded.into_iter().collect()
    }
}

impl<T: Decode> Decode for BTreeMap<String, T> {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let Node::Object(members) = node else { return at.mistyped(node, "an object") };
        let unique = refuse_repeated_names(members, at);
        let decoded: Vec<Option<(String, T)>> = members
            .iter()
            .map(|(name, value)| Some((name.clone(), T::decode(value, &mut at.member(name))?)))
            .collect();
        decoded.into_iter().collect::<Option<Self>>().filter(|_| unique)
    }
}

fn refuse_repeated_below(node: &Node, at: &mut DecodeContext<'_, '_>) -> bool {
    match node {
        Node::Array(elements) => elements.iter().enumerate().fold(true, |sound, (index, child)| {
            refuse_repeated_below(child, &mut at.element(index)) && sound
        }),
        Node::Object(members) => {
            let unique = refuse_repeated_names(members, at);
            members.iter().fold(unique, |sound, (name, child)| {
                refuse_repeated_below(child, &mut at.member(name)) && sound
            })
        }
        _ => true,
    }
}

/// A whole number within `range`.
pub(crate) fn whole_number(
    node: &Node,
    at: &mut DecodeContext<'_, '_>,
    range: std::ops::RangeInclusive<u64>,
) -> Option<u64> {
    let number = match node {
        Node::Number(number) => number.as_u64(),
        _ => None,
    };
    match number.filter(|number| range.contains(number)) {
        Some(number) => Some(number),
        None => {
            let plainly = match node {
                Node::Number(number) if number.is_f64() => ", without fraction or exponent",
                _ => "",
            };
            let expected = format!("a whole number from {} to {}{plainly}", range.start(), range.end());
            at.mistyped(node, expected)
        }
    }
}
