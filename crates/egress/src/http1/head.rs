//! Heads of requests and answers.

use super::body::BodyLength;
use super::headers::Headers;
use super::limits::{REQUEST_HEADERS, RESPONSE_HEADERS};
use std::ops::Range;

/// The head of a request that can be understood in one way only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// The method, as it was written: methods are told apart by case.
    pub method: String,
    /// The path, as it was written: nothing in it is decoded.
    pub path: String,
    /// What stands behind the question mark, if there is one.
    pub query: Option<String>,
    /// All headers, in their order.
    pub headers: Headers,
    /// How long the body is.
    pub body: BodyLength,
    /// Whether it is of HTTP/1.1, whose answers may come in chunks.
    pub is_1_1: bool,
    /// Whether another request may follow on the same connection.
    pub keeps_alive: bool,
    /// Whether the client waits to be told to send the body.
    pub expects_continue: bool,
}

/// What a request asks a forward proxy for (RFC 9112 §3.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A path, and nothing of where it is: it is asked of this very server.
    Origin,
    /// A path somewhere, `http://HOST[:PORT]/PATH`. The path is in the head.
    Absolute {
        /// What stands between the slashes.
        authority: String,
    },
    /// `HOST:PORT`, of `CONNECT`.
    Authority {
        /// All of it.
        authority: String,
    },
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status.
    pub status: u16,
    /// All headers, in their order.
    pub headers: Headers,
    /// How long the body is.
    pub body: BodyLength,
    /// Whether another request may follow on the same connection.
    pub keeps_alive: bool,
}

/// Why something is no HTTP that is taken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A line that ends in anything but CR LF.
    #[error("a line doesn't end in CR LF")]
    LineEnd,
    /// A character that has no place in a head.
    #[error("a control character in the head")]
    Control,
    /// Not a request, or not an answer.
    #[error("not the head of a message of HTTP/1")]
    Syntax,
    /// More headers than may be.
    #[error("too many headers")]
    TooManyHeaders,
    /// Neither 1.0 nor 1.1.
    #[error("neither HTTP/1.1 nor HTTP/1.0")]
    Version,
    /// Not a path.
    #[error("the target is not a path")]
    Target,
    /// No host, or more than one.
    #[error("there must be one Host")]
    Host,
    /// Two lengths, or one that isn't a number.
    #[error("the body's length can be understood in more than one way")]
    Length,
    /// A transfer coding that isn't `chunked` alone.
    #[error("a transfer coding other than chunked")]
    Coding,
    /// An expectation that can't be met.
    #[error("an expectation other than 100-continue")]
    Expectation,
    /// Something other than a chunk.
    #[error("a chunk that isn't one")]
    Chunk,
    /// Headers behind the body.
    #[error("trailers are not taken")]
    Trailer,
}

/// Where the head ends that begins these bytes: behind the empty line.
pub fn end(bytes: &[u8]) -> Option<usize> {
    // A line that ends in LF alone ends a head, too: to be refused at once, and not when there is no more room.
    let crlf = memchr::memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4);
    let lf = memchr::memmem::find(bytes, b"\n\n").map(|at| at + 2);
    match (crlf, lf) {
        (Some(crlf), Some(lf)) => Some(crlf.min(lf)),
        (one, other) => one.or(other),
    }
}

// === impl RequestHead ===

impl RequestHead {
    /// Parses the head that [`end`] has found, of a request for a path.
    ///
    /// # Errors
    /// [`Malformed`], for whatever a server behind this one might understand otherwise.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        match Self::parse_for_proxy(bytes)? {
            (head, Target::Origin) => Ok(head),
            _ => Err(Malformed::Target),
        }
    }

    /// The same of a request for anything that a forward proxy is asked for.
    ///
    /// # Errors
    /// As [`RequestHead::parse`].
    pub fn parse_for_proxy(bytes: &[u8]) -> Result<(Self, Target), Malformed> {
        plain(bytes)?;
        let mut space = [httparse::EMPTY_HEADER; REQUEST_HEADERS];
        let mut request = httparse::Request::new(&mut space);
        match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Malformed::TooManyHeaders),
            Err(httparse::Error::Version) => return Err(Malformed::Version),
            _ => return Err(Malformed::Syntax),
        }
        let is_1_1 = request.version == Some(1);
        // One space on each side, which the library doesn't insist on.
        let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
        let version: &[u8] = if is_1_1 { b" HTTP/1.1\r\n" } else { b" HTTP/1.0\r\n" };
        let mut line = bytes;
        for part in [method.as_bytes(), b" ", target.as_bytes(), version] {
            line = line.strip_prefix(part).ok_or(Malformed::Syntax)?;
        }
        let (kind, path, query) = read_target(method, target)?;
        let headers = Headers::of(request.headers);
        let hosts = headers.all("host").count();
        if hosts > 1 || (is_1_1 && hosts == 0) {
            return Err(Malformed::Host);
        }
        let body = match length(&headers, is_1_1)? {
            Some(body) => body,
            None => BodyLength::Exact(0),
        };
        let mut expectations = headers.all("expect");
        let expects_continue = match (expectations.next(), expectations.next()) {
            (None, _) => false,
            (Some(one), None) if one.eq_ignore_ascii_case(b"100-continue") => is_1_1,
            _ => return Err(Malformed::Expectation),
        };
        drop(expectations);
        let keeps_alive = is_1_1 && !headers.has_token("connection", "close");
        let method = method.to_owned();
        Ok((Self { method, path, query, headers, body, is_1_1, keeps_alive, expects_continue }, kind))
    }

    /// The value of the one header of that name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.all(name).next()
    }
}

// === impl ResponseHead ===

impl ResponseHead {
    /// Parses the head that [`end`] has found.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        plain(bytes)?;
        // The library would take lines without anything in them before it.
        if !bytes.starts_with(b"HTTP/") {
            return Err(Malformed::Syntax);
        }
        let mut space = [httparse::EMPTY_HEADER; RESPONSE_HEADERS];
        let mut response = httparse::Response::new(&mut space);
        match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length == bytes.len() => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Malformed::TooManyHeaders),
            Err(httparse::Error::Version) => return Err(Malformed::Version),
            _ => return Err(Malformed::Syntax),
        }
        let is_1_1 = response.version == Some(1);
        // A status has three digits, of which the first is no zero (RFC 9110 §15).
        let status = response.code.filter(|code| *code >= 100).ok_or(Malformed::Syntax)?;
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

    /// Whether the body comes as it is. What is coded in any way can't be looked at: `identity` is the only coding that is none, in
    /// each line that names codings.
    pub fn is_plain(&self) -> bool {
        self.headers.all("content-encoding").all(|coding| coding.eq_ignore_ascii_case(b"identity"))
    }

    /// The value of the first header of that name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.all(name).next()
    }
}

/// What a target asks for, with its path and its query.
fn read_target(method: &str, target: &str) -> Result<(Target, String, Option<String>), Malformed> {
    const PLAIN: &str = "http://";
    if target.contains('#') || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Malformed::Target);
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
    // A place without a path is its root (RFC 9110 §4.2.3).
    let path = if path.is_empty() && kind != Target::Origin { "/" } else { path };
    if !path.starts_with('/') {
        return Err(Malformed::Target);
    }
    Ok((kind, path.to_owned(), query))
}

/// Lines end in CR LF, and hold nothing that is no text.
fn plain(bytes: &[u8]) -> Result<(), Malformed> {
    let is_text = |byte: u8| matches!(byte, b'\t' | b'\r' | b'\n' | 0x20..=0x7e | 0x80..);
    // To the end whatever is found: that way many are looked at together.
    let is_all_text = bytes.iter().fold(true, |all, byte| all & is_text(*byte));
    match (lines_end_alike(bytes), is_all_text) {
        (false, _) => Err(Malformed::LineEnd),
        (_, false) => Err(Malformed::Control),
        _ => Ok(()),
    }
}

/// Whether there is no CR and no LF but in pairs.
fn lines_end_alike(bytes: &[u8]) -> bool {
    let ends = memchr::memchr_iter(b'\n', bytes);
    let pairs = ends.clone().filter(|at| *at > 0 && bytes[at - 1] == b'\r').count();
    pairs == ends.count() && pairs == memchr::memchr_iter(b'\r', bytes).count()
}

/// How long the body is, if it says so in one way.
fn length(headers: &Headers, is_1_1: bool) -> Result<Option<BodyLength>, Malformed> {
    let (mut lengths, mut codings) = (headers.all("content-length"), headers.all("transfer-encoding"));
    match (lengths.next(), lengths.next(), codings.next(), codings.next()) {
        (None, _, None, _) => Ok(None),
        (None, _, Some(coding), None) if is_1_1 && coding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Some(BodyLength::Chunked))
        }
        (None, _, _, _) => Err(Malformed::Coding),
        (Some(length), None, None, _) => exact(length).map(Some),
        _ => Err(Malformed::Length),
    }
}

fn exact(text: &[u8]) -> Result<BodyLength, Malformed> {
    const LONGEST: Range<usize> = 1..19;
    if !LONGEST.contains(&text.len()) || !text.iter().all(u8::is_ascii_digit) {
        return Err(Malformed::Length);
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.map(BodyLength::Exact).ok_or(Malformed::Length)
}

#[cfg(test)]
mod tests;
