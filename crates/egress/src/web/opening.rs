//! The first bytes that a client sends through a tunnel: a ClientHello of TLS, another protocol, or neither.
//!
//! A server must not find another server name (SNI) in these bytes than the one found here. So TLS has one form: handshake
//! records alone, with a whole ClientHello in them and nothing behind it. Whatever else some TLS server accepts first is malformed:
//! alerts and ChangeCipherSpec before the hello, unknown record versions, DTLS, hellos of SSL 2, empty records.

mod client_hello;
mod prefix;

pub(super) use self::client_hello::{HANDSHAKE, Record, first_record};

use self::client_hello::Reader;
use super::limits::{CLIENT_HELLO_BYTES, ROOM};
use bytes::BytesMut;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// How a tunnel begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Opening {
    /// More bytes are needed to tell.
    Incomplete,
    /// The client has closed its side without a byte.
    Nothing,
    /// A whole ClientHello in records of so many bytes, with its server name in lower case.
    Tls { server_name: Option<String>, bytes: usize },
    /// A request of another protocol to go on with TLS, this long. What follows it is an opening of its own.
    Upgrade { bytes: usize },
    /// Another protocol: no TLS server takes these bytes for the beginning of a handshake.
    Plain,
    /// A TLS server may take these bytes for the beginning of a handshake, and they are no well-formed ClientHello.
    Malformed,
}

/// Judges the first bytes as they arrive. Each byte is read once, however finely the stream is cut.
#[derive(Default)]
pub(crate) struct OpeningReader {
    records: Reader,
}

/// Reads behind what is there until it is known how the tunnel begins. `tell` is called each time that bytes have arrived.
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
    /// How the tunnel begins, once `all` are the bytes that have arrived; those of earlier calls are the first among them.
    pub(crate) fn read(&mut self, all: &[u8]) -> Opening {
        match all {
            [] | [HANDSHAKE] => Opening::Incomplete,
            [HANDSHAKE, client_hello::MAJOR, ..] => self.records.read(all),
            _ => prefix::judge(all),
        }
    }

    /// How a tunnel begins whose client sends these bytes and no more.
    fn at_end(all: &[u8]) -> Opening {
        match all {
            [] => Opening::Nothing,
            [HANDSHAKE] | [HANDSHAKE, client_hello::MAJOR, ..] => Opening::Malformed,
            // Too short for what it may have become.
            _ => Opening::Plain,
        }
    }
}

#[cfg(test)]
mod tests;
