//! Headers of a head in a single buffer.

/// Headers, in order. Names are in lower case; values have no surrounding white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// Each name, its value, and a line end.
    text: Vec<u8>,
    /// End of each name and of each value.
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

    /// Iterates over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut begin = 0;
        self.ends.iter().map(move |(name_end, value_end)| {
            let header = (&self.text[begin..*name_end], &self.text[*name_end..*value_end]);
            begin = value_end + 1;
            header
        })
    }

    /// Iterates over all values of a name.
    pub fn all<'h, 'n>(&'h self, name: &'n str) -> impl Iterator<Item = &'h [u8]> + use<'h, 'n> {
        self.iter().filter(move |(own, _)| *own == name.as_bytes()).map(|(_, value)| value)
    }

    /// Returns true if a comma-separated list contains a word.
    pub(crate) fn has_token(&self, name: &str, token: &str) -> bool {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|one| one.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    }

    /// Returns all headers as text, for scanning.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}
