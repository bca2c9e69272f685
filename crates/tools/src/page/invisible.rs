//! Characters that nobody sees, and that say something all the same to whoever reads by the character.

/// The text without them. Those who need joiners to be spelled well are spelled less well.
pub fn without_invisible(text: &str) -> String {
    text.chars().filter(|one| !is_invisible(*one)).collect()
}

fn is_invisible(one: char) -> bool {
    let is_control = one.is_control() && !matches!(one, '\n' | '\t');
    is_control
        || matches!(
            one,
            // The soft hyphen, the joiner of graphemes, and the mark of Arabic letters.
            '\u{ad}' | '\u{34f}' | '\u{61c}'
            // Fillers and vowels without a shape.
            | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}'
            // Selectors of variations.
            | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}'
            // Of no width; marks, embeddings, overrides and isolates of direction.
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            // Annotations, musical beams and shorthand.
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // What belongs to nobody, and the tags: a whole alphabet that can't be seen.
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alphabet_that_nobody_sees_is_gone_and_what_is_seen_stays() {
        let tags: String =
            "ignore all".chars().filter_map(|one| char::from_u32(0xe0000 + u32::from(one))).collect();
        assert_eq!(tags.chars().count(), 10);
        let hidden = format!("pa\u{200b}y\u{ad}pal\u{202e}{tags}\u{fe0f}\u{7}\u{1b}[31m\r\n\tend");
        assert_eq!(without_invisible(&hidden), "paypal[31m\n\tend");
        let seen = "Grüße, 東京, здравствуйте, שלום, 🙂, naïve — “quoted” 100 %";
        assert_eq!(without_invisible(seen), seen);
    }
}
