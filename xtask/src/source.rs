//! Rust source for checks: the code without its comments and literals, or the names that it mentions.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeSet;

/// The text with every comment and every literal's content replaced by spaces; lines stay where they are.
pub(crate) fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match token_to_blank(rest, code.chars().next_back()) {
            0 => {
                code.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            length => length,
        };
        code.extend(rest[..length].chars().map(|c| if c == '\n' { c } else { ' ' }));
        rest = &rest[length..];
    }
    code
}

/// The length of the comment or literal that `rest` begins with; 0 if it begins with code.
fn token_to_blank(rest: &str, before: Option<char>) -> usize {
    let inside_a_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if rest.starts_with('"') {
        return quoted(rest, 1);
    }
    if rest.starts_with('\'') {
        return character(rest);
    }
    let prefix = rest.bytes().take_while(|byte| b"rbc".contains(byte)).count();
    if inside_a_word || prefix == 0 || prefix > 2 {
        return 0;
    }
    let (letters, after) = rest.split_at(prefix);
    let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
    match after[hashes..].starts_with('"') {
        true if letters.contains('r') => raw(rest, prefix + hashes + 1, hashes),
        true if hashes == 0 => quoted(rest, prefix + 1),
        _ => 0,
    }
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of a literal with escapes whose content begins at `at`.
fn quoted(rest: &str, at: usize) -> usize {
    let mut escaped = false;
    for (offset, byte) in rest.bytes().enumerate().skip(at) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return offset + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw(rest: &str, at: usize, hashes: usize) -> usize {
    let end = format!("\"{}", "#".repeat(hashes));
    rest[at..].find(&end).map_or(rest.len(), |offset| at + offset + end.len())
}

/// The length of a character literal; 0 for a lifetime.
fn character(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((escaped, _))) => {
            rest[escaped + 1..].find('\'').map_or(rest.len(), |offset| escaped + 1 + offset + 1)
        }
        (Some(_), Some((end, '\''))) => end + 1,
        _ => 0,
    }
}

/// Returns true if `code` has `word` as a whole word.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Adds the names that tokens mention: identifiers, names in braces in strings, and names in strings of attributes.
pub(crate) fn words_of(tokens: TokenStream, words: &mut BTreeSet<String>) {
    let mut begins_attribute = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) if begins_attribute => attribute_words(&group.stream(), words),
            TokenTree::Group(group) => words_of(group.stream(), words),
            TokenTree::Ident(name) => _ = words.insert(name.to_string()),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let captured = text.split('{').skip(1).map(|text| text.split(is_no_word).next());
                words.extend(captured.flatten().filter(|word| !word.is_empty()).map(str::to_owned));
            }
            TokenTree::Punct(mark) => {
                begins_attribute = mark.as_char() == '#';
                continue;
            }
        }
        begins_attribute = false;
    }
}

/// Adds the names that an attribute mentions; documentation counts as mentioning none.
fn attribute_words(tokens: &TokenStream, words: &mut BTreeSet<String>) {
    let text = tokens.to_string();
    if !text.starts_with("doc") {
        words.extend(text.split(is_no_word).filter(|word| !word.is_empty()).map(str::to_owned));
    }
}

fn is_no_word(character: char) -> bool {
    !character.is_alphanumeric() && character != '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_line_numbers_stay() {
        let text = "a // todo\nb /* x /* y */\n z */ c\nd(\"s \\\" t\", 'e', '\\'', b\"f\", r#\"g \" h\"#) 'i: br\"\\\" j";
        let code = code_only(text);
        assert_eq!(code.split_whitespace().collect::<String>(), "abcd(,,,,)'i:j");
        assert_eq!(code.lines().count(), text.lines().count());
    }

    #[test]
    fn word_search_ignores_longer_words() {
        assert!(has_word("unsafe { }", "unsafe"));
        assert!(!has_word("#![forbid(unsafe_code)]", "unsafe"));
    }
}
