//! One line of the log.
//!
//! ```text
//! {"sequence":7,"time":"…","kind":"…","run":"…","event":{…},"content":"…","previous":"…","hash":"…"}
//!  └──────────────── content: SHA-256 of these bytes ─────┘
//!                                                         └─ hash: SHA-256 of these bytes ─┘
//! ```
//!
//! The fields after the event have a fixed length, so a line can be checked without a JSON parser. A record's hash
//! covers only the hash of its content. So a record can be left out of an export, and the following ones can still be
//! checked.

use super::event::is_kind;
use super::hash::{DIGITS, Hash};
use std::io::Write;
use std::str::from_utf8;

/// A record as it was read; its hashes are right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number, counted from 1 through the whole log.
    pub sequence: u64,
    /// Time at which the event was submitted (RFC 3339, UTC).
    pub time: &'a str,
    /// Kind of the event.
    pub kind: &'a str,
    /// The run it belongs to.
    pub run: Option<&'a str>,
    /// The event, as JSON.
    pub event: &'a str,
    /// The hash of the record before it.
    pub previous: Hash,
    /// Its hash.
    pub hash: Hash,
}

/// The end of a line: what chains it to the line before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainLinks {
    pub(super) content: Hash,
    pub(super) previous: Hash,
    pub(super) hash: Hash,
}

/// Why a line is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFault {
    /// The line doesn't have the form of a record.
    Malformed,
    /// The line has the form of a record, but not its hash.
    Changed,
}

const SEQUENCE: &[u8] = b"{\"sequence\":";
const CONTENT: &[u8] = b",\"content\":\"";
const PREVIOUS: &[u8] = b"\",\"previous\":\"";
const HASH: &[u8] = b"\",\"hash\":\"";
const END: &[u8] = b"\"}";

/// Length of a line's fixed end.
const LINKS_LENGTH: usize = CONTENT.len() + PREVIOUS.len() + HASH.len() + END.len() + 3 * DIGITS;

/// The bytes that a hash is of: from the content's name to the last digit of the previous hash.
const HASHED_LENGTH: usize = CONTENT.len() + PREVIOUS.len() + 2 * DIGITS;

/// The longest line, with everything that is not the event.
pub(super) const LONGEST_LINE: usize = super::event::LARGEST_EVENT_BYTES + 1024;

/// Adds a record to a text, a whole line, and gives its hash.
pub(super) fn push(text: &mut Vec<u8>, sequence: u64, body: &[u8], previous: &Hash) -> Hash {
    let begin = text.len();
    push_begin(text, sequence, body);
    let content = Hash::of(&text[begin..]);
    push_links(text, &content, previous)
}

/// The part of a record that its content is the hash of.
pub(super) fn push_begin(text: &mut Vec<u8>, sequence: u64, body: &[u8]) {
    text.extend_from_slice(SEQUENCE);
    // Writing to a vector can't fail.
    let _ = write!(text, "{sequence},");
    text.extend_from_slice(body);
}

/// The rest of a line.
pub(super) fn push_links(text: &mut Vec<u8>, content: &Hash, previous: &Hash) -> Hash {
    let begin = text.len();
    text.extend_from_slice(CONTENT);
    content.push_to(text);
    text.extend_from_slice(PREVIOUS);
    previous.push_to(text);
    let hash = Hash::of(&text[begin..]);
    text.extend_from_slice(HASH);
    hash.push_to(text);
    text.extend_from_slice(END);
    text.push(b'\n');
    hash
}

// === impl ChainLinks ===

impl ChainLinks {
    /// Splits a line, without its newline, into what its content is the hash of and what links it. That the hash is one of
    /// these links is checked, the content is not.
    pub(super) fn split(line: &[u8]) -> Result<(&[u8], Self), LineFault> {
        let malformed = LineFault::Malformed;
        let at = line.len().checked_sub(LINKS_LENGTH).ok_or(malformed)?;
        let (begin, links) = line.split_at(at);
        let mut rest = links;
        let mut digits_after = |name: &[u8]| {
            let (digits, after) = rest.strip_prefix(name)?.split_at_checked(DIGITS)?;
            rest = after;
            Hash::from_digits(digits)
        };
        let content = digits_after(CONTENT).ok_or(malformed)?;
        let previous = digits_after(PREVIOUS).ok_or(malformed)?;
        let hash = digits_after(HASH).ok_or(malformed)?;
        match rest == END {
            false => Err(malformed),
            true if Hash::of(&links[..HASHED_LENGTH]) != hash => Err(LineFault::Changed),
            true => Ok((begin, Self { content, previous, hash })),
        }
    }
}

// === impl Record ===

impl<'a> Record<'a> {
    /// Reads a line, without its newline, and checks its hashes.
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, LineFault> {
        let (begin, links) = ChainLinks::split(line)?;
        if Hash::of(begin) != links.content {
            return Err(LineFault::Changed);
        }
        Self::of_begin(begin, links).ok_or(LineFault::Malformed)
    }

    fn of_begin(begin: &'a [u8], links: ChainLinks) -> Option<Self> {
        let rest = from_utf8(begin.strip_prefix(SEQUENCE)?).ok()?;
        let (sequence, rest) = rest.split_once(",\"time\":\"")?;
        let (time, rest) = rest.split_once("\",\"kind\":\"")?;
        let (kind, mut rest) = rest.split_once('"')?;
        let mut run = None;
        if let Some(after) = rest.strip_prefix(",\"run\":\"") {
            let (id, after) = after.split_once('"')?;
            (run, rest) = (Some(id), after);
        }
        let event = rest.strip_prefix(",\"event\":")?;
        let is_canonical = sequence.bytes().all(|byte| byte.is_ascii_digit()) && !sequence.starts_with('0');
        let is_sound =
            is_canonical && is_kind(kind.as_bytes()) && event.starts_with('{') && event.ends_with('}');
        let sequence = sequence.parse().ok().filter(|_| is_sound)?;
        let ChainLinks { previous, hash, .. } = links;
        Some(Self { sequence, time, kind, run, event, previous, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Event;
    use serde_json::json;

    #[test]
    fn record_line_round_trips_and_rejects_any_changed_byte() {
        let run = belljar_contract::id::RunId::parse("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e").unwrap();
        let event = Event::new("test", Some(&run), &json!({ "a": "\",\"content\":\"" })).unwrap();
        let mut line = Vec::new();
        let hash = push(&mut line, 7, event.body(), &Hash::NONE);
        assert_eq!(line.pop(), Some(b'\n'));
        let record = Record::parse(&line).unwrap();
        assert_eq!((record.sequence, record.kind, record.run), (7, "test", Some(run.as_str())));
        assert_eq!((record.previous, record.hash), (Hash::NONE, hash));
        assert_eq!(record.time.len(), "2026-01-01T00:00:00.000000Z".len());
        let read: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(read["event"]["a"], "\",\"content\":\"");
        assert_eq!(read["hash"], hash.to_string());
        for at in 0..line.len() {
            for other in (0..=u8::MAX).filter(|other| *other != line[at]) {
                let mut changed = line.clone();
                changed[at] = other;
                assert!(Record::parse(&changed).is_err(), "byte {at} as {other}");
            }
        }
    }
}
