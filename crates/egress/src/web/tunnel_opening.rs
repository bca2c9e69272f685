//! First bytes that a client sends through a tunnel: a TLS ClientHello, another protocol, or neither.
//!
//! A server must not find another server name (SNI) in these bytes than the proxy does. So TLS has exactly one accepted form:
//! handshake records that hold one whole ClientHello and nothing else. Everything else that some TLS server accepts first is
//! malformed: alerts and ChangeCipherSpec before the ClientHello, unknown record versions, DTLS, SSL 2 hellos, empty records.

mod client_hello;
mod prefix;

pub(super) use self::client_hello::{HANDSHAKE, TlsRecord, first_record};

use self::client_hello::ClientHelloReader;
use super::limits::{CLIENT_HELLO_BYTES, ROOM};
use bytes::BytesMut;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// First bytes of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Opening {
    /// More bytes are needed for a decision.
    Incomplete,
    /// The client has closed its side without sending a byte.
    Nothing,
    /// Complete ClientHello, with the length of its records and its server name in lower case.
    Tls { server_name: Option<String>, bytes: usize },
    /// STARTTLS-like request of another protocol, with its length. The bytes after it are an opening of their own.
    Upgrade { bytes: usize },
    /// Another protocol: no TLS server takes these bytes for the beginning of a handshake.
    Plain,
    /// Bytes that a TLS server may take for the beginning of a handshake, but no well-formed ClientHello.
    Malformed,
}

/// Parses the first bytes as they arrive. Each byte is parsed once, even if the stream comes byte by byte.
#[derive(Default)]
pub(crate) struct OpeningReader {
    records: ClientHelloReader,
}

/// Reads into the buffer until the opening is known. Calls `tell` each time bytes have arrived.
pub(super) async fn read<R: AsyncRead + Unpin>(
    from: &mut R,
    buffer: &mut BytesMut,
    tell: impl Fn(),
) -> io::Result<Opening> {
    let mut reader = OpeningReader::default();
    loop {
        match reader.read(buffer) {
            Opening::Incomplete if buffer.len() >= CLIENT_HELLO_BYTES => return Ok(Opening::Malformed),
            Opening::Incomplete => {}
            known => return Ok(known),
        }
        buffer.reserve(ROOM);
        if from.read_buf(buffer).await? == 0 {
            return Ok(OpeningReader::at_end(buffer));
        }
        tell();
    }
}

// === impl OpeningReader ===

impl OpeningReader {
    /// Returns the opening. `all` holds all bytes so far, including those of earlier calls.
    pub(crate) fn read(&mut self, all: &[u8]) -> Opening {
        match all {
            [] | [HANDSHAKE] => Opening::Incomplete,
            [HANDSHAKE, client_hello::MAJOR, ..] => self.records.read(all),
            _ => prefix::judge(all),
        }
    }

    /// Returns the opening of a client that sends these bytes and then closes its side.
    fn at_end(all: &[u8]) -> Opening {
        match all {
            [] => Opening::Nothing,
            [HANDSHAKE] | [HANDSHAKE, client_hello::MAJOR, ..] => Opening::Malformed,
            // Too short to be anything else.
            _ => Opening::Plain,
        }
    }
}

#[cfg(test)]
mod tests;
