//! Text for people: errors with their causes; invisible characters, and characters that make text look different from what it is.

use std::borrow::Cow;
use std::error::Error;

/// Returns an error and its causes on one line. A cause that ends the text already is not repeated.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// Returns true if a character is invisible or changes the displayed order: controls except line ends and tabs,
/// direction marks, joiners, fillers, tags, variation selectors, and characters for private use.
pub fn is_hidden(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    is_control
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{e000}'..='\u{f8ff}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{10ffff}'
        )
}

/// Returns bytes as a line of text. Bytes that are not UTF-8 become `\\xff`, hidden characters and line ends become
/// `\\u{202e}`, and backslashes are doubled.
pub fn escaped(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => shown.push_str("\\\\"),
                c if c.is_control() || is_hidden(c) => shown.extend(c.escape_unicode()),
                c => shown.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02x}")));
    }
    shown
}

/// Returns a path as results show it: unchanged, or [`escaped`] if it is not UTF-8.
pub fn of_path(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| escaped(bytes).into(), Cow::Borrowed)
}

/// Returns true if the text is one line: not empty, no hidden characters, no line ends, no spaces other than the ASCII
/// space, and none at either end.
pub(crate) fn is_printable(text: &str) -> bool {
    let is_seen = |c: char| c == ' ' || !(c.is_whitespace() || c.is_control() || is_hidden(c));
    !text.is_empty() && text.trim() == text && text.chars().all(is_seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_file_names_are_single_line_and_unambiguous() {
        for (name, shown) in [
            (&b"a b/\xc3\xa9.rs"[..], "a b/\u{e9}.rs"),
            (b"a\n[FILE] b", "a\\u{a}[FILE] b"),
            (b"a\\u{a}", "a\\\\u{a}"),
            (b"\xff\xc3", "\\xff\\xc3"),
            (b"\\xff", "\\\\xff"),
            ("\u{202e}\u{1b}[0m".as_bytes(), "\\u{202e}\\u{1b}[0m"),
        ] {
            assert_eq!(escaped(name), shown);
        }
    }

    #[test]
    fn is_hidden_flags_misleading_characters_only() {
        for c in ['a', 'é', '漢', '🦀', ' ', '\n', '\t', '\u{301}', '\u{3000}'] {
            assert!(!is_hidden(c), "{c:?}");
        }
        for c in [
            '\0',
            '\u{1b}',
            '\u{85}',
            '\u{200b}',
            '\u{202e}',
            '\u{2066}',
            '\u{fe0f}',
            '\u{e0041}',
            '\u{e000}',
        ] {
            assert!(is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn printable_text_is_one_line_without_outer_whitespace() {
        for text in ["a", "Ada Lovelace", "ada@example.org", "Zoë"] {
            assert!(is_printable(text), "{text:?}");
        }
        for text in ["", " ", " a", "a ", "a\nb", "a\tb", "a\u{a0}b", "a\u{200b}b", "a\0"] {
            assert!(!is_printable(text), "{text:?}");
        }
    }
}
