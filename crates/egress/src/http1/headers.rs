//! The headers of a head, all in one place.

/// Headers, in their order. Names are in small letters, values have no white space around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// Each name, its value, and the end of a line.
    text: Vec<u8>,
    /// Where each name ends, and each value.
    ends: Vec<(usize, usize)>,
}

const BETWEEN: u8 = b'\n';

// === impl Headers ===

impl Headers {
    pub(super) fn of(parsed: &[httparse::Header<'_>]) -> Self {
        let length = parsed.iter().map(|header| header.name.len() + header.value.len() + 1).sum();
        let (mut text, mut ends) = (Vec::with_capacity(length), Vec::with_capacity(parsed.len()));
        for header in parsed {
            let begin = text.len();
            text.extend_from_slice(header.name.as_bytes());
            text[begin..].make_ascii_lowercase();
            let name_end = text.len();
            text.extend_from_slice(header.value.trim_ascii());
            ends.push((name_end, text.len()));
            text.push(BETWEEN);
        }
        Self { text, ends }
    }

    /// Each name with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut begin = 0;
        self.ends.iter().map(move |(name_end, value_end)| {
            let header = (&self.text[begin..*name_end], &self.text[*name_end..*value_end]);
            begin = value_end + 1;
            header
        })
    }

    /// Every value of a name.
    pub fn all<'h, 'n>(&'h self, name: &'n str) -> impl Iterator<Item = &'h [u8]> + use<'h, 'n> {
        self.iter().filter(move |(own, _)| *own == name.as_bytes()).map(|(_, value)| value)
    }

    /// Whether a list has a word in it.
    pub(crate) fn has_token(&self, name: &str, token: &str) -> bool {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|one| one.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    }

    /// All of them, to be looked through.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}
