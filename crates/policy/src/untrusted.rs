//! Text that a sandbox, an agent, a server or a file name supplied, in a form that is safe to print and shows everything that is in it.
//!
//! [`Untrusted`] replaces every character that a terminal acts on, that reorders text or that has no visible glyph by an escape:
//! `\u{202e}` for a character, `\x{ff}` for a byte that is not UTF-8. A backslash that stands before `u{` or `x{` is itself printed as
//! `\u{5c}`, so an escape in the output always stands for the character that it names.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::path::Path;

/// A text on one line: line breaks and tabs are escaped, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untrusted<'a>(pub &'a str);

/// A text of several lines: line feeds and tabs stay, everything else is escaped as in [`Untrusted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedLines<'a>(pub &'a str);

/// Bytes that should be UTF-8 and may not be, on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedBytes<'a>(pub &'a [u8]);

/// A path on one line.
pub fn path(path: &Path) -> UntrustedBytes<'_> {
    UntrustedBytes(path.as_os_str().as_encoded_bytes())
}

/// Returns true if printing the character would hide it, reorder the text around it or make a terminal act.
///
/// These are controls, format characters (bidirectional overrides and isolates, zero-width characters, tags, interlinear annotation),
/// line and paragraph separators, blanks other than the space, fillers without a glyph, variation selectors, private use and
/// noncharacters.
pub const fn is_hidden(character: char) -> bool {
    matches!(character,
        // Controls: C0, DEL and C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Blanks that are not the space.
        | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
        // Zero width, direction, separators.
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        // Other format characters.
        | '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bcaf}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
        // Fillers: Hangul, Khmer, Braille, Khitan.
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{16fe4}'
        // Variation selectors.
        | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}'
        // Private use, specials and noncharacters; tags and supplementary variation selectors.
        | '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}' | '\u{fff0}'..='\u{fffc}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}'
    ) || character as u32 & 0xfffe == 0xfffe
}

/// JSON with every hidden character in its strings as `\uXXXX`. A parser reads the same document from it.
pub fn json(document: &str) -> Cow<'_, str> {
    let is_escaped = |character: char| is_hidden(character) && !matches!(character, '\n' | '\t' | '\r');
    if !document.contains(is_escaped) {
        return Cow::Borrowed(document);
    }
    let mut escaped = String::with_capacity(document.len() + 64);
    for character in document.chars() {
        match is_escaped(character) {
            true => escape_as_json(character, &mut escaped),
            false => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// Appends the character as JSON escapes it: one `\uXXXX`, or two outside of the basic plane.
pub fn escape_as_json(character: char, into: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        // Writing to a String can't fail.
        let _ = write!(into, "\\u{unit:04x}");
    }
}

/// Returns the length of a text in bytes once its hidden characters are escaped for JSON. That is its length in the audit log.
pub fn escaped_length(text: &str) -> usize {
    text.chars().map(escaped_width).sum()
}

/// Returns the longest prefix of a text that has at most this length in a JSON string with its hidden characters escaped.
pub fn escaped_prefix(text: &str, longest: usize) -> &str {
    let mut length: usize = 0;
    for (at, character) in text.char_indices() {
        let width = if matches!(character, '"' | '\\') { 2 } else { escaped_width(character) };
        length = length.saturating_add(width);
        if length > longest {
            return &text[..at];
        }
    }
    text
}

fn escaped_width(character: char) -> usize {
    const UNIT: usize = "\\u0000".len();
    if is_hidden(character) { UNIT * character.len_utf16() } else { character.len_utf8() }
}

/// Returns the path as a text for programs: itself if it is UTF-8, otherwise with escapes for the other bytes. A path that
/// looks like the text of another one is escaped, too, so that two paths never have the same text.
pub fn name(path: &Path) -> String {
    let is_itself = |text: &&str| !is_escaped_name(text);
    path.to_str().filter(is_itself).map_or_else(|| self::path(path).to_string(), str::to_owned)
}

/// Returns a text of [`name`] on one line. Escaped ones stay unchanged, so that they can be typed.
pub fn named(text: &str) -> String {
    if is_escaped_name(text) { text.to_owned() } else { Untrusted(text).to_string() }
}

/// Returns true if a text has what every text has that [`name`] escapes: a byte, or the backslash of something that looks like
/// one.
fn is_escaped_name(text: &str) -> bool {
    text.contains("\\x{") || text.contains("u{5c}x{")
}

fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str, has_lines: bool) -> fmt::Result {
    let mut plain_from = 0;
    for (at, character) in text.char_indices() {
        let after = at + character.len_utf8();
        let is_escaped = match character {
            // At the end of a name, too: the next output may look like the rest of an escape.
            '\\' if after == text.len() => !has_lines,
            '\\' => matches!(text.as_bytes().get(after..after + 2), Some(b"u{" | b"x{")),
            '\n' | '\t' => !has_lines,
            other => is_hidden(other),
        };
        if is_escaped {
            f.write_str(&text[plain_from..at])?;
            write!(f, "\\u{{{:x}}}", u32::from(character))?;
            plain_from = after;
        }
    }
    f.write_str(&text[plain_from..])
}

impl fmt::Display for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.0, false)
    }
}

impl fmt::Display for UntrustedLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.0, true)
    }
}

impl fmt::Display for UntrustedBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            Untrusted(chunk.valid()).fmt(f)?;
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{{{byte:02x}}}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the text that an escaped one stands for.
    fn read_back(printed: &str) -> String {
        let mut rest = printed;
        let mut text = String::new();
        while let Some(at) = rest.find("\\u{") {
            text.push_str(&rest[..at]);
            let (digits, after) = rest[at + 3..].split_once('}').unwrap();
            text.push(char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap());
            rest = after;
        }
        text + rest
    }

    #[test]
    fn escaped_length_is_that_of_the_escaped_text() {
        for text in ["", "plain", "é漢🦀", "\u{202e}a\u{e0041}\u{7f}"] {
            assert_eq!(escaped_length(text), json(text).len(), "{text:?}");
        }
        assert_eq!(escaped_prefix("a\u{e0041}b\"c", 13), "a\u{e0041}");
        assert_eq!(escaped_prefix("a\u{e0041}b\"c", 12), "a");
        assert_eq!(escaped_prefix("ab\"c", 4), "ab\"");
        assert_eq!(escaped_prefix("abc", 3), "abc");
    }

    #[test]
    fn hidden_control_and_bidi_characters_are_escaped() {
        let hidden = "\0\u{7}\u{1b}\u{7f}\u{85}\u{9b}\u{a0}\u{ad}\u{34f}\u{61c}\u{115f}\u{180e}\u{200b}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\
            \u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{2800}\u{3000}\u{3164}\u{e000}\u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{fffb}\u{1d173}\
            \u{e0001}\u{e0020}\u{e007f}\u{e0100}\u{f0000}\u{10fffd}\u{1fffe}";
        for character in hidden.chars() {
            let text = format!("a{character}b");
            let printed = Untrusted(&text).to_string();
            assert_eq!(printed, format!("a\\u{{{:x}}}b", u32::from(character)));
            assert_eq!(json(&text).chars().filter(|one| is_hidden(*one)).count(), 0, "{printed}");
        }
        // Control: ordinary text of several scripts stays unchanged.
        let plain = "a b/ü漢字🦀 שלום हिन्दी 한글 \\n \\d {x}";
        assert_eq!(Untrusted(plain).to_string(), plain);
        assert_eq!(UntrustedLines("a\n\tb\r\u{202e}").to_string(), "a\n\tb\\u{d}\\u{202e}");
        assert_eq!(Untrusted("a\n\tb").to_string(), "a\\u{a}\\u{9}b");
    }

    #[test]
    fn text_spelling_an_escape_differs_from_an_escaped_character() {
        let (real, spelled) = ("a\u{202e}b", "a\\u{202e}b");
        assert_eq!(Untrusted(real).to_string(), "a\\u{202e}b");
        assert_eq!(Untrusted(spelled).to_string(), "a\\u{5c}u{202e}b");
        assert_eq!(Untrusted("a\\").to_string(), "a\\u{5c}");
        assert_eq!(UntrustedBytes(b"a\xff\\x{ff}\xc3").to_string(), "a\\x{ff}\\u{5c}x{ff}\\x{c3}");
        assert_eq!(path(Path::new("a\u{200b}")).to_string(), "a\\u{200b}");
    }

    proptest! {
        #[test]
        fn escaped_text_round_trips_without_hidden_characters(text in "[\\\\ux{}2a\u{202e}\u{200b}\n\u{e0041}é]{0,24}") {
            let printed = Untrusted(&text).to_string();
            prop_assert!(!printed.contains(is_hidden));
            prop_assert_eq!(read_back(&printed), text);
        }

        #[test]
        fn escaped_json_parses_to_the_same_value(text: String) {
            let document = serde_json::Value::from(text).to_string();
            let escaped = json(&document);
            prop_assert!(!escaped.contains(is_hidden));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), serde_json::from_str::<serde_json::Value>(&document).unwrap());
        }
    }
}
