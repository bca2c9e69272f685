//! Finds what was injected in what comes back.
//!
//! Some upstreams repeat a request in an error, with its headers. Whoever is in the sandbox must not see them, whole, in
//! pieces, or written in another way.

mod decoded;
mod spoken;
mod stripped;

use crate::searcher::Searcher;
use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use decoded::Views;
use spoken::Spoken;
use std::ops::Range;
use zeroize::Zeroizing;

/// How a secret may be written.
pub(crate) struct Forms {
    /// It has copies of its own, which nobody can wipe.
    searcher: Option<Searcher>,
    /// The same for what each form begins with, which tells nearly as much: a server may cut what it repeats anywhere.
    beginnings: Option<Searcher>,
    forms: Vec<Form>,
    /// The bytes that are in any of them.
    alphabet: [bool; 256],
    longest: usize,
    /// Hexadecimal digits in lower case alone, for those that stand apart.
    digits: Option<Box<Forms>>,
}

type Form = Zeroizing<Vec<u8>>;

/// Looks at the bytes of one answer as they pass.
pub(crate) struct Watch<'f> {
    bytes: Views<'f>,
    /// The same for what they say.
    spoken: Option<Spoken<'f>>,
}

/// Bytes that follow each other.
struct Tail<'f> {
    forms: &'f Forms,
    /// The last of them, as many as could belong to a form that isn't complete.
    last: Zeroizing<Vec<u8>>,
}

/// Bytes that are held of one answer, beside those of the last read: longer no text is left open that only begins like a secret.
pub(crate) const MOST_HELD: usize = 64 << 10;

/// Of a form in base64, what is shorter stands anywhere by chance.
const SHORTEST: usize = 8;

/// So many characters of a form stand anywhere by chance; of a short one, no more than a part.
const BY_CHANCE: usize = 5;
const PART_BY_CHANCE: usize = 4;

/// So large a part of a form counts as all of it where it begins one, and is never less than the shortest.
const PART_THAT_TELLS: usize = 2;

// === impl Forms ===

impl Forms {
    /// Of one secret, or of none.
    pub(crate) fn of(secret: Option<&Secret>) -> Self {
        let Some(secret) = secret else { return Self::new(Vec::new()) };
        let bytes = secret.expose();
        let hex = |digits: &[u8; 16]| -> Form {
            let pair = |byte: &u8| [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]];
            wiped(2 * bytes.len(), bytes.iter().flat_map(pair))
        };
        let digits = Box::new(Self::new(vec![hex(b"0123456789abcdef")]));
        let mut forms =
            vec![Zeroizing::new(bytes.to_vec()), hex(b"0123456789abcdef"), hex(b"0123456789ABCDEF")];
        forms.extend(undone(bytes));
        for offset in 0..3 {
            // Inside something longer it begins at any of three places in a group; what it shares with others is left out.
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

    fn new(forms: Vec<Form>) -> Self {
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

    /// Whether it stands in there, or so much of its beginning that it tells most of it.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        self.beginnings.as_ref().is_some_and(|searcher| searcher.find(bytes).is_some())
            // Should there be no searcher for what there is to be found, nothing is passed on.
            || (self.beginnings.is_none() && !self.forms.is_empty())
    }

    /// Where it stands in there, also where some of it is escaped or something stands between its characters.
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
            // Up to behind the last character of it: what is left out behind that isn't its own.
            let place = |range: Range<usize>| places[range.start]..places[range.end - 1] + 1;
            found.extend(self.plainly_in(&stripped).into_iter().filter(|range| !range.is_empty()).map(place));
        }
        found
    }

    /// Where it stands in there as it is, from the beginning to the end.
    fn plainly_in(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let Some(searcher) = &self.searcher else {
            // Without a searcher for what there is to be found, all of it may be that.
            return (!self.forms.is_empty()).then_some(0..bytes.len()).into_iter().collect();
        };
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(range) = bytes.get(from..).and_then(|rest| searcher.find(rest)) {
            found.push(from + range.start..from + range.end);
            from += range.end.max(1);
        }
        found
    }

    /// Whether it stands in a whole answer, or is said by it piece by piece, or is what the answer ends in the middle of.
    pub(crate) fn are_told_by(&self, answer: &[u8]) -> bool {
        let mut watch = self.watch();
        watch.see(answer).is_none() || watch.ends_within()
    }

    /// Whether it stands in the head of an answer, or is what one of its lines ends in the middle of.
    pub(crate) fn are_in_lines(&self, lines: &[u8]) -> bool {
        self.are_told_by(lines) || lines.split(|byte| *byte == b'\n').any(|line| self.are_told_by(line))
    }

    pub(crate) fn watch(&self) -> Watch<'_> {
        let spoken = (!self.forms.is_empty()).then(|| Spoken::new(self));
        Watch { bytes: Views::new(self), spoken }
    }
}

/// A secret that has in it what looks like an escape, as it is once those are undone.
fn undone(secret: &[u8]) -> Vec<Form> {
    let mut all: Vec<Form> = Vec::new();
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

/// Bytes that are wiped when they go. They are given all of their room at once: what grows leaves its old self behind.
fn wiped(room: usize, bytes: impl Iterator<Item = u8>) -> Form {
    let mut all = Zeroizing::new(Vec::with_capacity(room));
    all.extend(bytes);
    all
}

/// As much of a form as counts as all of it.
fn beginning(form: &Form) -> &[u8] {
    let length = form.len().div_ceil(PART_THAT_TELLS).max(SHORTEST);
    form.get(..length).unwrap_or(form)
}

// === impl Watch ===

impl Watch<'_> {
    /// Looks at bytes that follow those before. `None` if a form of the secret is complete with them; otherwise how many
    /// of the last bytes, of these and those before, are to be held because they could be the beginning of one.
    /// [`usize::MAX`] are all that there are.
    pub(crate) fn see(&mut self, bytes: &[u8]) -> Option<usize> {
        let held = self.bytes.see(bytes)?;
        let is_begun = match &mut self.spoken {
            Some(spoken) => spoken.see(bytes)?,
            None => false,
        };
        Some(if is_begun { usize::MAX } else { held })
    }

    /// Whether what was seen ends in the middle of a form, with more of it than stands there by chance. Where nothing
    /// follows, whoever has cut it there has told that much.
    pub(crate) fn ends_within(&self) -> bool {
        self.bytes.ends_within()
    }
}

// === impl Tail ===

impl<'f> Tail<'f> {
    fn new(forms: &'f Forms) -> Self {
        // With room for all that it ever holds.
        Self { forms, last: Zeroizing::new(Vec::with_capacity(2 * forms.longest)) }
    }

    /// Looks at these bytes alone. `None` if a form of the secret is complete with them; otherwise how many of the last bytes could be
    /// the beginning of one.
    fn see(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.forms.is_in(bytes) {
            true => None,
            false => self.see_border(bytes),
        }
    }

    /// As [`Self::see`], for bytes in which no whole form stands.
    fn see_border(&mut self, bytes: &[u8]) -> Option<usize> {
        let keep = self.forms.longest.saturating_sub(1);
        if keep == 0 {
            return Some(0);
        }
        let can_be = |byte: &&u8| self.forms.alphabet[usize::from(**byte)];
        if !self.last.is_empty() {
            // What lies across the border goes as far as there is nothing that is in no form.
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

    /// How long the longest end of what was seen is with which a form begins.
    fn held(&self) -> usize {
        self.begun().map(|(_, length)| length).max().unwrap_or_default()
    }

    fn ends_within(&self) -> bool {
        let by_chance = |form: &Form| BY_CHANCE.min(form.len() / PART_BY_CHANCE);
        self.begun().any(|(form, length)| length > by_chance(form))
    }

    /// Each form with which what was seen may end, and how much of it is there.
    fn begun(&self) -> impl Iterator<Item = (&Form, usize)> {
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
