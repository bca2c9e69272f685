//! Sends one request over its own connection, and reads the response as a stream.

use super::{ClientError, NodeAddress, PATIENCE, WHOLE};
use belljar_egress::http1::limits::{RESPONSE_HEAD_BYTES, Times};
use belljar_egress::http1::{BodyLength, Chunks, MalformedHttp, ResponseHead, head};
use belljar_trusted::tcp_server::{self, ServerUser, UntrustedServerError};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Response whose body has not been read yet.
pub(crate) struct NodeResponse {
    node: String,
    stream: TcpStream,
    status: u16,
    /// Bytes read but not yet returned.
    inbox: Vec<u8>,
    length: BodyLength,
    chunks: Chunks,
    /// Time of the last received data.
    heard_at: Instant,
}

/// Result of one read of a response body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyRead {
    Bytes(Vec<u8>),
    /// No data within the timeout.
    Nothing,
    /// End of the body.
    End,
}

/// Maximum size of one read, in bytes.
const PORTION: usize = 64 << 10;

/// Maximum number of connections that are made for one request, of which all but the last were closed before anything was sent.
const CONNECTIONS: u32 = 20;
const BETWEEN_CONNECTIONS: Duration = Duration::from_millis(20);

// === impl NodeResponse ===

impl NodeResponse {
    /// Sends a request there, and reads the head of what is answered. On this machine nothing is sent to a node of another user.
    pub(super) fn to(place: &NodeAddress, user: ServerUser, request: &[u8]) -> Result<Self, ClientError> {
        let node = place.as_str().to_owned();
        let mut stream = connect_to_owner(place, user)?;
        let broken = |source: io::Error| match source.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::Silent { node: node.clone() },
            _ => ClientError::Broken { node: node.clone(), source },
        };
        stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(broken)?;
        // A node that refuses a request as too large closes the connection before it has read all of it: its response counts.
        let sent = stream.write_all(request);
        let answered = read_head(&mut stream, &node);
        let (parsed, inbox) = match (sent, answered) {
            (_, Ok(answered)) => answered,
            (Err(source), Err(_)) => return Err(broken(source)),
            (Ok(()), Err(error)) => return Err(error),
        };
        let ResponseHead { status, body: length, .. } = parsed;
        let (chunks, heard_at) = (Chunks::default(), Instant::now());
        Ok(Self { node, stream, status, inbox, length, chunks, heard_at })
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Returns the complete body, of at most this many bytes.
    pub(crate) fn whole(&mut self, most: usize) -> Result<Vec<u8>, ClientError> {
        let (mut body, begun) = (Vec::new(), Instant::now());
        loop {
            if begun.elapsed() >= WHOLE {
                return Err(ClientError::Silent { node: self.node.clone() });
            }
            match self.next(PATIENCE)? {
                BodyRead::Bytes(bytes) => body.extend(bytes),
                BodyRead::Nothing => {}
                BodyRead::End => return Ok(body),
            }
            if body.len() > most {
                return Err(ClientError::TooLarge { node: self.node.clone() });
            }
        }
    }

    /// Returns the next part of the body, waiting at most this long. A node that is silent for [`PATIENCE`] is an error.
    pub(crate) fn next(&mut self, tick: Duration) -> Result<BodyRead, ClientError> {
        loop {
            if self.is_over() {
                return Ok(BodyRead::End);
            }
            let bytes = self.payload()?;
            if !bytes.is_empty() {
                return Ok(BodyRead::Bytes(bytes));
            }
            if self.is_over() {
                continue;
            }
            match self.fill(tick)? {
                Some(0) if self.length == BodyLength::UntilClose => return Ok(BodyRead::End),
                Some(0) => return Err(self.broken(ErrorKind::UnexpectedEof.into())),
                Some(_) => self.heard_at = Instant::now(),
                None if self.heard_at.elapsed() >= PATIENCE => {
                    return Err(ClientError::Silent { node: self.node.clone() });
                }
                None => return Ok(BodyRead::Nothing),
            }
        }
    }

    fn is_over(&self) -> bool {
        match self.length {
            BodyLength::Exact(left) => left == 0,
            BodyLength::Chunked => self.chunks.is_done(),
            BodyLength::UntilClose => false,
        }
    }

    /// Returns the part of the body that has been read but not yet returned.
    fn payload(&mut self) -> Result<Vec<u8>, ClientError> {
        let inbox = std::mem::take(&mut self.inbox);
        match &mut self.length {
            BodyLength::Exact(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(inbox.len());
                *left -= here as u64;
                Ok(inbox.get(..here).unwrap_or_default().to_vec())
            }
            BodyLength::Chunked => {
                let mut payload = Vec::with_capacity(inbox.len());
                let passed = self.chunks.pass(&inbox, |range| {
                    payload.extend_from_slice(inbox.get(range).unwrap_or_default());
                });
                passed.map_err(|source| malformed(&self.node, source))?;
                Ok(payload)
            }
            BodyLength::UntilClose => Ok(inbox),
        }
    }

    /// Reads once. Returns the number of bytes, or `None` on a timeout.
    fn fill(&mut self, tick: Duration) -> Result<Option<usize>, ClientError> {
        let set = self.stream.set_read_timeout(Some(tick));
        set.map_err(|source| self.broken(source))?;
        let mut portion = [0; PORTION];
        match self.stream.read(&mut portion) {
            Ok(count) => {
                self.inbox.extend_from_slice(portion.get(..count).unwrap_or_default());
                Ok(Some(count))
            }
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(self.broken(error)),
        }
    }

    fn broken(&self, source: io::Error) -> ClientError {
        ClientError::Broken { node: self.node.clone(), source }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn malformed(node: &str, source: MalformedHttp) -> ClientError {
    ClientError::Malformed { node: node.to_owned(), source }
}

/// A connection to a node of that user. A node that many clients connect to closes connections that say nothing yet, which costs no
/// more than another one.
fn connect_to_owner(place: &NodeAddress, user: ServerUser) -> Result<TcpStream, ClientError> {
    let node = || place.as_str().to_owned();
    let mut left = CONNECTIONS;
    loop {
        left -= 1;
        let stream =
            connect(place.addresses()).map_err(|source| ClientError::Unreachable { node: node(), source })?;
        match tcp_server::check(&stream, user) {
            Ok(()) => return Ok(stream),
            Err(UntrustedServerError::Gone(source)) if left == 0 => {
                return Err(ClientError::Broken { node: node(), source });
            }
            Err(UntrustedServerError::Gone(_)) => std::thread::sleep(BETWEEN_CONNECTIONS),
            Err(source) => return Err(ClientError::Untrusted { node: node(), source }),
        }
    }
}

/// Connects to the first address that accepts.
fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut failure = ErrorKind::NotFound.into();
    for address in addresses {
        match TcpStream::connect_timeout(address, Times::default().connect) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The head of the answer, behind any that only says to go on; and what came with it.
fn read_head(stream: &mut TcpStream, node: &str) -> Result<(ResponseHead, Vec<u8>), ClientError> {
    let (mut inbox, mut portion) = (Vec::new(), [0; PORTION]);
    let (node, begun) = (|| node.to_owned(), Instant::now());
    loop {
        if begun.elapsed() >= WHOLE {
            return Err(ClientError::Silent { node: node() });
        }
        while let Some(end) = head::end(&inbox) {
            let parsed = ResponseHead::parse(inbox.get(..end).unwrap_or_default());
            let parsed = parsed.map_err(|source| ClientError::Malformed { node: node(), source })?;
            inbox.drain(..end);
            match parsed.status {
                // The request asked for no protocol upgrade.
                101 => return Err(ClientError::Malformed { node: node(), source: MalformedHttp::Syntax }),
                100..=199 => {}
                _ => return Ok((parsed, inbox)),
            }
        }
        if inbox.len() > RESPONSE_HEAD_BYTES {
            return Err(ClientError::TooLarge { node: node() });
        }
        match stream.read(&mut portion) {
            Ok(0) => {
                return Err(ClientError::Broken { node: node(), source: ErrorKind::UnexpectedEof.into() });
            }
            Ok(count) => inbox.extend_from_slice(portion.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_passing(&error) => return Err(ClientError::Silent { node: node() }),
            Err(source) => return Err(ClientError::Broken { node: node(), source }),
        }
    }
}
