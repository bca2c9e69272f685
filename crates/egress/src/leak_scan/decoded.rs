//! Decodes escapes: those of URLs (`%2B`), of JSON and JavaScript strings (`\u002b`, `\x2b`, `\/`), and of HTML (`&#x2B;`,
//! `&#043;`, `&plus;`), in any mixture, in either case, with any leading zeros.
//!
//! Decoding is one rule; a list of spellings would never be complete.

use super::stripped::StrippedViews;
use super::{ScanTail, SecretForms};
use std::borrow::Cow;
use std::ops::Range;
use zeroize::Zeroizing;

/// Number of times that escapes are decoded: a JSON string may stand in an HTML page, or in another JSON string.
pub(super) const LEVELS: usize = 2;

/// Maximum length of an escape in bytes: the number of leading zeros is limited.
const LONGEST: usize = 32;

/// Views of the bytes as they pass: unchanged, with escapes decoded, and without bytes that occur in no form.
pub(super) struct ScanViews<'f> {
    plain: ScanTail<'f>,
    levels: [DecodingLevel<'f>; LEVELS],
    stripped: StrippedViews<'f>,
}

struct DecodingLevel<'f> {
    tail: ScanTail<'f>,
    /// Beginning of an escape whose end is missing.
    rest: Zeroizing<Vec<u8>>,
}

/// Unit that begins at a possible escape.
enum EscapeUnit {
    /// Escape with the byte that it stands for and its length; byte 0 stands for what no secret contains.
    Escape(u8, usize),
    Plain,
    Incomplete,
}

/// HTML names of characters that are not letters.
const NAMED: [(&[u8], u8); 34] = [
    (b"Hat", b'^'),
    (b"NewLine", b'\n'),
    (b"Tab", b'\t'),
    (b"amp", b'&'),
    (b"apos", b'\''),
    (b"ast", b'*'),
    (b"bsol", b'\\'),
    (b"colon", b':'),
    (b"comma", b','),
    (b"commat", b'@'),
    (b"dollar", b'$'),
    (b"equals", b'='),
    (b"excl", b'!'),
    (b"grave", b'`'),
    (b"gt", b'>'),
    (b"lbrace", b'{'),
    (b"lbrack", b'['),
    (b"lcub", b'{'),
    (b"lowbar", b'_'),
    (b"lpar", b'('),
    (b"lsqb", b'['),
    (b"lt", b'<'),
    (b"num", b'#'),
    (b"percnt", b'%'),
    (b"period", b'.'),
    (b"plus", b'+'),
    (b"quest", b'?'),
    (b"quot", b'"'),
    (b"rcub", b'}'),
    (b"rpar", b')'),
    (b"rsqb", b']'),
    (b"semi", b';'),
    (b"sol", b'/'),
    (b"verbar", b'|'),
];

// === impl ScanViews ===

impl<'f> ScanViews<'f> {
    pub(super) fn new(forms: &'f SecretForms) -> Self {
        let level = || DecodingLevel { tail: ScanTail::new(forms), rest: Zeroizing::default() };
        Self { plain: ScanTail::new(forms), levels: [level(), level()], stripped: StrippedViews::new(forms) }
    }

    /// Like [`super::Watch::see`], for these bytes alone.
    pub(super) fn see(&mut self, bytes: &[u8]) -> Option<usize> {
        let held = self.plain.see(bytes)?;
        let mut is_begun = false;
        let mut text = Cow::Borrowed(bytes);
        for level in &mut self.levels {
            let (of_level, decoded) = level.see(text)?;
            // The number of original bytes is not known.
            is_begun |= of_level > held.max(super::BY_CHANCE);
            text = decoded;
        }
        is_begun |= self.stripped.see(&text, held)?;
        Some(if is_begun { usize::MAX } else { held })
    }

    pub(super) fn ends_within(&self) -> bool {
        self.plain.ends_within() || self.levels.iter().any(|level| level.tail.ends_within())
    }
}

// === impl DecodingLevel ===

impl DecodingLevel<'_> {
    /// Scans the next bytes of a level. Returns the length of the part that could begin a form, and the decoded bytes.
    fn see<'b>(&mut self, bytes: Cow<'b, [u8]>) -> Option<(usize, Cow<'b, [u8]>)> {
        if self.rest.is_empty() && escape(&bytes).is_none() {
            // The level below has scanned everything except the border.
            return Some((self.tail.see_border(&bytes)?, bytes));
        }
        let all = Zeroizing::new([self.rest.as_slice(), &bytes].concat());
        let mut decoded = Vec::with_capacity(all.len());
        let used = decode(&all, |piece, _| decoded.extend_from_slice(piece));
        self.rest = Zeroizing::new(all.get(used..).unwrap_or_default().to_vec());
        Some((self.tail.see(&decoded)?, Cow::Owned(decoded)))
    }
}

/// Decodes the escapes of a text. Also returns the position of each byte in the original.
pub(super) fn decode_whole(text: &[u8]) -> Option<(Vec<u8>, Vec<usize>)> {
    escape(text)?;
    let (mut decoded, mut places) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len() + 1));
    let used = decode(text, |piece, source| {
        decoded.extend_from_slice(piece);
        places.extend(source.take(piece.len()));
    });
    decoded.extend_from_slice(&text[used..]);
    places.extend(used..=text.len());
    Some((decoded, places))
}

fn escape(bytes: &[u8]) -> Option<usize> {
    memchr::memchr3(b'%', b'&', b'\\', bytes)
}

/// Passes on the decoded pieces with their positions, and returns the number of bytes used: an incomplete escape isn't.
fn decode(bytes: &[u8], mut put: impl FnMut(&[u8], Range<usize>)) -> usize {
    let mut at = 0;
    while let Some(found) = escape(&bytes[at..]) {
        let end = at + found;
        put(&bytes[at..end], at..end);
        at = end;
        match unit(&bytes[at..]) {
            EscapeUnit::Escape(byte, length) => {
                put(&[byte], at..at + length);
                at += length;
            }
            EscapeUnit::Plain => {
                put(&bytes[at..=at], at..at + 1);
                at += 1;
            }
            EscapeUnit::Incomplete => return at,
        }
    }
    put(&bytes[at..], at..bytes.len());
    bytes.len()
}

/// Reads a unit that begins with `%`, `&` or `\`.
fn unit(bytes: &[u8]) -> EscapeUnit {
    match (bytes[0], bytes.get(1)) {
        (_, None) => EscapeUnit::Incomplete,
        (b'%' | b'\\', Some(b'u')) if bytes.get(2) == Some(&b'{') => braced(bytes),
        (b'%' | b'\\', Some(b'u')) => digits(bytes, 2, 4),
        (b'\\', Some(b'x')) => digits(bytes, 2, 2),
        (b'\\', Some(other)) => EscapeUnit::Escape(escaped(*other), 2),
        (b'%', _) => digits(bytes, 1, 2),
        (_, Some(b'#')) => numbered(bytes),
        _ => named(bytes),
    }
}

/// Returns what a letter after `\` stands for in JSON and JavaScript: white space for some, itself for any other.
pub(super) fn escaped(letter: u8) -> u8 {
    match letter {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        other => other,
    }
}

/// Reads a fixed number of hexadecimal digits.
fn digits(bytes: &[u8], begin: usize, count: usize) -> EscapeUnit {
    let found = bytes.iter().skip(begin).take(count).take_while(|byte| byte.is_ascii_hexdigit()).count();
    match found == count {
        true => EscapeUnit::Escape(value(&bytes[begin..begin + count], 16), begin + count),
        false if begin + found == bytes.len() => EscapeUnit::Incomplete,
        false => EscapeUnit::Plain,
    }
}

/// `\u{2b}`
fn braced(bytes: &[u8]) -> EscapeUnit {
    const BEGIN: usize = 3;
    let found = bytes.iter().skip(BEGIN).take(LONGEST).take_while(|byte| byte.is_ascii_hexdigit()).count();
    match bytes.get(BEGIN + found) {
        None => EscapeUnit::Incomplete,
        Some(b'}') if found > 0 => {
            EscapeUnit::Escape(value(&bytes[BEGIN..BEGIN + found], 16), BEGIN + found + 1)
        }
        Some(_) => EscapeUnit::Plain,
    }
}

/// `&#43;` and `&#x2B;`. The semicolon or any other character ends it.
fn numbered(bytes: &[u8]) -> EscapeUnit {
    let Some(sign) = bytes.get(2) else { return EscapeUnit::Incomplete };
    let (begin, radix) = if sign.eq_ignore_ascii_case(&b'x') { (3, 16) } else { (2, 10) };
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
    let found = bytes.iter().skip(begin).take(LONGEST).take_while(is_digit).count();
    let end = begin + found;
    match bytes.get(end) {
        Some(_) if found == 0 || found == LONGEST => EscapeUnit::Plain,
        None => EscapeUnit::Incomplete,
        Some(next) => EscapeUnit::Escape(value(&bytes[begin..end], radix), end + usize::from(*next == b';')),
    }
}

/// `&plus;`
fn named(bytes: &[u8]) -> EscapeUnit {
    let name = &bytes[1..];
    let length = name.iter().take(LONGEST).take_while(|byte| byte.is_ascii_alphabetic()).count();
    match name.get(length) {
        None if length < LONGEST => EscapeUnit::Incomplete,
        Some(b';') => match NAMED.iter().find(|(own, _)| *own == &name[..length]) {
            Some((_, byte)) => EscapeUnit::Escape(*byte, length + 2),
            None => EscapeUnit::Plain,
        },
        _ => EscapeUnit::Plain,
    }
}

/// Returns the byte of that number; 0 for what no secret contains.
fn value(digits: &[u8], radix: u32) -> u8 {
    let number = std::str::from_utf8(digits).ok().and_then(|digits| u128::from_str_radix(digits, radix).ok());
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or_default()
}
