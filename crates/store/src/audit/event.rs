//! An event to be recorded: a JSON object with a kind, a time and a run.
//!
//! The caller's thread serialises it, so that the writer thread only numbers, hashes and copies. Text in it stays text:
//! every character that a line, a terminal or a reader could misinterpret is escaped.

use belljar_contract::id::RunId;
use belljar_policy::untrusted::{escape_as_json, is_hidden};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// An event in the form that it has in the log, from its time on.
#[derive(Debug, Clone)]
pub struct Event {
    body: Vec<u8>,
}

/// Reason why a value can't be an event.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// The kind is not a valid name.
    #[error(
        "{kind:?} is not a kind of event: lower-case letters, digits and underscores, or it is the log's own"
    )]
    Kind {
        /// Kind that was given.
        kind: String,
    },
    /// The event has no form in JSON.
    #[error("the event can't be written as JSON")]
    Unwritable {
        /// Underlying error.
        #[source]
        source: serde_json::Error,
    },
    /// The event is not an object.
    #[error("the event is not an object")]
    NotAnObject,
    /// The event is too large.
    #[error("the event has {bytes} bytes; {LARGEST_EVENT_BYTES} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

/// The longest event, as JSON.
pub const LARGEST_EVENT_BYTES: usize = 256 << 10;

/// The kinds that only the log itself writes.
pub(super) const OWN_KINDS: [&str; 3] = ["checkpoint", "created", "torn_tail"];

const LONGEST_KIND: usize = 64;

// === impl Event ===

impl Event {
    /// Creates an event of this kind, with the present time.
    ///
    /// # Errors
    /// [`EventError`] when the kind or the event can't be recorded.
    pub fn new(kind: &str, run: Option<&RunId>, event: &impl Serialize) -> Result<Self, EventError> {
        if !is_kind(kind.as_bytes()) || OWN_KINDS.contains(&kind) {
            return Err(EventError::Kind { kind: kind.to_owned() });
        }
        Self::of_log(kind, run, event)
    }

    /// Creates an event; also accepts the kinds that are reserved for the log itself.
    pub(super) fn of_log(
        kind: &str,
        run: Option<&RunId>,
        event: &impl Serialize,
    ) -> Result<Self, EventError> {
        let mut body = Vec::with_capacity(1024);
        push_head(&mut body, Timestamp::now(), kind, run);
        let begin = body.len();
        event
            .serialize(&mut serde_json::Serializer::with_formatter(&mut body, EscapingFormatter))
            .map_err(|source| EventError::Unwritable { source })?;
        match body.len() - begin {
            _ if body.get(begin) != Some(&b'{') => Err(EventError::NotAnObject),
            bytes if bytes > LARGEST_EVENT_BYTES => Err(EventError::TooLong { bytes }),
            _ => Ok(Self { body }),
        }
    }

    /// Its length in the log, in bytes, without what the log adds to each record.
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// Appends the fields that precede the event itself.
pub(super) fn push_head(body: &mut Vec<u8>, time: Timestamp, kind: &str, run: Option<&RunId>) {
    // Writing to a vector can't fail.
    let _ = write!(body, "\"time\":\"{time:.6}\",\"kind\":\"{kind}\"");
    if let Some(run) = run {
        let _ = write!(body, ",\"run\":\"{run}\"");
    }
    body.extend_from_slice(b",\"event\":");
}

/// Returns true if the bytes are a valid name of a kind.
pub(super) fn is_kind(kind: &[u8]) -> bool {
    let is_allowed = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    (1..=LONGEST_KIND).contains(&kind.len()) && kind[0].is_ascii_lowercase() && kind.iter().all(is_allowed)
}

/// Formatter for compact JSON that also escapes characters that JSON allows but terminals or editors interpret.
struct EscapingFormatter;

impl Formatter for EscapingFormatter {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        if !fragment.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            let mut escape = String::new();
            while let Some((at, hidden)) = rest.char_indices().find(|(_, character)| is_hidden(*character)) {
                writer.write_all(&rest.as_bytes()[..at])?;
                escape.clear();
                escape_as_json(hidden, &mut escape);
                writer.write_all(escape.as_bytes())?;
                rest = &rest[at + hidden.len_utf8()..];
            }
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn text_of(value: &Value) -> String {
        let event = Event::new("test", None, value).unwrap();
        let body = String::from_utf8(event.body().to_vec()).unwrap();
        body.split_once(",\"event\":").unwrap().1.to_owned()
    }

    #[test]
    fn control_characters_are_escaped_and_round_trip() {
        let text = "a\n\r\0\u{1b}[31m\u{7f}\u{9b}2J\u{202e}\u{2028}\u{feff}\u{e0041}\u{fe0f}é漢🦀\"\\}";
        let written = text_of(&json!({ "text": text }));
        assert!(written.chars().all(|character| !is_hidden(character)), "{written}");
        assert!(written.contains("é漢🦀"), "what is harmless stays as it is: {written}");
        let read: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read["text"], text);
    }

    #[test]
    fn event_must_be_a_short_object_with_an_unreserved_kind() {
        assert!(matches!(Event::new("test", None, &json!([1])), Err(EventError::NotAnObject)));
        assert!(matches!(Event::new("test", None, &"{}"), Err(EventError::NotAnObject)));
        let long = json!({ "a": "x".repeat(LARGEST_EVENT_BYTES) });
        assert!(matches!(Event::new("test", None, &long), Err(EventError::TooLong { .. })));
        for kind in
            ["", "checkpoint", "torn_tail", "created", "A", "1a", "a b", "a\"", "a\n", &"a".repeat(65)]
        {
            assert!(matches!(Event::new(kind, None, &json!({})), Err(EventError::Kind { .. })), "{kind}");
        }
    }
}
