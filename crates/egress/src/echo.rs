//! Finds what was injected in what comes back.
//!
//! Some upstreams repeat a request in an error, with its headers. Whoever is in the sandbox must not see them, whole, in
//! pieces, or written in another way.

use crate::secret::Secret;
use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// How a secret may be written.
pub(crate) struct Forms {
    searcher: Option<AhoCorasick>,
    forms: Vec<Vec<u8>>,
}

/// Looks at the bytes of one answer as they pass.
pub(crate) struct Watch<'f> {
    forms: &'f Forms,
    /// The last bytes seen, as many as could belong to a form that isn't complete.
    tail: Vec<u8>,
}

/// Of a form in base64, what is shorter stands anywhere by chance.
const SHORTEST: usize = 8;

// === impl Forms ===

impl Forms {
    /// Of one secret, or of none.
    pub(crate) fn of(secret: Option<&Secret>) -> Self {
        let Some(secret) = secret else { return Self { searcher: None, forms: Vec::new() } };
        let bytes = secret.expose();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut forms = vec![bytes.to_vec(), hex.to_ascii_uppercase().into_bytes(), hex.into_bytes()];
        for offset in 0..3 {
            // Inside something longer it begins at any of three places in a group; what it shares with others is left out.
            let mut padded = vec![0; offset];
            padded.extend_from_slice(bytes);
            let encoded = STANDARD_NO_PAD.encode(&padded);
            let (begin, end) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
            if let Some(core) = encoded.get(begin..end).filter(|core| core.len() >= SHORTEST) {
                forms.push(core.replace('+', "-").replace('/', "_").into_bytes());
                forms.push(core.as_bytes().to_vec());
            }
        }
        forms.sort();
        forms.dedup();
        Self { searcher: AhoCorasick::new(&forms).ok(), forms }
    }

    /// Whether it stands in there.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        self.searcher.as_ref().is_some_and(|searcher| searcher.is_match(bytes))
            // Should there be no searcher for what there is to be found, nothing is passed on.
            || (self.searcher.is_none() && !self.forms.is_empty())
    }

    pub(crate) fn watch(&self) -> Watch<'_> {
        Watch { forms: self, tail: Vec::new() }
    }

    fn longest(&self) -> usize {
        self.forms.iter().map(Vec::len).max().unwrap_or_default()
    }
}

// === impl Watch ===

impl Watch<'_> {
    /// Looks at bytes that follow those before. `None` if a form of the secret is complete with them; otherwise how many
    /// of the last bytes, of these and those before, could be the beginning of one.
    pub(crate) fn see(&mut self, bytes: &[u8]) -> Option<usize> {
        let keep = self.forms.longest().saturating_sub(1);
        if keep == 0 {
            return Some(0);
        }
        if self.forms.is_in(bytes) {
            return None;
        }
        let end = bytes.get(bytes.len().saturating_sub(keep)..).unwrap_or(bytes);
        if !self.tail.is_empty() {
            // What lies across the border.
            let begin = bytes.get(..keep).unwrap_or(bytes);
            let across = [self.tail.as_slice(), begin].concat();
            if self.forms.is_in(&across) {
                return None;
            }
        }
        self.tail.extend_from_slice(end);
        let surplus = self.tail.len().saturating_sub(keep);
        self.tail.drain(..surplus);
        Some(self.held())
    }

    /// How long the longest end of the tail is with which a form begins.
    fn held(&self) -> usize {
        let ends = |form: &Vec<u8>| {
            let most = form.len().min(self.tail.len() + 1).saturating_sub(1);
            (1..=most).rev().find(|length| self.tail.ends_with(form.get(..*length).unwrap_or_default()))
        };
        self.forms.forms.iter().filter_map(ends).max().unwrap_or_default()
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
            out = out.max(seen.len() - held);
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
    fn nothing_else_is() {
        let harmless = format!("{} {} sk-proj- {}", &KEY[..KEY.len() - 1], &KEY[1..], KEY.to_lowercase());
        assert!(!passed(harmless.as_bytes(), 3).1);
        assert_eq!(Forms::of(None).watch().see(KEY.as_bytes()), Some(0));
    }

    proptest! {
        #[test]
        fn whatever_is_held_back_comes_later(bytes: Vec<u8>, piece in 1_usize..20) {
            prop_assert_eq!(passed(&bytes, piece), (bytes, false));
        }
    }
}
