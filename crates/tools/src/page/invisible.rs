//! Removes invisible characters, which could hide instructions from human readers.

/// The text without invisible characters. Scripts that need joiners are rendered less accurately.
pub fn without_invisible(text: &str) -> String {
    text.chars().filter(|one| !is_invisible(*one)).collect()
}

fn is_invisible(one: char) -> bool {
    let is_control = one.is_control() && !matches!(one, '\n' | '\t');
    is_control
        || matches!(
            one,
            // Soft hyphen, combining grapheme joiner, Arabic letter mark.
            '\u{ad}' | '\u{34f}' | '\u{61c}'
            // Fillers and vowels without a glyph.
            | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
            // Variation selectors.
            | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}'
            // Zero-width characters; directional marks, embeddings, overrides and isolates.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            // Interlinear annotations, musical beams, shorthand format controls.
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // Private use characters, and tags: a complete invisible alphabet.
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_removed_and_visible_ones_kept() {
        let tags: String =
            "ignore all".chars().filter_map(|one| char::from_u32(0xe0000 + u32::from(one))).collect();
        assert_eq!(tags.chars().count(), 10);
        let hidden = format!("pa\u{200b}y\u{ad}pal\u{202e}{tags}\u{fe0f}\u{7}\u{1b}[31m\r\n\tend");
        assert_eq!(without_invisible(&hidden), "paypal[31m\n\tend");
        let seen = "Grüße, 東京, здравствуйте, שלום, 🙂, naïve — “quoted” 100 %";
        assert_eq!(without_invisible(seen), seen);
    }
}
