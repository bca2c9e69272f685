//! Joins the texts of a stream's events: a word that is split over two events is in neither.

use super::decoded::{ScanViews, escaped};
use super::{BY_CHANCE, SecretForms};
use crate::searcher::Searcher;
use std::sync::LazyLock;

/// Texts of one answer, as its bytes pass.
pub(super) struct EventTexts<'f> {
    views: ScanViews<'f>,
    state: EventTextState,
    /// Bytes that can't be interpreted without those that follow.
    rest: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EventTextState {
    Between,
    Within,
}

/// Value after a member's name.
enum MemberValue {
    /// Text that begins after this number of bytes.
    Text(usize),
    Other,
    Unknown,
}

/// Members that hold pieces of the output, in all API formats.
const NAMES: [&str; 11] = [
    "\"arguments\"",
    "\"content\"",
    "\"delta\"",
    "\"message\"",
    "\"partial_json\"",
    "\"reasoning\"",
    "\"reasoning_content\"",
    "\"refusal\"",
    "\"response\"",
    "\"text\"",
    "\"thinking\"",
];
const LONGEST_NAME: usize = 19;

static SEARCHER: LazyLock<Option<Searcher>> = LazyLock::new(|| Searcher::new(&NAMES));

// === impl EventTexts ===

impl<'f> EventTexts<'f> {
    pub(super) fn new(forms: &'f SecretForms) -> Self {
        Self { views: ScanViews::new(forms), state: EventTextState::Between, rest: Vec::new() }
    }

    /// Scans the next bytes. Returns `None` if they complete a form of the secret; otherwise returns true if they could be part
    /// of an incomplete one.
    pub(super) fn see(&mut self, bytes: &[u8]) -> Option<bool> {
        let all = match self.rest.is_empty() {
            true => std::borrow::Cow::Borrowed(bytes),
            false => std::borrow::Cow::Owned([std::mem::take(&mut self.rest).as_slice(), bytes].concat()),
        };
        let mut said = Vec::new();
        let used = self.read(&all, &mut said);
        self.rest.extend_from_slice(all.get(used..).unwrap_or_default());
        self.views.see(&said).map(|held| held > BY_CHANCE)
    }

    /// Appends the texts to `said`, and returns the number of bytes used.
    fn read(&mut self, bytes: &[u8], said: &mut Vec<u8>) -> usize {
        let Some(searcher) = SEARCHER.as_ref() else { return bytes.len() };
        let mut at = 0;
        loop {
            let here = bytes.get(at..).unwrap_or_default();
            match self.state {
                EventTextState::Between => {
                    let Some(name) = searcher.find(here) else {
                        return bytes.len() - here.len().min(LONGEST_NAME - 1);
                    };
                    match behind(&here[name.end..]) {
                        MemberValue::Text(begin) => {
                            at += name.end + begin;
                            self.state = EventTextState::Within;
                        }
                        MemberValue::Other => at += name.end,
                        MemberValue::Unknown => return at + name.start,
                    }
                }
                EventTextState::Within => match memchr::memchr2(b'"', b'\\', here) {
                    None => {
                        said.extend_from_slice(here);
                        return bytes.len();
                    }
                    Some(end) => {
                        said.extend_from_slice(&here[..end]);
                        at += end;
                        if here[end] == b'"' {
                            at += 1;
                            self.state = EventTextState::Between;
                        } else {
                            let Some((byte, length)) = unescaped(&here[end..]) else { return at };
                            said.push(byte);
                            at += length;
                        }
                    }
                },
            }
        }
    }
}

fn behind(bytes: &[u8]) -> MemberValue {
    const MOST_SPACE: usize = 64;
    let colon = bytes.trim_ascii_start();
    let Some(value) = colon.strip_prefix(b":") else {
        return if colon.is_empty() && bytes.len() < MOST_SPACE {
            MemberValue::Unknown
        } else {
            MemberValue::Other
        };
    };
    let value = value.trim_ascii_start();
    match value.first() {
        Some(b'"') => MemberValue::Text(bytes.len() - value.len() + 1),
        None if bytes.len() < MOST_SPACE => MemberValue::Unknown,
        _ => MemberValue::Other,
    }
}

/// Returns the byte that an escape stands for, as far as secrets may contain it, and the escape's length; `None` if its end is
/// missing.
fn unescaped(bytes: &[u8]) -> Option<(u8, usize)> {
    match bytes.get(1)? {
        b'u' => {
            let digits = std::str::from_utf8(bytes.get(2..6)?).unwrap_or_default();
            let code = u8::from_str_radix(digits.trim_start_matches("00"), 16);
            Some((code.unwrap_or(b'?'), 6))
        }
        other => Some((escaped(*other), 2)),
    }
}
