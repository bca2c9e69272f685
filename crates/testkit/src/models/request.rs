//! Requests as the server received them, byte for byte, with checks that they are valid HTTP.
//!
//! They are read by rules of this file, not by those of any library: a proxy under test must not be judged by the
//! parser that it was made with. Anything that two readers could understand differently is a [`Flaw`].

use std::time::Instant;

/// A request, as it arrived.
#[derive(Debug, Clone)]
pub struct Request {
    /// On which connection, counted from zero in the order in which they were accepted.
    pub connection: usize,
    /// Time at which its last byte arrived.
    pub received_at: Instant,
    /// Its first line, its header lines and the empty one, byte for byte.
    pub head: Vec<u8>,
    /// The method.
    pub method: String,
    /// The target, with its query.
    pub target: String,
    /// The header lines in their order, with the case that they came in.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// Body as it arrived: with the frames of its chunks, if it was chunked.
    pub framed_body: Vec<u8>,
    /// Flaw of the request. A proxy never sends one with a flaw.
    pub flaw: Option<Flaw>,
    pub(super) is_of_version_1_0: bool,
}

/// Flaws that no request may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A line that ends otherwise than HTTP's do.
    #[error("a line feed or a carriage return alone")]
    LineEnd,
    /// A first line that isn't `METHOD TARGET HTTP/1.x`.
    #[error("the first line {line:?}")]
    FirstLine {
        /// The line.
        line: String,
    },
    /// A line that goes on the one before it, as none may any more.
    #[error("the folded line {line:?}")]
    Folded {
        /// The line.
        line: String,
    },
    /// A line without a name, or with one that is none.
    #[error("the header line {line:?}")]
    HeaderLine {
        /// The line.
        line: String,
    },
    /// The request doesn't have exactly one `host` line where it must.
    #[error("{count} host lines")]
    Hosts {
        /// Number of them.
        count: usize,
    },
    /// Lengths that contradict each other, or aren't any.
    #[error("the body's length: {line:?}")]
    Length {
        /// The values.
        line: String,
    },
    /// A coding of the transfer other than `chunked` alone, or one besides a length.
    #[error("the transfer coding {line:?}")]
    TransferCoding {
        /// The values.
        line: String,
    },
    /// A chunk that isn't one.
    #[error("the chunk {line:?}")]
    Chunk {
        /// The line that tells its size, or the line after it.
        line: String,
    },
    /// A head of more than a megabyte.
    #[error("a head without an end")]
    HeadWithoutEnd,
    /// The connection ended before it did.
    #[error("the connection ended in the middle of the request")]
    Ended,
}

/// Framing of the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A number of bytes.
    Length(usize),
    /// Chunks, the last of which is empty.
    Chunks,
}

/// Characters of names besides letters and digits.
const IN_NAMES: &[u8] = b"!#$%&'*+-.^_`|~";

// === impl Request ===

impl Request {
    /// The value of the first header line of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self.headers.iter().find(|line| line.0.eq_ignore_ascii_case(name));
        line.map(|(_, value)| value.as_str())
    }

    /// The values of all header lines of this name, in any case.
    pub fn headers_named<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r str> {
        let named = move |line: &&(String, String)| line.0.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, value)| value.as_str())
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The body as JSON, or null.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns true if these bytes are anywhere in it: in the head or in the body, including its frames.
    pub fn contains(&self, bytes: &[u8]) -> bool {
        [&self.head, &self.body, &self.framed_body].iter().any(|part| is_within(bytes, part))
    }

    pub(super) fn new(connection: usize, head: Vec<u8>) -> Self {
        Self {
            connection,
            received_at: Instant::now(),
            head,
            method: String::new(),
            target: String::new(),
            headers: Vec::new(),
            body: Vec::new(),
            framed_body: Vec::new(),
            flaw: None,
            is_of_version_1_0: false,
        }
    }

    pub(super) fn understand(&mut self) -> Result<(), Flaw> {
        let head = std::mem::take(&mut self.head);
        let understood = self.understand_lines(&head);
        self.head = head;
        understood
    }

    fn understand_lines(&mut self, head: &[u8]) -> Result<(), Flaw> {
        let lines = lines(head)?;
        let (first, rest) = lines.split_first().ok_or(Flaw::LineEnd)?;
        self.understand_first(first)?;
        for line in rest {
            self.headers.push(header(line)?);
        }
        let count = self.headers_named("host").count();
        match count == 1 || (count == 0 && self.is_of_version_1_0) {
            true => Ok(()),
            false => Err(Flaw::Hosts { count }),
        }
    }

    fn understand_first(&mut self, line: &[u8]) -> Result<(), Flaw> {
        let wrong = || Flaw::FirstLine { line: text(line) };
        let parts: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let [method, target, version] = parts.as_slice() else { return Err(wrong()) };
        let is_visible = target.iter().all(u8::is_ascii_graphic) && !target.is_empty();
        if !is_name(method) || !is_visible || !matches!(*version, b"HTTP/1.1" | b"HTTP/1.0") {
            return Err(wrong());
        }
        (self.method, self.target) = (text(method), text(target));
        self.is_of_version_1_0 = version.ends_with(b"0");
        Ok(())
    }

    pub(super) fn framing(&self) -> Result<Framing, Flaw> {
        let lengths: Vec<&str> = self.headers_named("content-length").collect();
        let codings: Vec<&str> = self.headers_named("transfer-encoding").collect();
        match (lengths.as_slice(), codings.as_slice()) {
            ([], []) => Ok(Framing::Length(0)),
            ([], [coding]) if coding.eq_ignore_ascii_case("chunked") && !self.is_of_version_1_0 => {
                Ok(Framing::Chunks)
            }
            ([length], []) if length.bytes().all(|digit| digit.is_ascii_digit()) => {
                length.parse().map(Framing::Length).map_err(|_| Flaw::Length { line: (*length).to_owned() })
            }
            (_, []) => Err(Flaw::Length { line: lengths.join(", ") }),
            _ => Err(Flaw::TransferCoding { line: codings.join(", ") }),
        }
    }
}

/// The lines of a head, without the empty one at its end.
fn lines(head: &[u8]) -> Result<Vec<&[u8]>, Flaw> {
    let head = head.strip_suffix(b"\r\n\r\n").ok_or(Flaw::LineEnd)?;
    let (mut lines, mut rest) = (Vec::new(), head);
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        lines.push(&rest[..end]);
        rest = &rest[end + 2..];
    }
    lines.push(rest);
    match lines.iter().any(|line| line.contains(&b'\r') || line.contains(&b'\n')) {
        true => Err(Flaw::LineEnd),
        false => Ok(lines),
    }
}

pub(super) fn header(line: &[u8]) -> Result<(String, String), Flaw> {
    if line.starts_with(b" ") || line.starts_with(b"\t") {
        return Err(Flaw::Folded { line: text(line) });
    }
    let wrong = || Flaw::HeaderLine { line: text(line) };
    let colon = line.iter().position(|byte| *byte == b':').ok_or_else(wrong)?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    let is_control = |byte: &u8| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f;
    match is_name(name) && !value.iter().any(is_control) {
        true => Ok((text(name), text(value))),
        false => Err(wrong()),
    }
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || IN_NAMES.contains(byte))
}

pub(super) fn is_within(part: &[u8], whole: &[u8]) -> bool {
    part.is_empty() || whole.windows(part.len()).any(|window| window == part)
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
