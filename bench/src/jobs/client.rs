//! A client of the Worker API with a persistent connection, so that the node's time dominates.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A connection.
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    token: &'static str,
}

// === impl Client ===

impl Client {
    pub(super) fn to(address: SocketAddr, token: &'static str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a connection without delay");
        Self { stream: BufReader::new(stream), token }
    }

    /// Posts a document, and returns the response's status.
    pub(super) fn post(&mut self, path: &str, document: &[u8]) -> u16 {
        self.ask("POST", path, document)
    }

    /// Gets a path, and returns the response's status.
    pub(super) fn get(&mut self, path: &str) -> u16 {
        self.ask("GET", path, b"")
    }

    fn ask(&mut self, method: &str, path: &str, document: &[u8]) -> u16 {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            self.token,
            document.len()
        )
        .into_bytes();
        request.extend_from_slice(document);
        self.stream.get_mut().write_all(&request).expect("a request");
        self.answer()
    }

    fn answer(&mut self) -> u16 {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a status");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut length = 0_u64;
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("a header");
            let header = line.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(said) = header.strip_prefix("content-length:") {
                length = said.trim().parse().expect("a length");
            }
        }
        let read = std::io::copy(&mut (&mut self.stream).take(length), &mut std::io::sink());
        assert_eq!(read.expect("a body"), length);
        status
    }
}
