//! Finds injected secrets in answers.
//!
//! Some upstreams repeat a request in an error, with its headers. The sandbox must not see the secret in them: neither whole,
//! nor in pieces, nor in another encoding.

mod decoded;
mod spoken;
mod stripped;

use crate::searcher::Searcher;
use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use decoded::ScanViews;
use spoken::EventTexts;
use std::ops::Range;
use zeroize::Zeroizing;

/// All forms in which a secret may be written.
pub(crate) struct SecretForms {
    /// Finds complete forms. It has copies of the secret, which can't be wiped.
    searcher: Option<Searcher>,
    /// Finds the beginning of each form, which reveals nearly as much: a server may cut off what it repeats anywhere.
    beginnings: Option<Searcher>,
    forms: Vec<SecretForm>,
    /// Bytes that occur in any form.
    alphabet: [bool; 256],
    longest: usize,
    /// Forms in lower-case hexadecimal digits, for digits with separators between them.
    digits: Option<Box<SecretForms>>,
}

type SecretForm = Zeroizing<Vec<u8>>;

/// Scans the bytes of one answer as they pass.
pub(crate) struct LeakScanner<'f> {
    bytes: ScanViews<'f>,
    /// Scans the texts in the answer's events.
    spoken: Option<EventTexts<'f>>,
}

/// End of the bytes that have passed.
struct ScanTail<'f> {
    forms: &'f SecretForms,
    /// Last bytes, as many as could belong to an incomplete form.
    last: Zeroizing<Vec<u8>>,
}

/// Maximum number of held bytes of one answer, besides those of the last read. A longer text that only begins like a secret is
/// not kept open.
pub(crate) const MOST_HELD: usize = 64 << 10;

/// Shorter forms in base64 occur anywhere by chance.
const SHORTEST: usize = 8;

/// Maximum number of leading characters of a form that occur anywhere by chance; of a short form at most a quarter.
const BY_CHANCE: usize = 5;
const PART_BY_CHANCE: usize = 4;

/// Divisor of a form's length: a beginning of one half counts as the whole form, if it has at least [`SHORTEST`] bytes.
const PART_THAT_TELLS: usize = 2;

// === impl SecretForms ===

impl SecretForms {
    /// Returns the forms of a secret; none without a secret.
    pub(crate) fn of(secret: Option<&Secret>) -> Self {
        let Some(secret) = secret else { return Self::new(Vec::new()) };
        let bytes = secret.expose();
        let hex = |digits: &[u8; 16]| -> SecretForm {
            let pair = |byte: &u8| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]];
            wiped(2 * bytes.len(), bytes.iter().flat_map(pair))
        };
        let digits = Box::new(Self::new(vec![hex(b"0123456789abcdef")]));
        let mut forms =
            vec![Zeroizing::new(bytes.to_vec()), hex(b"0123456789abcdef"), hex(b"0123456789ABCDEF")];
        forms.extend(undone(bytes));
        for offset in 0..3 {
            // Within a longer base64 text the secret begins at one of three offsets of a group. Characters that depend on its
            // neighbours are left out.
            let padded =
                wiped(offset + bytes.len(), std::iter::repeat_n(0, offset).chain(bytes.iter().copied()));
            let encoded = Zeroizing::new(STANDARD_NO_PAD.encode(&*padded));
            let (begin, end) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
            if let Some(core) = encoded.as_bytes().get(begin..end).filter(|core| core.len() >= SHORTEST) {
                let for_addresses = |byte: &u8| match byte {
                    b'+' => b'-',
                    b'/' => b'_',
                    other => *other,
                };
                forms.push(wiped(core.len(), core.iter().map(for_addresses)));
                forms.push(Zeroizing::new(core.to_vec()));
            }
        }
        forms.sort_unstable_by(|one, other| one.as_slice().cmp(other));
        forms.dedup_by(|one, other| one.as_slice() == other.as_slice());
        Self { digits: Some(digits), ..Self::new(forms) }
    }

    fn new(forms: Vec<SecretForm>) -> Self {
        let searcher = Searcher::new(&forms);
        let mut beginnings: Vec<&[u8]> = forms.iter().map(beginning).collect();
        beginnings.sort_unstable();
        beginnings.dedup();
        let beginnings = Searcher::new(&beginnings);
        let mut alphabet = [false; 256];
        forms.iter().flat_map(|form| form.iter()).for_each(|byte| alphabet[usize::from(*byte)] = true);
        let longest = forms.iter().map(|form| form.len()).max().unwrap_or_default();
        Self { searcher, beginnings, forms, alphabet, longest, digits: None }
    }

    /// Returns true if the bytes contain a form, or so much of its beginning that most of the secret is revealed.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        self.beginnings.as_ref().is_some_and(|searcher| searcher.find(bytes).is_some())
            // Without a searcher for existing forms, every text counts as one that contains them.
            || (self.beginnings.is_none() && !self.forms.is_empty())
    }

    /// Returns the positions of all forms, including those with escapes or with other bytes between their characters.
    pub(crate) fn all_in(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found = self.plainly_in(bytes);
        let mut text = Zeroizing::new(bytes.to_vec());
        let mut places: Vec<usize> = (0..=bytes.len()).collect();
        for _ in 0..decoded::LEVELS {
            let Some((decoded, within)) = decoded::decode_whole(&text) else { break };
            places = within.into_iter().map(|at| places[at]).collect();
            text = Zeroizing::new(decoded);
            found.extend(
                self.plainly_in(&text).into_iter().map(|range| places[range.start]..places[range.end]),
            );
        }
        let stripped = Zeroizing::new(stripped::strip(&text, &self.alphabet).into_owned());
        if stripped.len() < text.len() {
            let is_in_form = |(byte, _): &(&u8, &usize)| self.alphabet[usize::from(**byte)];
            let places: Vec<usize> =
                text.iter().zip(&places).filter(is_in_form).map(|(_, place)| *place).collect();
            // The range ends after the last character of the form: bytes that were stripped after it don't belong to it.
            let place = |range: Range<usize>| places[range.start]..places[range.end - 1] + 1;
            found.extend(self.plainly_in(&stripped).into_iter().filter(|range| !range.is_empty()).map(place));
        }
        found
    }

    /// Returns the positions of all forms that are written plainly.
    fn plainly_in(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let Some(searcher) = &self.searcher else {
            // Without a searcher for existing forms, the whole text counts as one.
            return (!self.forms.is_empty()).then_some(0..bytes.len()).into_iter().collect();
        };
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(range) = bytes.get(from..).and_then(|rest| searcher.find(rest)) {
            found.push(from + range.start..from + range.end);
            from += range.end.max(1);
        }
        found
    }

    /// Returns true if a complete answer contains a form, spells one in pieces, or ends in the middle of one.
    pub(crate) fn are_told_by(&self, answer: &[u8]) -> bool {
        let mut watch = self.watch();
        watch.see(answer).is_none() || watch.ends_within()
    }

    /// Returns true if the head of an answer contains a form, or one of its lines ends in the middle of one.
    pub(crate) fn are_in_lines(&self, lines: &[u8]) -> bool {
        self.are_told_by(lines) || lines.split(|byte| *byte == b'\n').any(|line| self.are_told_by(line))
    }

    pub(crate) fn watch(&self) -> LeakScanner<'_> {
        let spoken = (!self.forms.is_empty()).then(|| EventTexts::new(self));
        LeakScanner { bytes: ScanViews::new(self), spoken }
    }
}

/// Returns the forms of a secret that contains an escape sequence, after unescaping.
fn undone(secret: &[u8]) -> Vec<SecretForm> {
    let mut all: Vec<SecretForm> = Vec::new();
    for _ in 0..decoded::LEVELS {
        let Some((decoded, _)) = decoded::decode_whole(all.last().map_or(secret, |last| last.as_slice()))
        else {
            break;
        };
        all.push(Zeroizing::new(decoded));
    }
    all.retain(|form| form.len() >= SHORTEST);
    all
}

/// Collects bytes in a buffer that is wiped when dropped. It is allocated at once: growing would leave a copy in freed memory.
fn wiped(room: usize, bytes: impl Iterator<Item = u8>) -> SecretForm {
    let mut all = Zeroizing::new(Vec::with_capacity(room));
    all.extend(bytes);
    all
}

/// Returns the beginning of a form that counts as the whole.
fn beginning(form: &SecretForm) -> &[u8] {
    let length = form.len().div_ceil(PART_THAT_TELLS).max(SHORTEST);
    form.get(..length).unwrap_or(form)
}

// === impl LeakScanner ===

impl LeakScanner<'_> {
    /// Scans the next bytes. Returns `None` if they complete a form of the secret. Otherwise returns the number of last bytes,
    /// across calls, that have to be held because they could be the beginning of one. [`usize::MAX`] means all bytes.
    pub(crate) fn see(&mut self, bytes: &[u8]) -> Option<usize> {
        let held = self.bytes.see(bytes)?;
        let is_begun = match &mut self.spoken {
            Some(spoken) => spoken.see(bytes)?,
            None => false,
        };
        Some(if is_begun { usize::MAX } else { held })
    }

    /// Returns true if the bytes end in the middle of a form, with more of it than occurs by chance. If nothing follows, the
    /// sender has revealed that much by cutting it there.
    pub(crate) fn ends_within(&self) -> bool {
        self.bytes.ends_within()
    }
}

// === impl ScanTail ===

impl<'f> ScanTail<'f> {
    fn new(forms: &'f SecretForms) -> Self {
        // The buffer has room for all that it ever holds.
        Self { forms, last: Zeroizing::new(Vec::with_capacity(2 * forms.longest)) }
    }

    /// Scans these bytes. Returns `None` if they complete a form of the secret; otherwise the number of last bytes that could
    /// be the beginning of one.
    fn see(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.forms.is_in(bytes) {
            true => None,
            false => self.see_border(bytes),
        }
    }

    /// Like [`Self::see`], for bytes that contain no complete form.
    fn see_border(&mut self, bytes: &[u8]) -> Option<usize> {
        let keep = self.forms.longest.saturating_sub(1);
        if keep == 0 {
            return Some(0);
        }
        let can_be = |byte: &&u8| self.forms.alphabet[usize::from(**byte)];
        if !self.last.is_empty() {
            // A form across the border ends at the latest at the first byte that occurs in no form.
            let begin = bytes.iter().take(keep).take_while(can_be).count();
            self.last.extend_from_slice(&bytes[..begin]);
            if self.forms.is_in(&self.last) {
                return None;
            }
            let before = self.last.len() - begin;
            self.last.truncate(before);
        }
        let end = bytes.iter().rev().take(keep).take_while(can_be).count();
        if end < bytes.len() {
            self.last.clear();
        }
        self.last.extend_from_slice(&bytes[bytes.len() - end..]);
        let surplus = self.last.len().saturating_sub(keep);
        self.last.drain(..surplus);
        Some(self.held())
    }

    /// Returns the length of the longest suffix of the bytes with which a form begins.
    fn held(&self) -> usize {
        self.begun().map(|(_, length)| length).max().unwrap_or_default()
    }

    fn ends_within(&self) -> bool {
        let by_chance = |form: &SecretForm| BY_CHANCE.min(form.len() / PART_BY_CHANCE);
        self.begun().any(|(form, length)| length > by_chance(form))
    }

    /// Returns each form that the bytes may end with, and the length of its part.
    fn begun(&self) -> impl Iterator<Item = (&SecretForm, usize)> {
        self.forms.forms.iter().filter_map(|form| {
            let first = *form.first()?;
            let begun = memchr::memchr_iter(first, &self.last)
                .map(|at| &self.last[at..])
                .find(|end| form.starts_with(end))?;
            Some((form, begun.len()))
        })
    }
}

#[cfg(test)]
mod tests;
