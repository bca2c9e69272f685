//! Heads of requests and answers.

use super::body::BodyLength;
use super::headers::Headers;
use super::limits::{REQUEST_HEADERS, RESPONSE_HEADERS};
use std::ops::Range;

/// Head of a request that has only one interpretation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// Method, as it was written: methods are case-sensitive.
    pub method: String,
    /// Path, as it was written: nothing in it is decoded.
    pub path: String,
    /// Query after the question mark, if there is one.
    pub query: Option<String>,
    /// All headers, in order.
    pub headers: Headers,
    /// Length of the body.
    pub body: BodyLength,
    /// True for HTTP/1.1, whose answers may be chunked.
    pub is_1_1: bool,
    /// True if another request may follow on the same connection.
    pub keeps_alive: bool,
    /// True if the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

/// Target of a request to a forward proxy (RFC 9112 §3.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Path only: the request is for this server itself.
    Origin,
    /// Absolute URL, `http://HOST[:PORT]/PATH`. The path is in the head.
    Absolute {
        /// Authority of the URL.
        authority: String,
    },
    /// `HOST:PORT`, of `CONNECT`.
    Authority {
        /// The whole target.
        authority: String,
    },
}

/// Head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead {
    /// HTTP status.
    pub status: u16,
    /// All headers, in order.
    pub headers: Headers,
    /// Length of the body.
    pub body: BodyLength,
    /// True if another request may follow on the same connection.
    pub keeps_alive: bool,
}

/// Reason why bytes are not acceptable HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedHttp {
    /// A line that doesn't end in CR LF.
    #[error("a line doesn't end in CR LF")]
    LineEnd,
    /// A character that may not be in a head.
    #[error("a control character in the head")]
    Control,
    /// Neither a request nor an answer.
    #[error("not the head of an HTTP/1 message")]
    Syntax,
    /// Too many headers.
    #[error("too many headers")]
    TooManyHeaders,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    #[error("neither HTTP/1.1 nor HTTP/1.0")]
    Version,
    /// An invalid target.
    #[error("the target is not a path")]
    Target,
    /// No host, or more than one.
    #[error("there must be exactly one Host header")]
    Host,
    /// Two lengths, or one that isn't a number.
    #[error("the body's length is ambiguous")]
    Length,
    /// A transfer coding other than `chunked` alone.
    #[error("a transfer coding other than chunked")]
    Coding,
    /// An expectation that can't be met.
    #[error("an expectation other than 100-continue")]
    Expectation,
    /// Invalid chunked framing.
    #[error("a malformed chunk")]
    Chunk,
    /// Trailers after the body.
    #[error("trailers are not accepted")]
    Trailer,
}

/// Returns the length of the head at the beginning of these bytes, with its empty line.
pub fn end(bytes: &[u8]) -> Option<usize> {
    // Lines that end in LF alone end a head, too. So it is refused at once, and not only when the buffer is full.
    let crlf = memchr::memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4);
    let lf = memchr::memmem::find(bytes, b"\n\n").map(|at| at + 2);
    match (crlf, lf) {
        (Some(crlf), Some(lf)) => Some(crlf.min(lf)),
        (one, other) => one.or(other),
    }
}

// === impl RequestHead ===

impl RequestHead {
    /// Parses the head of a request for a path, as found by [`end`].
    ///
    /// # Errors
    /// [`MalformedHttp`], for anything that a server behind the proxy might understand differently.
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedHttp> {
        match Self::parse_for_proxy(bytes)? {
            (head, Target::Origin) => Ok(head),
            _ => Err(MalformedHttp::Target),
        }
    }

    /// Parses the head of a request to a forward proxy, of any form.
    ///
    /// # Errors
    /// Those of [`RequestHead::parse`].
    pub fn parse_for_proxy(bytes: &[u8]) -> Result<(Self, Target), MalformedHttp> {
        plain(bytes)?;
        let mut space = [httparse::EMPTY_HEADER; REQUEST_HEADERS];
        let mut request = httparse::Request::new(&mut space);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            Err(httparse::Error::TooManyHeaders) => return Err(MalformedHttp::TooManyHeaders),
            Err(httparse::Error::Version) => return Err(MalformedHttp::Version),
            _ => return Err(MalformedHttp::Syntax),
        }
        let is_1_1 = request.version == Some(1);
        // Exactly one space on each side, which the library doesn't enforce.
        let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
        let version: &[u8] = if is_1_1 { b" HTTP/1.1\r\n" } else { b" HTTP/1.0\r\n" };
        let mut line = bytes;
        for part in [method.as_bytes(), b" ", target.as_bytes(), version] {
            line = line.strip_prefix(part).ok_or(MalformedHttp::Syntax)?;
        }
        let (kind, path, query) = read_target(method, target)?;
        let headers = Headers::of(request.headers);
        let hosts = headers.all("host").count();
        if hosts > 1 || (is_1_1 && hosts == 0) {
            return Err(MalformedHttp::Host);
        }
        let body = match length(&headers, is_1_1)? {
            Some(body) => body,
            None => BodyLength::Exact(0),
        };
        let mut expectations = headers.all("expect");
        let expects_continue = match (expectations.next(), expectations.next()) {
            (None, _) => false,
            (Some(one), None) if one.eq_ignore_ascii_case(b"100-continue") => is_1_1,
            _ => return Err(MalformedHttp::Expectation),
        };
        drop(expectations);
        let keeps_alive = is_1_1 && !headers.has_token("connection", "close");
        let method = method.to_owned();
        Ok((Self { method, path, query, headers, body, is_1_1, keeps_alive, expects_continue }, kind))
    }

    /// Returns the first value of the header of that name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.all(name).next()
    }
}

// === impl ResponseHead ===

impl ResponseHead {
    /// Parses the head that [`end`] has found.
    ///
    /// # Errors
    /// [`MalformedHttp`].
    pub fn parse(bytes: &[u8]) -> Result<Self, MalformedHttp> {
        plain(bytes)?;
        // The library would accept empty lines before it.
        if !bytes.starts_with(b"HTTP/") {
            return Err(MalformedHttp::Syntax);
        }
        let mut space = [httparse::EMPTY_HEADER; RESPONSE_HEADERS];
        let mut response = httparse::Response::new(&mut space);
        match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            Err(httparse::Error::TooManyHeaders) => return Err(MalformedHttp::TooManyHeaders),
            Err(httparse::Error::Version) => return Err(MalformedHttp::Version),
            _ => return Err(MalformedHttp::Syntax),
        }
        let is_1_1 = response.version == Some(1);
        // A status has three digits, and the first is not zero (RFC 9110 §15).
        let status = response.code.filter(|code| *code >= 100).ok_or(MalformedHttp::Syntax)?;
        let headers = Headers::of(response.headers);
        let body = match (status, length(&headers, is_1_1)?) {
            (100..=199 | 204 | 304, _) => BodyLength::Exact(0),
            (_, Some(body)) => body,
            (_, None) => BodyLength::UntilClose,
        };
        let keeps_alive =
            is_1_1 && body != BodyLength::UntilClose && !headers.has_token("connection", "close");
        Ok(Self { status, headers, body, keeps_alive })
    }

    /// Returns true if the body is unencoded, so that it can be scanned. Each `content-encoding` line may only be `identity`.
    pub fn is_plain(&self) -> bool {
        self.headers.all("content-encoding").all(|coding| coding.eq_ignore_ascii_case(b"identity"))
    }

    /// Returns the value of the first header of that name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.all(name).next()
    }
}

/// Parses a target into its kind, path and query.
fn read_target(method: &str, target: &str) -> Result<(Target, String, Option<String>), MalformedHttp> {
    const PLAIN: &str = "http://";
    if target.contains('#') || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(MalformedHttp::Target);
    }
    if method == "CONNECT" {
        return Ok((Target::Authority { authority: target.to_owned() }, String::new(), None));
    }
    let scheme = target.get(..PLAIN.len()).filter(|scheme| scheme.eq_ignore_ascii_case(PLAIN));
    let (kind, local) = match scheme {
        Some(_) => {
            let rest = &target[PLAIN.len()..];
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            (Target::Absolute { authority: rest[..end].to_owned() }, &rest[end..])
        }
        None => (Target::Origin, target),
    };
    let (path, query) = match local.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (local, None),
    };
    // A URL without a path means the root (RFC 9110 §4.2.3).
    let path = if path.is_empty() && kind != Target::Origin { "/" } else { path };
    if !path.starts_with('/') {
        return Err(MalformedHttp::Target);
    }
    Ok((kind, path.to_owned(), query))
}

/// Checks that lines end in CR LF and contain text only.
fn plain(bytes: &[u8]) -> Result<(), MalformedHttp> {
    let is_text = |byte: u8| matches!(byte, b'\t' | b'\r' | b'\n' | 0x20..=0x7e | 0x80..);
    // Without an early exit, so that the loop is vectorized.
    let is_all_text = bytes.iter().fold(true, |all, byte| all & is_text(*byte));
    match (lines_end_alike(bytes), is_all_text) {
        (false, _) => Err(MalformedHttp::LineEnd),
        (_, false) => Err(MalformedHttp::Control),
        _ => Ok(()),
    }
}

/// Returns true if CR and LF only occur in pairs.
fn lines_end_alike(bytes: &[u8]) -> bool {
    let ends = memchr::memchr_iter(b'\n', bytes);
    let pairs = ends.clone().filter(|at| *at > 0 && bytes[at - 1] == b'\r').count();
    pairs == ends.count() && pairs == memchr::memchr_iter(b'\r', bytes).count()
}

/// Returns the length of the body, if it is stated in exactly one way.
fn length(headers: &Headers, is_1_1: bool) -> Result<Option<BodyLength>, MalformedHttp> {
    let (mut lengths, mut codings) = (headers.all("content-length"), headers.all("transfer-encoding"));
    match (lengths.next(), lengths.next(), codings.next(), codings.next()) {
        (None, _, None, _) => Ok(None),
        (None, _, Some(coding), None) if is_1_1 && coding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Some(BodyLength::Chunked))
        }
        (None, _, _, _) => Err(MalformedHttp::Coding),
        (Some(length), None, None, _) => exact(length).map(Some),
        _ => Err(MalformedHttp::Length),
    }
}

fn exact(text: &[u8]) -> Result<BodyLength, MalformedHttp> {
    const LONGEST: Range<usize> = 1..19;
    if !LONGEST.contains(&text.len()) || !text.iter().all(u8::is_ascii_digit) {
        return Err(MalformedHttp::Length);
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.map(BodyLength::Exact).ok_or(MalformedHttp::Length)
}

#[cfg(test)]
mod tests;
