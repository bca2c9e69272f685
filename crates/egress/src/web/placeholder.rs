//! `belljar:cred:NAME`: the placeholder that a sandbox has in place of a credential.

/// Parts that every placeholder begins with, and that nothing else does which a program would send.
const BEGIN: [&[u8]; 2] = [b"belljar", b"cred"];

/// Piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextPiece<'t> {
    /// Plain text.
    Text(&'t [u8]),
    /// Placeholder, by its name. The name may be unknown or empty.
    Placeholder(&'t str),
}

/// Splits a text into its pieces, in order.
pub(super) fn pieces(text: &[u8]) -> Vec<TextPiece<'_>> {
    let (mut all, mut rest, mut from) = (Vec::new(), text, 0);
    while let Some(found) = memchr::memmem::find(&rest[from..], BEGIN[0]).map(|at| from + at) {
        match placeholder(&rest[found..]) {
            Some((name, length)) => {
                if found > 0 {
                    all.push(TextPiece::Text(&rest[..found]));
                }
                all.push(TextPiece::Placeholder(name));
                (rest, from) = (&rest[found + length..], 0);
            }
            None => from = found + BEGIN[0].len(),
        }
    }
    if !rest.is_empty() {
        all.push(TextPiece::Text(rest));
    }
    all
}

/// Returns true if the text has a placeholder.
pub(super) fn is_in(text: &[u8]) -> bool {
    first(text).is_some()
}

/// Returns the first placeholder, in the form that may be shown to the client.
pub(super) fn first(text: &[u8]) -> Option<String> {
    pieces(text).into_iter().find_map(|piece| match piece {
        TextPiece::Placeholder(name) => Some(format!("belljar:cred:{name}")),
        TextPiece::Text(_) => None,
    })
}

/// Returns the name and the length of the placeholder that the text begins with. In a URL its colons may be percent-encoded.
fn placeholder(text: &[u8]) -> Option<(&str, usize)> {
    let mut rest = text;
    for part in BEGIN {
        rest = rest.strip_prefix(part)?;
        rest = [&b":"[..], b"%3A", b"%3a"].iter().find_map(|colon| rest.strip_prefix(*colon))?;
    }
    let is_inside = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let length = rest.iter().take_while(is_inside).count();
    let name = std::str::from_utf8(&rest[..length]).ok()?;
    Some((name, text.len() - rest.len() + length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found_anywhere_in_a_text() {
        let show = |text: &str| {
            let show = |piece: &TextPiece<'_>| match piece {
                TextPiece::Text(text) => String::from_utf8_lossy(text).into_owned(),
                TextPiece::Placeholder(name) => format!("<{name}>"),
            };
            pieces(text.as_bytes()).iter().map(show).collect::<Vec<_>>().join("|")
        };
        for (text, expected) in [
            ("", ""),
            ("Bearer belljar:cred:a-B_1", "Bearer |<a-B_1>"),
            ("belljar:cred:a belljar:cred:b.", "<a>| |<b>|."),
            ("belljarbelljar:cred:x", "belljar|<x>"),
            ("key=belljar%3Acred%3ax&y", "key=|<x>|&y"),
            ("belljar:cred:", "<>"),
            ("belljar:credx belljar: cred:", "belljar:credx belljar: cred:"),
        ] {
            assert_eq!(show(text), expected, "{text}");
        }
        assert_eq!(first(b"x belljar:cred:y"), Some("belljar:cred:y".to_owned()));
        assert!(!is_in(b"nothing"));
    }
}
