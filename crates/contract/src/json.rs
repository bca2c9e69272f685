//! Strict JSON: RFC 8259 and nothing beside it, with every member kept, so that duplicate names can be refused.
//!
//! `serde_json` does the parsing; what it is too lenient about (a repeated member name) stays visible in the
//! [`Node`] tree for the decoder to report with its path.

use crate::problem::Problem;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use std::fmt;

/// The largest document read at all, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// A JSON value whose objects keep their members in order, repeated names included.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as written, within the range of `u64`, `i64` or `f64`.
    Number(Number),
    /// A string with its escapes resolved.
    String(String),
    /// The elements in order.
    Array(Vec<Node>),
    /// The members in order.
    Object(Vec<(String, Node)>),
}

/// Parses one whole document.
///
/// # Errors
/// One [`Problem`] at `$` that names line and column: after a syntax error nothing else can be trusted.
pub fn parse(document: &[u8]) -> Result<Node, Problem> {
    if document.len() > MAX_DOCUMENT_BYTES {
        return Err(at_root(
            format!("a document of {} bytes", document.len()),
            format!("at most {MAX_DOCUMENT_BYTES} bytes"),
        ));
    }
    serde_json::from_slice(document).map_err(|error| at_root(found_in_text(&error), EXPECTED.to_owned()))
}

const EXPECTED: &str = "one JSON document (RFC 8259, UTF-8 without a byte order mark)";

fn at_root(found: String, expected: String) -> Problem {
    Problem { path: "$".to_owned(), found, expected }
}

fn found_in_text(error: &serde_json::Error) -> String {
    if error.is_eof() && error.line() <= 1 && error.column() == 0 {
        return "an empty document".to_owned();
    }
    format!("text that is not JSON: {error}")
}

// === impl Node ===

impl Node {
    /// What a reader of an error message should be told stands here; long text is cut.
    pub fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => format!("the number {number}"),
            Self::String(text) => format!("the string {}", quoted(text)),
            Self::Array(_) => "an array".to_owned(),
            Self::Object(_) => "an object".to_owned(),
        }
    }

    /// The member of that name, the first if it is repeated.
    pub fn member(&self, name: &str) -> Option<&Node> {
        match self {
            Self::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The same as a plain [`Value`]; of a repeated member the last one counts.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::String(text.clone()),
            Self::Array(elements) => Value::Array(elements.iter().map(Self::to_value).collect()),
            Self::Object(members) => {
                Value::Object(members.iter().map(|(name, value)| (name.clone(), value.to_value())).collect())
            }
        }
    }
}

/// The text in JSON quotes, cut after 60 characters.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Value::String(shown).to_string()
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Node, E> {
        Number::from_f64(value).map(Node::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node, A::Error> {
        let mut array = Vec::new();
        while let Some(element) = elements.next_element()? {
            array.push(element);
        }
        Ok(Node::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(Node::Object(object))
    }
}
