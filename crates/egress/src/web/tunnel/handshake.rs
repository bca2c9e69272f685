//! Parses a server's answer to a ClientHello. After a HelloRetryRequest the client may name another server in its second
//! ClientHello, and some servers accept it.

use super::TunnelEnd;
use super::{OpeningCheck, TunnelState};
use crate::web::tunnel_opening::{self, Opening, TlsRecord};
use bytes::BytesMut;
use std::cell::{Cell, RefCell};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;

/// State of a tunnel's handshake, shared by both directions.
#[derive(Default)]
pub(super) struct Handshake {
    stage: Cell<HandshakeStage>,
    answer: RefCell<ServerAnswerReader>,
    is_answered: Notify,
}

/// Stage of the handshake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum HandshakeStage {
    /// The client has not begun.
    #[default]
    Opening,
    /// A ClientHello was sent.
    HelloSent,
    /// The server asks for another ClientHello.
    Retry,
    /// The server has answered something else than TLS: it has not read the ClientHello yet, or never will.
    Broken,
    /// Nothing is parsed from here on.
    Over,
}

/// Server's answer to a ClientHello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerAnswer {
    /// ServerHello or another handshake message: the server asks for no other ClientHello.
    Hello,
    /// A HelloRetryRequest.
    Retry,
    /// No answer to a ClientHello. It may be the server's greeting, or its answer to an earlier request.
    Other,
}

/// Parses a server's answer up to the random value of its ServerHello.
#[derive(Default)]
struct ServerAnswerReader {
    bytes: Vec<u8>,
    message: Vec<u8>,
    /// True if the answer to a request to continue with TLS may still come first.
    may_accept_upgrade: bool,
}

/// Maximum number of bytes that a client may send between its two ClientHellos.
const MOST_BETWEEN: usize = 256 << 10;

const SERVER_HELLO: u8 = 2;
const RANDOM_AT: usize = 6;
const RANDOM_END: usize = RANDOM_AT + 32;
/// Random value by which a ServerHello is a HelloRetryRequest (RFC 8446 §4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
/// PostgreSQL's answer that accepts TLS.
const ACCEPTED: u8 = b'S';

// === impl Handshake ===

impl Handshake {
    /// Notes that a request to continue with TLS was sent.
    pub(super) fn asks_to_upgrade(&self) {
        self.answer.borrow_mut().may_accept_upgrade = true;
    }

    /// Notes that a ClientHello is about to be sent. The server's bytes from now on answer it.
    pub(super) fn hello_sent(&self) {
        self.stage.set(HandshakeStage::HelloSent);
    }

    /// Stops parsing.
    pub(super) fn end(&self) {
        self.stage.set(HandshakeStage::Over);
        self.is_answered.notify_one();
    }

    /// Returns true if the server's bytes are parsed now or may be later.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.stage.get(), HandshakeStage::Opening | HandshakeStage::HelloSent)
    }

    /// Parses bytes from the server.
    pub(super) fn hear(&self, bytes: &[u8]) {
        if self.stage.get() != HandshakeStage::HelloSent {
            return;
        }
        let Some(answer) = self.answer.borrow_mut().read(bytes) else { return };
        self.stage.set(match answer {
            ServerAnswer::Hello => HandshakeStage::Over,
            ServerAnswer::Retry => HandshakeStage::Retry,
            ServerAnswer::Other => HandshakeStage::Broken,
        });
        self.is_answered.notify_one();
    }

    /// Waits for the server's answer. Returns true if it asks for another ClientHello.
    ///
    /// # Errors
    /// [`TunnelEnd::BrokenTls`] for bytes that don't answer a ClientHello: the answer is still to come, and nothing may pass unparsed
    /// until then.
    pub(super) async fn asks_again(&self) -> Result<bool, TunnelEnd> {
        while self.stage.get() == HandshakeStage::HelloSent {
            self.is_answered.notified().await;
        }
        match self.stage.get() {
            HandshakeStage::Broken => Err(TunnelEnd::BrokenTls),
            stage => Ok(stage == HandshakeStage::Retry),
        }
    }
}

/// Forwards what a client sends before its second ClientHello, and checks that one like the first. The buffer then begins with
/// it.
pub(super) async fn second_hello<R: AsyncRead + Unpin>(
    from: &mut R,
    buffer: &mut BytesMut,
    (start, shared): (&OpeningCheck<'_>, &TunnelState<'_>),
    mut pass: impl AsyncFnMut(BytesMut) -> Result<(), TunnelEnd>,
) -> Result<(), TunnelEnd> {
    let mut passed = 0;
    while buffer.first() != Some(&tunnel_opening::HANDSHAKE) {
        match tunnel_opening::first_record(buffer) {
            TlsRecord::Other { bytes } => {
                passed += bytes;
                if passed > MOST_BETWEEN {
                    return Err(TunnelEnd::BrokenTls);
                }
                pass(buffer.split_to(bytes)).await?;
            }
            TlsRecord::Incomplete => {
                let read = from.read_buf(buffer).await.map_err(|_| TunnelEnd::Broken)?;
                shared.moves();
                if read == 0 {
                    return if buffer.is_empty() { Ok(()) } else { Err(TunnelEnd::BrokenTls) };
                }
            }
            TlsRecord::Handshake { .. } | TlsRecord::Malformed => return Err(TunnelEnd::BrokenTls),
        }
    }
    match tunnel_opening::read(from, buffer, || shared.moves()).await.map_err(|_| TunnelEnd::Broken)? {
        Opening::Tls { server_name, .. } => start.judge(server_name),
        _ => Err(TunnelEnd::BrokenTls),
    }
}

// === impl ServerAnswerReader ===

impl ServerAnswerReader {
    /// Returns the server's answer, or `None` until it is known.
    fn read(&mut self, bytes: &[u8]) -> Option<ServerAnswer> {
        let accepts_upgrade =
            std::mem::take(&mut self.may_accept_upgrade) && bytes.first() == Some(&ACCEPTED);
        self.bytes.extend_from_slice(bytes.get(usize::from(accepts_upgrade)..).unwrap_or_default());
        loop {
            let read = match tunnel_opening::first_record(&self.bytes) {
                TlsRecord::Incomplete => return None,
                TlsRecord::Malformed => return Some(ServerAnswer::Other),
                TlsRecord::Other { bytes } => bytes,
                TlsRecord::Handshake { payload, bytes } => {
                    self.message.extend_from_slice(payload);
                    bytes
                }
            };
            self.bytes.drain(..read);
            match self.message.first() {
                None => {}
                Some(&SERVER_HELLO) => {
                    if let Some(random) = self.message.get(RANDOM_AT..RANDOM_END) {
                        return Some(if random == RETRY { ServerAnswer::Retry } else { ServerAnswer::Hello });
                    }
                }
                Some(_) => return Some(ServerAnswer::Hello),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a ServerHello with that random value, in records of that size in bytes.
    fn server_hello(random: [u8; 32], record_bytes: usize) -> Vec<u8> {
        let message = [&[SERVER_HELLO, 0, 0, 38, 3, 3][..], &random, &[0, 0x13, 1, 0]].concat();
        let record = |piece: &[u8]| [&[22, 3, 3, 0, piece.len() as u8][..], piece].concat();
        message.chunks(record_bytes).map(record).collect::<Vec<_>>().concat()
    }

    fn answer(bytes: &[u8], piece: usize) -> Option<ServerAnswer> {
        let mut reader = ServerAnswerReader::default();
        bytes.chunks(piece).find_map(|piece| reader.read(piece))
    }

    #[test]
    fn hello_retry_request_is_recognized_for_any_split() {
        for piece in [1, 7, 1_000] {
            for record in [1, 5, 42] {
                assert_eq!(
                    answer(&server_hello(RETRY, record), piece),
                    Some(ServerAnswer::Retry),
                    "{piece} {record}"
                );
                assert_eq!(
                    answer(&server_hello([7; 32], record), piece),
                    Some(ServerAnswer::Hello),
                    "{piece} {record}"
                );
            }
            let warned = [&[21, 3, 3, 0, 2, 1, 112][..], &server_hello(RETRY, 42)].concat();
            assert_eq!(answer(&warned, piece), Some(ServerAnswer::Retry), "behind a warning");
            assert_eq!(answer(b"HTTP/1.1 400 Bad Request", piece), Some(ServerAnswer::Other));
        }
        assert_eq!(answer(&server_hello(RETRY, 42)[..30], 30), None);
    }
}
