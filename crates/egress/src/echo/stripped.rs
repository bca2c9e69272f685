//! What bytes say without what may stand between the characters of a secret: the line ends of base64, the separators of hexadecimal
//! digits, the zero bytes of UTF-16.
//!
//! Nothing here lists separators. Where any form of the secret may be written, every byte that is in none of its forms is left out;
//! where it is written in hexadecimal digits, everything that is neither a digit nor another letter.

use super::{BY_CHANCE, Forms, Tail};
use std::borrow::Cow;

/// Such views of the bytes of one answer, as they pass.
pub(super) struct Stripped<'f> {
    of_forms: Option<Tail<'f>>,
    of_digits: Option<Digits<'f>>,
}

struct Digits<'f> {
    tail: Tail<'f>,
    /// Digits since the last byte that is none.
    run: usize,
    /// A `0` that begins such a run, and may be the one of `0x`.
    has_zero: bool,
    /// Whether a letter that is no digit was the last thing that was put.
    is_broken: bool,
}

/// Stands for letters that are no digits.
const BREAK: u8 = b'.';

// === impl Stripped ===

impl<'f> Stripped<'f> {
    pub(super) fn new(forms: &'f Forms) -> Self {
        let digits = |forms| Digits { tail: Tail::new(forms), run: 0, has_zero: false, is_broken: false };
        Self {
            of_forms: (!forms.forms.is_empty()).then(|| Tail::new(forms)),
            of_digits: forms.digits.as_deref().map(digits),
        }
    }

    /// Looks at bytes that follow those before. `None` if a form of the secret is complete with them; otherwise whether they could
    /// end with a part of one, where so many bytes are held anyway.
    pub(super) fn see(&mut self, bytes: &[u8], held: usize) -> Option<bool> {
        let mut is_begun = false;
        if let Some(tail) = &mut self.of_forms {
            let of_forms = match strip(bytes, &tail.forms.alphabet) {
                // It was looked through as it is.
                Cow::Borrowed(bytes) => tail.see_border(bytes)?,
                Cow::Owned(stripped) => tail.see(&stripped)?,
            };
            is_begun |= of_forms > held.max(BY_CHANCE);
        }
        if let Some(digits) = &mut self.of_digits {
            is_begun |= digits.see(bytes)? > held.max(BY_CHANCE);
        }
        Some(is_begun)
    }
}

/// Bytes without those that are in no form.
pub(super) fn strip<'b>(bytes: &'b [u8], alphabet: &[bool; 256]) -> Cow<'b, [u8]> {
    let (mut stripped, mut length) = (vec![0; bytes.len()], 0);
    for byte in bytes {
        // Without a branch: one for each byte would be guessed wrong too often.
        stripped[length] = *byte;
        length += usize::from(alphabet[usize::from(*byte)]);
    }
    if length == bytes.len() {
        return Cow::Borrowed(bytes);
    }
    stripped.truncate(length);
    Cow::Owned(stripped)
}

// === impl Digits ===

impl Digits<'_> {
    fn see(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut digits = Vec::with_capacity(bytes.len() + 1);
        for byte in bytes {
            self.put(*byte, &mut digits);
        }
        self.tail.see(&digits)
    }

    fn put(&mut self, byte: u8, digits: &mut Vec<u8>) {
        let is_prefix = matches!(byte, b'x' | b'X') && self.run <= 1;
        if self.has_zero && !is_prefix {
            digits.push(b'0');
        }
        self.has_zero = false;
        if byte.is_ascii_hexdigit() {
            self.run += 1;
            self.is_broken = false;
            match byte == b'0' && self.run == 1 {
                true => self.has_zero = true,
                false => digits.push(byte.to_ascii_lowercase()),
            }
            return;
        }
        self.run = 0;
        if byte.is_ascii_alphabetic() && !is_prefix && !self.is_broken {
            self.is_broken = true;
            digits.push(BREAK);
        }
    }
}
