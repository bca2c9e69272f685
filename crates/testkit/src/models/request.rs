//! What the server was sent, byte for byte, and whether it was HTTP at all.
//!
//! Read by rules of its own, not by those of any library: a proxy under test is not to be judged by the parser that it
//! was made with. Whatever two readers could understand differently is a [`Flaw`].

use std::io::Read;
use std::time::Instant;

/// One request, as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// On which connection, counted from zero in the order in which they were accepted.
    pub connection: usize,
    /// When its last byte was there.
    pub received_at: Instant,
    /// Its first line, its header lines and the empty one, byte for byte.
    pub head: Vec<u8>,
    /// The method.
    pub method: String,
    /// The target, with its query.
    pub target: String,
    /// The header lines in their order, with the case that they came in.
    pub headers: Vec<(String, String)>,
    /// What it carries.
    pub body: Vec<u8>,
    /// The same as it came: with the frames of its chunks, if it was in chunks.
    pub framed_body: Vec<u8>,
    /// What is wrong with it. A proxy never sends one with a flaw.
    pub flaw: Option<Flaw>,
    pub(super) is_of_version_1_0: bool,
}

/// What no request may be.
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
    /// Not exactly one `host` where there must be.
    #[error("{count} host lines")]
    Hosts {
        /// How many.
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
    #[error("the connection ended in the middle of it")]
    Ended,
}

/// How the body is told apart from what comes after it.
#[derive(Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunks,
}

/// A connection to read from, and what was read too much.
pub(super) struct Input<R> {
    stream: R,
    buffer: Vec<u8>,
}

const MOST_OF_A_HEAD: usize = 1 << 20;

/// What may stand in a name besides letters and digits.
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

    /// Whether these bytes are anywhere in it: in the head or in the body, which also means in any frame.
    pub fn contains(&self, bytes: &[u8]) -> bool {
        [&self.head, &self.body, &self.framed_body].iter().any(|part| is_within(bytes, part))
    }

    fn new(connection: usize, head: Vec<u8>) -> Self {
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

    fn understand(&mut self) -> Result<(), Flaw> {
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

    fn framing(&self) -> Result<Framing, Flaw> {
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

fn header(line: &[u8]) -> Result<(String, String), Flaw> {
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

fn is_within(part: &[u8], whole: &[u8]) -> bool {
    part.is_empty() || whole.windows(part.len()).any(|window| window == part)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

// === impl Input ===

impl<R: Read> Input<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    pub(super) fn stream(&mut self) -> &mut R {
        &mut self.stream
    }

    /// The next request without its body, or nothing if the connection ends before another begins.
    pub(super) fn head(&mut self, connection: usize) -> Option<Request> {
        let (mut looked_at, mut flaw) = (0, None);
        let end = loop {
            let from = looked_at;
            looked_at = self.buffer.len().saturating_sub(3);
            match self.buffer[from..].windows(4).position(|window| window == b"\r\n\r\n") {
                Some(at) => break from + at + 4,
                // What ends its lines with a line feed alone would be waited for in vain.
                None if is_within(b"\n\n", &self.buffer[from..]) => flaw = Some(Flaw::LineEnd),
                None if self.buffer.len() > MOST_OF_A_HEAD => flaw = Some(Flaw::HeadWithoutEnd),
                None if self.fill() => {}
                None if self.buffer.is_empty() => return None,
                None => flaw = Some(Flaw::Ended),
            }
            if flaw.is_some() {
                break self.buffer.len();
            }
        };
        let mut request = Request::new(connection, self.buffer.drain(..end).collect());
        request.flaw = flaw.or_else(|| request.understand().err()).or_else(|| request.framing().err());
        Some(request)
    }

    /// Reads the body of a request whose head was read.
    pub(super) fn body(&mut self, request: &mut Request) {
        let read = match request.framing() {
            _ if request.flaw.is_some() => return,
            Err(flaw) => Err(flaw),
            Ok(Framing::Length(length)) => self.take(length).map(|body| {
                request.framed_body.clone_from(&body);
                request.body = body;
            }),
            Ok(Framing::Chunks) => self.chunks(request),
        };
        if let Err(flaw) = read {
            request.framed_body.append(&mut self.buffer);
            request.flaw = Some(flaw);
        }
        request.received_at = Instant::now();
    }

    fn chunks(&mut self, request: &mut Request) -> Result<(), Flaw> {
        loop {
            let line = self.line(request)?;
            let wrong = || Flaw::Chunk { line: text(&line) };
            // Extensions are part of HTTP, but nobody sends them who means well.
            let is_size = !line.is_empty() && line.len() <= 8 && line.iter().all(u8::is_ascii_hexdigit);
            let size = usize::from_str_radix(&text(&line), 16).ok().filter(|_| is_size).ok_or_else(wrong)?;
            if size == 0 {
                break;
            }
            let chunk = self.take(size)?;
            request.framed_body.extend(&chunk);
            request.body.extend(chunk);
            let line = self.line(request)?;
            if !line.is_empty() {
                return Err(Flaw::Chunk { line: text(&line) });
            }
        }
        // What comes after the last chunk are header lines, up to an empty one.
        loop {
            let line = self.line(request)?;
            if line.is_empty() {
                return Ok(());
            }
            header(&line)?;
        }
    }

    fn line(&mut self, request: &mut Request) -> Result<Vec<u8>, Flaw> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                request.framed_body.extend(&line);
                let line = line.strip_suffix(b"\r\n").ok_or(Flaw::LineEnd)?;
                return match line.contains(&b'\r') {
                    true => Err(Flaw::LineEnd),
                    false => Ok(line.to_vec()),
                };
            }
            if self.buffer.len() > MOST_OF_A_HEAD {
                return Err(Flaw::HeadWithoutEnd);
            }
            if !self.fill() {
                return Err(Flaw::Ended);
            }
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, Flaw> {
        while self.buffer.len() < length {
            if !self.fill() {
                return Err(Flaw::Ended);
            }
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// Reads on; false if there is no more.
    fn fill(&mut self) -> bool {
        let before = self.buffer.len();
        self.buffer.resize(before + (64 << 10), 0);
        let read = self.stream.read(&mut self.buffer[before..]).unwrap_or(0);
        self.buffer.truncate(before + read);
        read > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.0.len().min(1);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn all(bytes: &[u8]) -> Vec<Request> {
        let mut input = Input::new(Drops(bytes));
        let mut requests = Vec::new();
        while let Some(mut request) = input.head(0) {
            input.body(&mut request);
            let is_last = request.flaw.is_some();
            requests.push(request);
            if is_last {
                break;
            }
        }
        requests
    }

    #[test]
    fn what_follows_a_request_is_the_next_one() {
        let one = b"POST /a?b HTTP/1.1\r\nHoSt: x\r\nContent-Length: 3\r\nX:  a\tb \r\n\r\nabc";
        let two = b"POST /c HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n";
        let three = b"GET / HTTP/1.0\r\n\r\n";
        let requests = all(&[&one[..], two, three].concat());
        assert_eq!(requests.iter().map(|r| r.flaw.clone()).collect::<Vec<_>>(), [None, None, None]);
        assert_eq!(requests[0].head, one[..one.len() - 3]);
        assert_eq!((requests[0].target.as_str(), requests[0].path()), ("/a?b", "/a"));
        assert_eq!(requests[0].headers[0], ("HoSt".to_owned(), "x".to_owned()));
        assert_eq!(requests[0].header("x"), Some("a\tb"));
        assert_eq!(requests[0].body, b"abc");
        assert_eq!(requests[1].body, b"abc0123456789");
        assert!(requests[1].framed_body.ends_with(b"A\r\n0123456789\r\n0\r\n\r\n"));
        assert_eq!(requests[2].method, "GET");
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_a_flaw() {
        let flawed: &[&str] = &[
            "GET / HTTP/1.1\nHost: x\n\n",
            "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n",
            "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET /\u{e9} HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.2\r\nHost: x\r\n\r\n",
            "GET / http/1.1\r\nHost: x\r\n\r\n",
            "GET /\r\nHost: x\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
            "G(T / HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
            "GET / HTTP/1.1\r\n Host: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nnothing\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n: empty\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\na",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\na",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\na",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nno trailer\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
            "POST / HTTP/1.1\r\nHost",
        ];
        for bytes in flawed {
            let requests = all(bytes.as_bytes());
            let flaw = requests.first().and_then(|request| request.flaw.as_ref());
            assert!(flaw.is_some(), "{bytes:?} was taken for {requests:?}");
        }
    }

    #[test]
    fn a_head_without_an_end_is_given_up() {
        let head = [&b"GET / HTTP/1.1\r\nA: "[..], &vec![b'a'; MOST_OF_A_HEAD]].concat();
        let request = Input::new(head.as_slice()).head(0).unwrap();
        assert_eq!(request.flaw, Some(Flaw::HeadWithoutEnd));
    }
}
