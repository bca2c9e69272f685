//! A client that sends and receives raw bytes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Bytes that were received over a connection until it ended.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// A request with this body, after which the connection is to end.
pub(crate) fn post(path: &str, body: &serde_json::Value) -> Vec<u8> {
    post_with("Connection: close\r\n", path, body)
}

pub(crate) fn post_with(headers: &str, path: &str, body: &serde_json::Value) -> Vec<u8> {
    let body = body.to_string();
    format!("POST {path} HTTP/1.1\r\nHost: test\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

pub(crate) fn connect(address: std::net::SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Sends it and takes all that comes.
pub(crate) fn ask(address: std::net::SocketAddr, request: &[u8]) -> RawResponse {
    let mut stream = connect(address);
    stream.write_all(request).unwrap();
    take(&mut stream)
}

pub(crate) fn take(stream: &mut impl Read) -> RawResponse {
    let mut bytes = Vec::new();
    // A connection that is reset has ended, too.
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let body = bytes.split_off(end);
    RawResponse { head: String::from_utf8(bytes).unwrap(), body }
}

// === impl RawResponse ===

impl RawResponse {
    pub(crate) fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the sizes of its chunks, and their content; `None` if the last chunk is missing.
    pub(crate) fn chunks(&self) -> Option<(Vec<usize>, Vec<u8>)> {
        let (mut rest, mut sizes, mut all) = (self.body.as_slice(), Vec::new(), Vec::new());
        loop {
            let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
            let chunk = rest.get(end + 2..end + 2 + size)?;
            rest = rest.get(end + 2 + size..)?.strip_prefix(b"\r\n")?;
            if size == 0 {
                return rest.is_empty().then_some((sizes, all));
            }
            sizes.push(size);
            all.extend(chunk);
        }
    }
}
