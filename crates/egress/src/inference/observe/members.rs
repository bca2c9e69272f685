//! Members of a JSON document that is too long to be kept, found as it passes.
//!
//! What a model wrote, and what of a request is repeated, may have members of the same names. A provider says what a call has cost in
//! the document itself or, for some members, in one of few objects of it; everything else is passed over.

/// Looks for members by their names.
#[derive(Debug)]
pub(super) struct Members {
    names: &'static [&'static str],
    inner: Inner,
    /// Whether the member of the document that is passing may hold members of [`Inner::names`].
    is_holder: bool,
    depth: usize,
    /// Whether the bytes are in a text, and whether the last of them was a `\`.
    text: Option<bool>,
    /// The latest text, as far as it may be a name; nothing once it can't be the name of what follows.
    name: Option<Vec<u8>>,
    /// The value that is passing.
    value: Option<Value>,
    found: Vec<(&'static str, Vec<u8>)>,
    /// The first byte that is no white space.
    first: Option<u8>,
    /// Documents that have passed whole.
    documents: usize,
}

/// Members of objects that are members of the document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inner {
    /// The objects.
    pub(super) holders: &'static [&'static str],
    /// Their members.
    pub(super) names: &'static [&'static str],
}

#[derive(Debug)]
struct Value {
    name: &'static str,
    depth: usize,
    bytes: Vec<u8>,
}

/// Maximum length of a name, and of a value. What a call has cost takes some hundred bytes.
const LONGEST_NAME: usize = 32;
const LONGEST_VALUE: usize = 64 << 10;

// === impl Members ===

impl Members {
    pub(super) fn new(names: &'static [&'static str], inner: Inner) -> Self {
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

    /// Looks at bytes that follow those before.
    pub(super) fn see(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    /// The members that have passed whole, the last one of each name.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.found.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_slice())
    }

    /// The first byte that is no white space, if there was any.
    pub(super) fn beginning(&self) -> &[u8] {
        self.first.as_slice()
    }

    /// Whether one document has passed whole, and nothing besides that could be a part of another one.
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
        let ends = |value: &mut Value| value.depth == self.depth && matches!(byte, b',' | b'}' | b']');
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

    /// A value follows the name before.
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
            self.value = Some(Value { name, depth: self.depth, bytes: Vec::new() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str, piece: usize) -> Option<String> {
        let inner = Inner { holders: &["response"], names: &["usage"] };
        let mut members = Members::new(&["usage"], inner);
        document.as_bytes().chunks(piece).for_each(|piece| members.see(piece));
        let value = members.get("usage")?.strip_prefix(b":")?;
        Some(String::from_utf8_lossy(value).trim().to_owned())
    }

    #[test]
    fn member_is_found_by_its_place_however_the_document_is_cut() {
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
            // It has not passed whole.
            (r#"{"usage":{"a":1}"#, None),
            (r#"data: {"usage":null}"#, Some("null")),
        ] {
            for piece in 1..=document.len() {
                assert_eq!(found(document, piece).as_deref(), expected, "{document} {piece}");
            }
        }
    }
}
