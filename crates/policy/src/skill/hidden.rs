//! Finds text in a skill that a human reader doesn't see and a model does.

use super::rules;
use super::words::{TextWord, words};
use super::{Category, SkillRejection};
use belljar_contract::text::is_hidden;

/// Markers that hide a text when it is rendered: its beginning and its end.
const UNSEEN_TEXTS: [(&str, &str); 3] = [("<!--", "-->"), ("[//]:", "\n"), ("[comment]:", "\n")];

/// Styles that hide their element, without spaces.
const STYLES: [&str; 6] =
    ["display:none", "visibility:hidden", "font-size:0", "opacity:0;", "opacity:0\"", "opacity:0'"];

/// Maximum number of bytes of a style that are scanned. Otherwise a text of only style beginnings would take quadratic time.
const LONGEST_STYLE: usize = 256;

const UNSEEN_CHARACTERS: &str = "has invisible characters";
const MIXED: &str = "has a word with letters of two alphabets that look alike";
const COMMENT: &str = "gives an agent instructions in a hidden comment";
const STYLE: &str = "has text that is not shown";

pub(super) fn check(content: &str) -> Result<(), SkillRejection> {
    let found = characters(content)
        .map(|text| (UNSEEN_CHARACTERS, text))
        .or_else(|| mixed(content).map(|text| (MIXED, text)))
        .or_else(|| comment(content).map(|text| (COMMENT, text)))
        .or_else(|| style(content).map(|text| (STYLE, text)));
    match found {
        Some((reason, text)) => Err(SkillRejection::new(Category::HiddenInstructions, reason, text)),
        None => Ok(()),
    }
}

/// Returns the first run of invisible characters. Characters that join emoji are allowed where they do that.
fn characters(content: &str) -> Option<&str> {
    let mut before = None;
    for (at, c) in content.char_indices() {
        let rest = &content[at..];
        if is_hidden(c) && !is_part_of_emoji(before, c, rest) {
            let end = rest.find(|c| !is_hidden(c)).unwrap_or(rest.len());
            return Some(&rest[..end]);
        }
        before = Some(c);
    }
    None
}

fn is_part_of_emoji(before: Option<char>, c: char, rest: &str) -> bool {
    let is_picture = |c: char| !c.is_ascii() && !c.is_alphabetic() && !is_hidden(c);
    let follows = |is: &dyn Fn(char) -> bool| before.is_some_and(is);
    match c {
        // Variation selectors: one for each character.
        '\u{fe0e}' | '\u{fe0f}' => follows(&|c| is_picture(c) || matches!(c, '0'..='9' | '#' | '*')),
        '\u{200d}' => {
            let next = rest.chars().nth(1);
            follows(&|c| is_picture(c) || c == '\u{fe0f}') && next.is_some_and(is_picture)
        }
        _ => false,
    }
}

/// Returns the first word that mixes Latin and Cyrillic letters.
fn mixed(content: &str) -> Option<&str> {
    let is_cyrillic = |c: char| matches!(c, '\u{400}'..='\u{52f}');
    let is_mixed =
        |word: &&str| word.contains(is_cyrillic) && word.contains(|c: char| c.is_ascii_alphabetic());
    content.split(|c: char| !c.is_alphanumeric()).find(is_mixed)
}

/// Returns the first hidden text that addresses an agent or contains a phrase.
fn comment(content: &str) -> Option<&str> {
    UNSEEN_TEXTS.iter().find_map(|(begin, end)| {
        let mut rest = content;
        loop {
            rest = &rest[rest.find(begin)?..];
            let length = rest[begin.len()..].find(end).map_or(rest.len(), |at| begin.len() + at + end.len());
            let comment = &rest[..length];
            if speaks_to_an_agent(&words(comment)) {
                return Some(comment.trim_end());
            }
            rest = &rest[length..];
        }
    })
}

fn speaks_to_an_agent(words: &[TextWord]) -> bool {
    rules::first(words).is_some() || rules::addresses(words)
}

/// Returns the first style that hides something.
fn style(content: &str) -> Option<&str> {
    content.match_indices("style").find_map(|(at, _)| {
        let rest = &content[at..];
        let rest = &rest[..rest.floor_char_boundary(LONGEST_STYLE)];
        let tag = &rest[..rest.find('>').unwrap_or(rest.len())];
        let plain: String = tag.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
        STYLES.iter().any(|style| plain.contains(style)).then_some(tag)
    })
}
