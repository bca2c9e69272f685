//! Finds what was injected in what comes back.
//!
//! Some upstreams repeat a request in an error, with its headers. Whoever is in the sandbox must not see them, whole, in
//! pieces, or written in another way.

mod spoken;
mod written;

use crate::searcher::Searcher;
use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use spoken::Spoken;
use std::ops::Range;
use written::{escaped, wiped};
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
}

type Form = Zeroizing<Vec<u8>>;

/// Looks at the bytes of one answer as they pass.
pub(crate) struct Watch<'f> {
    bytes: Tail<'f>,
    /// The same for what they say.
    spoken: Option<Spoken<'f>>,
}

/// Bytes that follow each other.
struct Tail<'f> {
    forms: &'f Forms,
    /// The last of them, as many as could belong to a form that isn't complete.
    last: Zeroizing<Vec<u8>>,
}

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
        let mut forms =
            vec![Zeroizing::new(bytes.to_vec()), hex(b"0123456789abcdef"), hex(b"0123456789ABCDEF")];
        forms.extend(escaped(bytes));
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
        Self::new(forms)
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
        Self { searcher, beginnings, forms, alphabet, longest }
    }

    /// Whether it stands in there, or so much of its beginning that it tells most of it.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        self.beginnings.as_ref().is_some_and(|searcher| searcher.find(bytes).is_some())
            // Should there be no searcher for what there is to be found, nothing is passed on.
            || (self.beginnings.is_none() && !self.forms.is_empty())
    }

    /// Where it stands in there, from the beginning to the end.
    pub(crate) fn all_in(&self, bytes: &[u8]) -> Vec<Range<usize>> {
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
        let ends_within = |line: &[u8]| {
            let mut tail = Tail::new(self);
            tail.see(line).is_none() || tail.ends_within()
        };
        self.are_told_by(lines) || lines.split(|byte| *byte == b'\n').any(ends_within)
    }

    pub(crate) fn watch(&self) -> Watch<'_> {
        let spoken = (!self.forms.is_empty()).then(|| Spoken::new(self));
        Watch { bytes: Tail::new(self), spoken }
    }
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

    /// As [`Watch::see`], for these bytes alone.
    fn see(&mut self, bytes: &[u8]) -> Option<usize> {
        let keep = self.forms.longest.saturating_sub(1);
        if keep == 0 {
            return Some(0);
        }
        if self.forms.is_in(bytes) {
            return None;
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
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    const KEY: &str = "sk-proj-4f/Q+9aB7_z-Kd82";

    fn forms() -> Forms {
        Forms::of(Some(&Secret::parse(KEY).unwrap()))
    }

    /// What passes before it is noticed, cut into such pieces.
    fn passed(bytes: &[u8], piece: usize) -> (Vec<u8>, bool) {
        let forms = forms();
        let (mut watch, mut seen, mut out) = (forms.watch(), Vec::new(), 0);
        for piece in bytes.chunks(piece.max(1)) {
            seen.extend_from_slice(piece);
            let Some(held) = watch.see(piece) else { return (seen[..out].to_vec(), true) };
            out = out.max(seen.len().saturating_sub(held));
        }
        (seen, false)
    }

    #[test]
    fn it_is_found_in_every_way_of_writing_and_none_of_it_passes() {
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
        let mut all = vec![KEY.to_owned(), hex.to_uppercase(), hex];
        for before in ["", "a", "ab", "Bearer ", "user:"] {
            for after in ["", "x", "xy"] {
                let text = format!("{before}{KEY}{after}");
                all.extend([STANDARD.encode(&text), URL_SAFE.encode(&text), STANDARD_NO_PAD.encode(&text)]);
            }
        }
        for text in all {
            let bytes = format!("{{\"error\":\"you sent {text} and that is wrong\"}}").into_bytes();
            for piece in [1, 2, 3, 5, 8, 13, 21, 34, 55, 89] {
                let (out, is_found) = passed(&bytes, piece);
                assert!(is_found, "{text} in pieces of {piece}");
                let before = memchr::memmem::find(&bytes, &text.as_bytes()[..4]).unwrap();
                // Of what stands before a core in base64, a few characters are shared with what is no secret.
                assert!(out.len() <= before + 12, "{} of {text} passed", out.len() - before);
            }
        }
    }

    #[test]
    fn it_is_found_as_addresses_texts_and_pages_write_it() {
        let odd = "ab~cd:ef^gh|ij%kl\"m\\n/o&p<q>r'1+234";
        let forms = Forms::of(Some(&Secret::parse(odd).unwrap()));
        for written in [
            "ab~cd%3Aef%5Egh%7Cij%25kl%22m%5Cn%2Fo%26p%3Cq%3Er%271%2B234",
            "ab~cd%3aef%5egh%7cij%25kl%22m%5cn%2fo%26p%3cq%3er%271%2b234",
            "ab~cd:ef^gh|ij%kl\\\"m\\\\n/o&p<q>r'1+234",
            "ab~cd:ef^gh|ij%kl\\\"m\\\\n\\/o&p<q>r'1+234",
            "ab~cd:ef^gh|ij%kl\"m\\n/o&amp;p&lt;q&gt;r'1+234",
            "ab~cd:ef^gh|ij%kl&quot;m\\n/o&amp;p&lt;q&gt;r&#39;1+234",
            "ab~cd:ef^gh|ij%kl&#34;m\\n/o&amp;p&lt;q&gt;r&#39;1&#43;234",
        ] {
            assert!(forms.are_told_by(format!("it is {written}, no?").as_bytes()), "{written}");
        }
        assert!(!forms.are_told_by(b"it is ab~cd, no?"));
    }

    #[test]
    fn nothing_else_is() {
        let harmless = format!("{} {} sk-proj- {}", &KEY[..KEY.len() / 2 - 1], &KEY[1..], KEY.to_lowercase());
        assert!(!passed(harmless.as_bytes(), 3).1);
        assert_eq!(Forms::of(None).watch().see(KEY.as_bytes()), Some(0));
    }

    #[test]
    fn an_answer_that_ends_in_the_middle_of_it_tells_so_much() {
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
        for written in [KEY.to_owned(), hex, STANDARD_NO_PAD.encode(KEY)] {
            for (length, is_told) in
                [(0, false), (1, false), (5, false), (6, true), (7, true), (written.len() - 1, true)]
            {
                let answer = format!("you sent {}", &written[..length]);
                for piece in [1, 4, 1_000] {
                    let forms = forms();
                    let mut watch = forms.watch();
                    let passes = answer.as_bytes().chunks(piece).all(|piece| watch.see(piece).is_some());
                    assert_eq!(!passes || watch.ends_within(), is_told, "{answer}");
                }
                assert_eq!(forms().are_told_by(answer.as_bytes()), is_told, "{answer}");
                assert_eq!(
                    forms().are_in_lines(format!("{answer}\nserver: x\n").as_bytes()),
                    is_told,
                    "{answer}"
                );
                // Where something follows, a beginning tells as much as a half of it.
                let followed = format!("{answer}\"}}");
                let is_half = length >= written.len().div_ceil(2);
                assert_eq!(forms().are_told_by(followed.as_bytes()), is_half, "{followed}");
            }
        }
        // Of a short one less stands there by chance.
        let short = Forms::of(Some(&Secret::parse("12345678").unwrap()));
        assert!(short.are_told_by(b"it is 123") && !short.are_told_by(b"it is 12"));
    }

    #[test]
    fn beginning_that_a_server_has_cut_somewhere_is_told_and_a_short_one_is_not() {
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
        for written in [KEY.to_owned(), hex, STANDARD_NO_PAD.encode(KEY)] {
            for (length, is_told) in [(8, false), (written.len() / 2 - 1, false), (written.len() / 2, true)] {
                let answer = format!("{{\"you sent\":\"{}...\"}}", &written[..length]).into_bytes();
                for piece in [1, 3, 1_000] {
                    assert_eq!(passed(&answer, piece).1, is_told, "{length} of {written} by {piece}");
                }
            }
        }
        // A short one is told when all of it is there.
        let short = Forms::of(Some(&Secret::parse("12345678").unwrap()));
        assert!(short.are_told_by(b"it is 12345678.") && !short.are_told_by(b"it is 1234567."));
    }

    #[test]
    fn what_is_said_piece_by_piece_is_put_together() {
        let pieces = |cuts: &[usize], write: fn(&str) -> String| -> (Vec<u8>, bool) {
            let mut begin = 0;
            let mut events = String::from("data: {\"content\":\"it is \"}\n\n");
            for end in cuts.iter().copied().chain([KEY.len()]) {
                events.push_str(&write(&KEY[begin..end]));
                begin = end;
            }
            passed(events.as_bytes(), 40)
        };
        let plain =
            |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
        let spaced = |text: &str| {
            format!("data: {{\"type\": \"x\", \"text\" : \"{}\"}}\n\n", text.replace('/', "\\/"))
        };
        let coded = |text: &str| {
            let text: String = text.chars().map(|one| format!("\\u{:04x}", u32::from(one))).collect();
            format!("data: {{\"delta\":\"{text}\"}}\n\n")
        };
        for write in [plain, spaced, coded] {
            for cuts in [&[9][..], &[1], &[4, 8, 12, 16, 20], &[23]] {
                let (out, is_found) = pieces(cuts, write);
                assert!(is_found, "{cuts:?}");
                let out = String::from_utf8(out).unwrap();
                assert!(!out.contains(&KEY[..8]) && out.matches("data").count() < 4, "{out}");
            }
        }
        // The control: another name between the pieces is another text, and so is a piece that is missing.
        assert!(!passed(plain(&KEY[..9]).repeat(9).as_bytes(), 7).1);
    }

    #[test]
    fn what_only_begins_like_it_comes_later() {
        let forms = forms();
        let mut watch = forms.watch();
        let event = |text: &str| format!("data: {{\"content\":\"{text}\"}}\n\n");
        assert_eq!(watch.see(event("see sk-proj").as_bytes()), Some(usize::MAX));
        assert_eq!(watch.see(event(" and more").as_bytes()), Some(0));
    }

    proptest! {
        #[test]
        fn whatever_is_held_back_comes_later(bytes: Vec<u8>, piece in 1_usize..20) {
            prop_assert_eq!(passed(&bytes, piece), (bytes, false));
        }
    }
}
