//! Finds members of a JSON document that is too long to be kept, as it passes.
//!
//! Output of a model, and repeated parts of a request, may have members of the same names. A provider reports usage in the
//! document itself or, for some members, in one of few objects of it. Everything else is skipped.

/// Parser that looks for members by name.
#[derive(Debug)]
pub(super) struct MemberScanner {
    names: &'static [&'static str],
    inner: NestedMembers,
    /// True if the current member of the document may hold members of [`NestedMembers::names`].
    is_holder: bool,
    depth: usize,
    /// Set within a text; true if its last byte was a `\`.
    text: Option<bool>,
    /// Latest text, as far as it may be a name; `None` once it can't be the name of what follows.
    name: Option<Vec<u8>>,
    /// Value that is passing.
    value: Option<PassingValue>,
    found: Vec<(&'static str, Vec<u8>)>,
    /// First byte that is no white space.
    first: Option<u8>,
    /// Number of documents that have passed completely.
    documents: usize,
}

/// Members of objects that are members of the document.
#[derive(Debug, Clone, Copy)]
pub(super) struct NestedMembers {
    /// Names of the objects.
    pub(super) holders: &'static [&'static str],
    /// Names of their members.
    pub(super) names: &'static [&'static str],
}

#[derive(Debug)]
struct PassingValue {
    name: &'static str,
    depth: usize,
    bytes: Vec<u8>,
}

/// Maximum length of a name and of a value in bytes. A usage report takes some hundred bytes.
const LONGEST_NAME: usize = 32;
const LONGEST_VALUE: usize = 64 << 10;

// === impl MemberScanner ===

impl MemberScanner {
    pub(super) fn new(names: &'static [&'static str], inner: NestedMembers) -> Self {
        Self {
            names,
            inner,
            is_holder: false,
            depth: 0,
            text: None,
            name: None,
            value: None,
            found: Vec::new(),
            first: None,
            documents: 0,
        }
    }

    /// Takes the next bytes.
    pub(super) fn see(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    /// Returns a member that has passed completely; the last one of that name.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.found.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_slice())
    }

    /// Returns the first byte that is no white space, if there was any.
    pub(super) fn beginning(&self) -> &[u8] {
        self.first.as_slice()
    }

    /// Returns true if exactly one document has passed completely, and nothing else that could be part of another one.
    pub(super) fn is_document(&self) -> bool {
        self.documents == 1 && self.depth == 0 && self.text.is_none() && self.first == Some(b'{')
    }

    fn byte(&mut self, byte: u8) {
        if self.first.is_none() && !byte.is_ascii_whitespace() {
            self.first = Some(byte);
        }
        if let Some(is_escaped) = self.text {
            self.text = match (is_escaped, byte) {
                (false, b'"') => None,
                (escaped, byte) => Some(!escaped && byte == b'\\'),
            };
            if self.text.is_some() {
                self.extend_name(byte);
            }
        } else {
            match byte {
                b'"' => (self.text, self.name) = (Some(false), Some(Vec::new())),
                b':' => self.begin(),
                b' ' | b'\t' | b'\r' | b'\n' => {}
                _ => self.structure(byte),
            }
        }
        if let Some(value) = &mut self.value {
            value.bytes.push(byte);
            if value.bytes.len() > LONGEST_VALUE {
                self.value = None;
            }
        }
    }

    fn structure(&mut self, byte: u8) {
        self.name = None;
        let ends = |value: &mut PassingValue| value.depth == self.depth && matches!(byte, b',' | b'}' | b']');
        if let Some(value) = self.value.take_if(ends) {
            self.found.retain(|(name, _)| *name != value.name);
            self.found.push((value.name, value.bytes));
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.documents += usize::from(self.depth == 0);
            }
            _ => {}
        }
    }

    fn extend_name(&mut self, byte: u8) {
        if let Some(name) = &mut self.name
            && name.len() <= LONGEST_NAME
        {
            name.push(byte);
        }
    }

    /// A value follows the latest name.
    fn begin(&mut self) {
        let Some(name) = self.name.take() else { return };
        let is = |known: &&&str| known.as_bytes() == name;
        let names = match self.depth {
            1 => {
                self.is_holder = self.inner.holders.iter().any(|holder| is(&holder));
                self.names
            }
            2 if self.is_holder => self.inner.names,
            _ => return,
        };
        if self.value.is_some() {
            return;
        }
        if let Some(name) = names.iter().find(is) {
            self.value = Some(PassingValue { name, depth: self.depth, bytes: Vec::new() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str, piece: usize) -> Option<String> {
        let inner = NestedMembers { holders: &["response"], names: &["usage"] };
        let mut members = MemberScanner::new(&["usage"], inner);
        document.as_bytes().chunks(piece).for_each(|piece| members.see(piece));
        let value = members.get("usage")?.strip_prefix(b":")?;
        Some(String::from_utf8_lossy(value).trim().to_owned())
    }

    #[test]
    fn member_is_found_at_its_path_for_any_read_sizes() {
        for (document, expected) in [
            (r#"{"usage":{"a":[1,"}"]},"response":{"usage":2}}"#, Some("2")),
            (r#"{"usage":1,"x":{"usage":2},"y":0}"#, Some("1")),
            (r#"{"x":{"response":{"usage":2}},"response":[{"usage":2}]}"#, None),
            (r#"{"response":{"x":{"usage":2}},"x":{"usage":2}}"#, None),
            (r#"{"x":[{"usage":2}],"usage" : {"a":1} }"#, Some(r#"{"a":1}"#)),
            (r#"{"usage":{"usage":3}}"#, Some(r#"{"usage":3}"#)),
            (r#"{"x":"\"usage\":4,","y":"usage"}"#, None),
            (r#"{"x":{"y":{"usage":5}}}"#, None),
            (r#"{"x":[{"usage":5}]}"#, None),
            // The document is incomplete.
            (r#"{"usage":{"a":1}"#, None),
            (r#"data: {"usage":null}"#, Some("null")),
        ] {
            for piece in 1..=document.len() {
                assert_eq!(found(document, piece).as_deref(), expected, "{document} {piece}");
            }
        }
    }
}
