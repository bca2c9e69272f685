//! An HTTP/1.1 client for tests: one request for each connection, and the raw answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A request.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// Method, for example `POST`.
    pub method: String,
    /// The path and the query.
    pub target: String,
    /// Headers besides `Host`, `Connection` and `Content-Length`.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// The headers, with their names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body, without its transfer coding.
    pub body: Vec<u8>,
}

/// An answer whose body is still coming.
#[derive(Debug)]
pub struct StreamingResponse {
    /// The status code.
    pub status: u16,
    headers: Vec<(String, String)>,
    stream: BufReader<TcpStream>,
}

/// Timeout for reading from a server.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl HttpRequest ===

impl HttpRequest {
    /// A request without a body.
    pub fn new(method: &str, target: &str) -> Self {
        Self { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a JSON body.
    #[must_use]
    pub fn json(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("Content-Type", "application/json")
    }

    /// Sends it, and reads the whole answer.
    ///
    /// # Errors
    /// When the connection can't be made, or breaks.
    pub fn send(&self, to: SocketAddr) -> std::io::Result<HttpResponse> {
        self.begin(to)?.finish()
    }

    /// Sends it, and reads the head of the answer.
    ///
    /// # Errors
    /// When the connection can't be made, or breaks.
    pub fn begin(&self, to: SocketAddr) -> std::io::Result<StreamingResponse> {
        let mut stream = TcpStream::connect(to)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let Self { method, target, headers, body } = self;
        let mut head = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
        if headers.iter().all(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {to}\r\n"));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        stream.write_all(&[head.as_bytes(), body].concat())?;
        let mut stream = BufReader::new(stream);
        let status = line(&mut stream)?.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other("no status line"))?;
        let mut headers = Vec::new();
        loop {
            let line = line(&mut stream)?;
            match line.split_once(':') {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
                None => return Ok(StreamingResponse { status, headers, stream }),
            }
        }
    }
}

// === impl StreamingResponse ===

impl StreamingResponse {
    /// Returns the next line of the body; `None` at its end.
    ///
    /// # Errors
    /// When the connection breaks.
    pub fn line(&mut self) -> std::io::Result<Option<String>> {
        loop {
            // Servers of events send a chunk for each. The chunk sizes between them are skipped.
            let line = line(&mut self.stream)?;
            let is_size = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_hexdigit());
            match line.as_str() {
                "0" => return Ok(None),
                _ if is_size => {}
                _ => return Ok(Some(line)),
            }
        }
    }

    fn finish(mut self) -> std::io::Result<HttpResponse> {
        let is_chunked =
            self.headers.iter().any(|header| *header == ("transfer-encoding".into(), "chunked".into()));
        let mut body = Vec::new();
        if is_chunked {
            loop {
                let size = line(&mut self.stream)?;
                let size = usize::from_str_radix(&size, 16).map_err(std::io::Error::other)?;
                let start = body.len();
                body.resize(start + size, 0);
                self.stream.read_exact(&mut body[start..])?;
                line(&mut self.stream)?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.stream.read_to_end(&mut body)?;
        }
        Ok(HttpResponse { status: self.status, headers: self.headers, body })
    }
}

// === impl HttpResponse ===

impl HttpResponse {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

fn line(stream: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = String::new();
    match stream.read_line(&mut line)? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end_matches(['\r', '\n']).to_owned()),
    }
}
