//! Strict parsing of answers: one that could be read in two ways is rejected.

use std::time::Duration;

/// An answer, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// Value of `Retry-After`, if it is in seconds.
    pub(crate) retry_after: Option<Duration>,
    /// True for a body of events.
    pub(crate) is_stream: bool,
    /// Session that an MCP server has begun, if it names one.
    pub(crate) session_id: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// An answer that is being read.
pub(crate) struct ResponseReader {
    bytes: Vec<u8>,
    head: Option<ResponseHead>,
    has_no_body: bool,
    session_id: Option<String>,
    /// True if any bytes have arrived, even if only of an interim response.
    has_begun: bool,
    /// Decoded part of a chunked body, and the offset of the next chunk behind the head.
    unchunked: Vec<u8>,
    next_chunk: usize,
}

#[derive(Clone, Copy)]
struct ResponseHead {
    status: u16,
    retry_after: Option<Duration>,
    is_stream: bool,
    length: BodyLength,
    keeps: bool,
    end: usize,
}

#[derive(Clone, Copy)]
enum BodyLength {
    Exact(usize),
    Chunked,
    UntilClosed,
}

const MOST_HEADERS: usize = 64;
const LONGEST_HEAD: usize = 64 << 10;
const LONGEST_BODY: usize = 8 << 20;

// === impl ResponseReader ===

impl ResponseReader {
    pub(crate) fn of(method: &str) -> Self {
        Self {
            bytes: Vec::new(),
            head: None,
            has_no_body: method == "HEAD",
            session_id: None,
            has_begun: false,
            unchunked: Vec::new(),
            next_chunk: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_begun
    }

    /// Adds more bytes; an empty slice is the end. Returns the answer once it is complete, and whether another may
    /// follow.
    pub(crate) fn hear(&mut self, more: &[u8]) -> Result<Option<(HttpResponse, bool)>, &'static str> {
        let is_closed = more.is_empty();
        self.has_begun |= !is_closed;
        self.bytes.extend_from_slice(more);
        if self.bytes.len() > LONGEST_HEAD + LONGEST_BODY {
            return Err("it is too long");
        }
        while self.head.is_none() {
            match ResponseHead::read(&self.bytes, &mut self.session_id)? {
                // An interim response.
                Some(head) if (100..200).contains(&head.status) => drop(self.bytes.drain(..head.end)),
                Some(head) => self.head = Some(head),
                None if is_closed => return Err("the response head is incomplete"),
                None => return Ok(None),
            }
        }
        let Some(head) = self.head else { return Ok(None) };
        let rest = &self.bytes[head.end..];
        let is_bare = self.has_no_body || matches!(head.status, 204 | 304);
        let (body, surplus) = match head.length {
            _ if is_bare => (Some(Vec::new()), rest.len()),
            BodyLength::Exact(length) => {
                (rest.get(..length).map(<[u8]>::to_vec), rest.len().saturating_sub(length))
            }
            BodyLength::Chunked => {
                let (taken, is_whole) = unchunk(&rest[self.next_chunk..], &mut self.unchunked)?;
                self.next_chunk += taken;
                (is_whole.then(|| std::mem::take(&mut self.unchunked)), rest.len() - self.next_chunk)
            }
            BodyLength::UntilClosed => (is_closed.then(|| rest.to_vec()), 0),
        };
        match body {
            Some(body) => {
                let keeps = head.keeps && surplus == 0 && !is_closed;
                Ok(Some((head.answer(body, self.session_id.take()), keeps)))
            }
            None if is_closed => Err("the response body is incomplete"),
            None => Ok(None),
        }
    }

    /// Returns what has arrived so far of a body of events.
    pub(super) fn events_so_far(&self) -> Option<&[u8]> {
        let head = self.head.as_ref().filter(|head| head.is_stream)?;
        match head.length {
            BodyLength::Chunked => Some(&self.unchunked),
            BodyLength::Exact(_) | BodyLength::UntilClosed => self.bytes.get(head.end..),
        }
    }

    /// Returns the answer as far as it has come, for a caller that needs no more of it.
    pub(super) fn cut_short(&self) -> Option<HttpResponse> {
        Some(self.head?.answer(self.events_so_far()?.to_vec(), self.session_id.clone()))
    }
}

impl ResponseHead {
    fn answer(self, body: Vec<u8>, session_id: Option<String>) -> HttpResponse {
        let Self { status, retry_after, is_stream, .. } = self;
        HttpResponse { status, retry_after, is_stream, session_id, body }
    }

    fn read(bytes: &[u8], session_id: &mut Option<String>) -> Result<Option<Self>, &'static str> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let end = match response.parse(bytes).map_err(|_| "the response head is malformed")? {
            httparse::Status::Complete(end) => end,
            httparse::Status::Partial if bytes.len() > LONGEST_HEAD => {
                return Err("the response head is too long");
            }
            httparse::Status::Partial => return Ok(None),
        };
        let mut head = Self {
            status: response.code.unwrap_or_default(),
            retry_after: None,
            is_stream: false,
            length: BodyLength::UntilClosed,
            keeps: response.version == Some(1),
            end,
        };
        let (mut length, mut is_chunked) = (None, false);
        for header in response.headers {
            let value = std::str::from_utf8(header.value).map_err(|_| "a header is not UTF-8")?.trim();
            match header.name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    let said = value
                        .parse::<usize>()
                        .ok()
                        .filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()));
                    let said = said.ok_or("Content-Length is not a number")?;
                    if said > LONGEST_BODY {
                        return Err("it is too long");
                    }
                    if length.replace(said).is_some_and(|other| other != said) {
                        return Err("it has contradictory Content-Length headers");
                    }
                }
                "transfer-encoding" if value.eq_ignore_ascii_case("chunked") && !is_chunked => {
                    is_chunked = true;
                }
                "transfer-encoding" => return Err("unknown transfer coding"),
                "connection" => head.keeps &= !value.to_ascii_lowercase().contains("close"),
                "retry-after" => head.retry_after = value.parse().ok().map(Duration::from_secs),
                "content-type" => {
                    head.is_stream = value.to_ascii_lowercase().starts_with("text/event-stream");
                }
                // It is sent back unchanged in a header.
                "mcp-session-id" if value.bytes().all(|byte| byte.is_ascii_graphic()) => {
                    *session_id = Some(value.to_owned()).filter(|id| !id.is_empty());
                }
                "mcp-session-id" => {
                    return Err("the session id has characters that are not allowed in a header");
                }
                _ => {}
            }
        }
        head.length = match (length, is_chunked) {
            (Some(_), true) => return Err("it has both Content-Length and Transfer-Encoding"),
            (_, true) => BodyLength::Chunked,
            (Some(length), false) => BodyLength::Exact(length),
            (None, false) => {
                head.keeps = false;
                BodyLength::UntilClosed
            }
        };
        Ok(Some(head))
    }
}

/// Adds the complete chunks to `body`; returns how many bytes they took, and whether the last is among them.
fn unchunk(bytes: &[u8], body: &mut Vec<u8>) -> Result<(usize, bool), &'static str> {
    let mut rest = bytes;
    loop {
        let taken = bytes.len() - rest.len();
        let (start, size) = match httparse::parse_chunk_size(rest).map_err(|_| "malformed chunk size")? {
            httparse::Status::Complete(read) => read,
            httparse::Status::Partial if rest.len() > 1024 => return Err("a chunk's size is too long"),
            httparse::Status::Partial => return Ok((taken, false)),
        };
        let size =
            usize::try_from(size).ok().filter(|size| *size <= LONGEST_BODY).ok_or("a chunk is too long")?;
        if size == 0 {
            // Trailers are ignored.
            let after = &rest[start..];
            let end = match after {
                [b'\r', b'\n', ..] => Some(2),
                after => memchr::memmem::find(after, b"\r\n\r\n").map(|at| at + 4),
            };
            return Ok(end.map_or((taken, false), |end| (taken + start + end, true)));
        }
        match rest.get(start..start + size + 2) {
            Some([chunk @ .., b'\r', b'\n']) => body.extend_from_slice(chunk),
            Some(_) => return Err("a chunk does not end with CRLF"),
            None => return Ok((taken, false)),
        }
        rest = &rest[start + size + 2..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However it is cut; the end of the connection follows.
    fn read(bytes: &[u8]) -> Result<Option<(HttpResponse, bool)>, &'static str> {
        let mut outcomes = [1, 7, bytes.len()].map(|piece| {
            let mut reading = ResponseReader::of("GET");
            for piece in bytes.chunks(piece) {
                if let Some(answer) = reading.hear(piece)? {
                    return Ok(Some(answer));
                }
            }
            reading.hear(&[])
        });
        outcomes.sort_by_key(Result::is_ok);
        assert!(outcomes.iter().all(|outcome| outcome.is_ok() == outcomes[0].is_ok()));
        outcomes.into_iter().next().unwrap()
    }

    #[test]
    fn http_response_body_is_read_in_every_framing() {
        for (said, keeps) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", true),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n",
                true,
            ),
            ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", false),
            ("HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true),
            ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", false),
            ("HTTP/1.1 200 OK\r\n\r\nhello", false),
        ] {
            let (answer, kept) = read(said.as_bytes()).unwrap().unwrap();
            assert_eq!((answer.status, answer.body.as_slice(), kept), (200, &b"hello"[..], keeps), "{said}");
        }
        let busy =
            read(b"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n").unwrap().unwrap().0;
        assert_eq!(busy.retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn ambiguous_or_truncated_http_response_is_rejected() {
        for said in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nContent-",
            "SSH-2.0-x\r\n\r\n",
        ] {
            assert!(read(said.as_bytes()).is_err(), "{said}");
        }
    }
}
