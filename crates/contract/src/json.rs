//! Strict JSON: RFC 8259 and nothing beside it, with every member kept, so that duplicate names can be refused.
//!
//! `serde_json` does the parsing; what it is too lenient about (a repeated member name) stays visible in the
//! [`Node`] tree for the decoder to report with its path.

use crate::problem::Problem;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use std::collections::HashSet;
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

/// Levels of nesting read at most; a job needs five, its `preferences` may need more.
pub const MAX_DEPTH: usize = 100;

/// Maximum number of values and member names that are read: beyond this limit, the cost of a document grows only with
/// its text.
pub const MAX_VALUES: usize = 1 << 20;

/// Maximum number of values and member names in an MCP message. Each takes many times its length while the message is
/// handled: without a limit, a message of 4 MiB takes 800 MiB. The largest chart (20000 points) has 100000 of them.
pub const MAX_MESSAGE_VALUES: usize = 1 << 17;

/// Parses one whole document.
///
/// # Errors
/// One [`Problem`] at `$` that names line and column: after a syntax error nothing else can be trusted.
pub fn parse(document: &[u8]) -> Result<Node, Problem> {
    parse_within(document, &Bounds { values: MAX_VALUES, depth: MAX_DEPTH })
}

/// Limits of a document.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Values and member names.
    pub values: usize,
    /// Levels; never more than 128, which the text's parser takes.
    pub depth: usize,
}

/// Parses one whole document within these bounds.
///
/// # Errors
/// As [`parse`].
pub fn parse_within(document: &[u8], bounds: &Bounds) -> Result<Node, Problem> {
    if document.len() > MAX_DOCUMENT_BYTES {
        return Err(at_root(
            format!("a document of {} bytes", document.len()),
            format!("at most {MAX_DOCUMENT_BYTES} bytes"),
        ));
    }
    let mut budget = Budget { values: bounds.values, depth: bounds.depth, exceeded: None };
    let mut text = serde_json::Deserializer::from_slice(document);
    let parsed = NodeSeed { depth: 0, budget: &mut budget }.deserialize(&mut text);
    let whole = parsed.and_then(|node| text.end().map(|()| node));
    whole.map_err(|error| at_root(found_in(document, &error), expected_instead(budget.exceeded, bounds)))
}

fn at_root(found: String, expected: String) -> Problem {
    Problem { path: "$".to_owned(), found, expected }
}

fn found_in(document: &[u8], error: &serde_json::Error) -> String {
    match document {
        [0xef, 0xbb, 0xbf, ..] => "a byte order mark".to_owned(),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16 or UTF-32".to_owned(),
        blank if blank.iter().all(u8::is_ascii_whitespace) => "an empty document".to_owned(),
        _ if error.is_eof() => format!("text that ends too early: {error}"),
        _ if error.is_data() => error.to_string(),
        _ => format!("text that is not JSON: {error}"),
    }
}

fn expected_instead(exceeded: Option<DocumentLimit>, Bounds { values, depth }: &Bounds) -> String {
    match exceeded {
        Some(DocumentLimit::Depth) => format!("at most {depth} levels"),
        Some(DocumentLimit::Values) => format!("at most {values}"),
        None => "one JSON document (RFC 8259, UTF-8 without a byte order mark)".to_owned(),
    }
}

// === impl Node ===

impl Node {
    /// Describes the value for an error message; long text is truncated.
    pub fn describe(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => format!("the number {number}"),
            Self::String(text) => format!("the string {}", quoted(text)),
            Self::Array(elements) if elements.is_empty() => "an empty array".to_owned(),
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

    /// Returns a name that is repeated in one object, at any depth.
    pub fn repeated_member(&self) -> Option<&str> {
        match self {
            Self::Array(elements) => elements.iter().find_map(Self::repeated_member),
            Self::Object(members) => {
                let mut names = HashSet::with_capacity(members.len());
                members.iter().find_map(|(name, value)| {
                    if names.insert(name.as_str()) { value.repeated_member() } else { Some(name.as_str()) }
                })
            }
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

    /// Returns a plain [`Value`]; of a repeated member the last one counts.
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

/// The text in JSON quotes, cut after 60 characters; what would disturb a terminal is escaped.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown = String::from('"');
    for (index, character) in text.chars().enumerate() {
        if index == SHOWN {
            shown.push('…');
            break;
        }
        match character {
            '"' | '\\' => shown.extend(['\\', character]),
            '\n' => shown.push_str("\\n"),
            c if c.is_control() || is_invisible(c) => shown.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown.push('"');
    shown
}

/// Bidirectional controls and invisible marks: they make a text look like another one.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

// === impl NodeSeed ===

/// Remaining amounts that may be read.
struct Budget {
    values: usize,
    depth: usize,
    exceeded: Option<DocumentLimit>,
}

#[derive(Clone, Copy)]
enum DocumentLimit {
    Depth,
    Values,
}

struct NodeSeed<'b> {
    depth: usize,
    budget: &'b mut Budget,
}

impl NodeSeed<'_> {
    /// The seed of a value inside this one.
    fn below(&mut self) -> NodeSeed<'_> {
        NodeSeed { depth: self.depth + 1, budget: self.budget }
    }

    fn spend<E: Error>(&mut self) -> Result<(), E> {
        match self.budget.values.checked_sub(1) {
            Some(left) => self.budget.values = left,
            None => {
                self.budget.exceeded = Some(DocumentLimit::Values);
                return Err(E::custom("more values and names than are read"));
            }
        }
        Ok(())
    }

    /// Called where an array or an object opens.
    fn descend<E: Error>(&mut self) -> Result<(), E> {
        if self.depth < self.budget.depth {
            return Ok(());
        }
        self.budget.exceeded = Some(DocumentLimit::Depth);
        Err(E::custom("deeper nesting than is read"))
    }
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Node, D::Error> {
        self.spend()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
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

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node, E> {
        Number::from_f64(value).map(Node::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Node, A::Error> {
        self.descend()?;
        let mut array = Vec::new();
        while let Some(element) = elements.next_element_seed(self.below())? {
            array.push(element);
        }
        Ok(Node::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Node, A::Error> {
        self.descend()?;
        let mut object = Vec::new();
        while let Some(name) = members.next_key()? {
            self.spend()?;
            object.push((name, members.next_value_seed(self.below())?));
        }
        Ok(Node::Object(object))
    }
}
