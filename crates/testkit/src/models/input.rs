//! Strict reading of requests from a connection, one after the other.

use super::request::{Flaw, Framing, Request, header, is_within, text};
use std::io::Read;
use std::time::Instant;

/// A connection to read from, and bytes that were read ahead.
pub(super) struct Input<R> {
    stream: R,
    buffer: Vec<u8>,
    /// Buffer for reading.
    scratch: Vec<u8>,
}

const MOST_OF_A_HEAD: usize = 1 << 20;

// === impl Input ===

impl<R: Read> Input<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, buffer: Vec::new(), scratch: vec![0; 64 << 10] }
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
                // A head with bare line feeds would never be complete.
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
            // Extensions are part of HTTP, but no well-behaved client sends them.
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
        // Header lines follow the last chunk, up to an empty line.
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
        let read = self.stream.read(&mut self.scratch).unwrap_or(0);
        self.buffer.extend(&self.scratch[..read]);
        read > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct ByteReader<'a>(&'a [u8]);

    impl Read for ByteReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.0.len().min(1);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn all(bytes: &[u8]) -> Vec<Request> {
        let mut input = Input::new(ByteReader(bytes));
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
    fn pipelined_requests_are_parsed_in_sequence() {
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
    fn ambiguous_http_request_is_flawed() {
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
    fn endless_request_head_is_rejected() {
        let head = [&b"GET / HTTP/1.1\r\nA: "[..], &vec![b'a'; MOST_OF_A_HEAD]].concat();
        let request = Input::new(head.as_slice()).head(0).unwrap();
        assert_eq!(request.flaw, Some(Flaw::HeadWithoutEnd));
    }
}
