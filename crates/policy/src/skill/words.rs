//! Splits a text into normalized words: lower case, without accents, with full-width letters as ordinary ones.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Word with its position.
#[derive(Debug)]
pub(super) struct TextWord {
    pub(super) sound: String,
    pub(super) from: usize,
    pub(super) to: usize,
    /// True if a sentence or a paragraph ends after it.
    pub(super) is_last: bool,
}

pub(super) fn words(text: &str) -> Vec<TextWord> {
    let mut words: Vec<TextWord> = Vec::new();
    let mut begun = None;
    let end = [(text.len(), ' ')];
    for (at, c) in text.char_indices().chain(end) {
        match begun {
            None if c.is_alphanumeric() => begun = Some(at),
            Some(from) if !is_of_word(c) => {
                let between = words.last().map_or(0, |word| word.to);
                if let Some(before) = words.last_mut() {
                    before.is_last = is_end(&text[between..from]);
                }
                words.push(TextWord { sound: sound(&text[from..at]), from, to: at, is_last: false });
                begun = None;
            }
            _ => {}
        }
    }
    words
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c) || matches!(c, '\'' | '’')
}

fn sound(word: &str) -> String {
    let plain = word.nfkd().filter(|&c| !is_combining_mark(c)).map(|c| if c == '’' { '\'' } else { c });
    plain.flat_map(char::to_lowercase).collect::<String>().trim_end_matches('\'').to_owned()
}

/// Returns true if the text between two words ends a sentence or a paragraph.
fn is_end(between: &str) -> bool {
    let lines = between.bytes().filter(|&byte| byte == b'\n').count();
    lines > 1 || between.contains(['.', '!', '?'])
}
