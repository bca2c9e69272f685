//! Texts that are too long to be passed on whole.

/// Returns the beginning and the end of a text that is too long: error messages are at either.
pub(crate) fn within(text: String, room: usize) -> String {
    if text.len() <= room {
        return text;
    }
    let (mut start, mut end) = (room / 2, text.len() - room / 2);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    format!("{}\n[{} bytes left out]\n{}", &text[..start], end - start, &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_in_the_middle() {
        assert_eq!(within("short".to_owned(), 10), "short");
        let text = format!("begin{}end", "ä".repeat(100));
        let cut = within(text, 21);
        assert!(cut.starts_with("begin") && cut.ends_with("end"), "{cut}");
        assert!(cut.contains("bytes left out") && cut.len() < 60, "{cut}");
    }
}
