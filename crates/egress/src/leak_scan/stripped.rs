//! Removes bytes that may stand between the characters of a secret: line ends in base64, separators between hexadecimal digits,
//! zero bytes of UTF-16.
//!
//! There is no list of separators. For forms in general, every byte that occurs in no form is removed; for hexadecimal digits,
//! everything that is neither a digit nor another letter.

use super::{BY_CHANCE, ScanTail, SecretForms};
use std::borrow::Cow;

/// Stripped views of the bytes of one answer, as they pass.
pub(super) struct StrippedViews<'f> {
    of_forms: Option<ScanTail<'f>>,
    of_digits: Option<DigitsView<'f>>,
}

struct DigitsView<'f> {
    tail: ScanTail<'f>,
    /// Number of digits since the last other byte.
    run: usize,
    /// A `0` that begins such a run, and may belong to `0x`.
    has_zero: bool,
    /// True if the last output was a letter that is no digit.
    is_broken: bool,
}

/// Stands for letters that are no digits.
const BREAK: u8 = b'.';

// === impl StrippedViews ===

impl<'f> StrippedViews<'f> {
    pub(super) fn new(forms: &'f SecretForms) -> Self {
        let digits =
            |forms| DigitsView { tail: ScanTail::new(forms), run: 0, has_zero: false, is_broken: false };
        Self {
            of_forms: (!forms.forms.is_empty()).then(|| ScanTail::new(forms)),
            of_digits: forms.digits.as_deref().map(digits),
        }
    }

    /// Scans the next bytes. Returns `None` if they complete a form of the secret; otherwise returns true if they could end
    /// with a part of one. `held` bytes are held anyway.
    pub(super) fn see(&mut self, bytes: &[u8], held: usize) -> Option<bool> {
        let mut is_begun = false;
        if let Some(tail) = &mut self.of_forms {
            let of_forms = match strip(bytes, &tail.forms.alphabet) {
                // It was scanned unchanged.
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

/// Returns the bytes without those that occur in no form.
pub(super) fn strip<'b>(bytes: &'b [u8], alphabet: &[bool; 256]) -> Cow<'b, [u8]> {
    let (mut stripped, mut length) = (vec![0; bytes.len()], 0);
    for byte in bytes {
        // Branchless: a branch for each byte would be mispredicted too often.
        stripped[length] = *byte;
        length += usize::from(alphabet[usize::from(*byte)]);
    }
    if length == bytes.len() {
        return Cow::Borrowed(bytes);
    }
    stripped.truncate(length);
    Cow::Owned(stripped)
}

// === impl DigitsView ===

impl DigitsView<'_> {
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
