//! What a tunnel begins with: TLS says whose name it is for, and that must be the one that was asked for.

use super::limits::{GREETING_BYTES, ROOM};
use bytes::BytesMut;
use rustls::server::Acceptor;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// What is known of the first bytes of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// There is more to come before it can be told.
    Unfinished,
    /// TLS, for that name if it says one, in lower case.
    Tls { name: Option<String> },
    /// Something else.
    Other,
    /// It begins as TLS does, and isn't.
    Broken,
}

/// Looks at what a client sends, as it comes: each byte once, however finely it is cut.
pub(crate) struct Listener {
    acceptor: Acceptor,
    /// So many bytes have been looked at.
    heard: usize,
}

/// A record of a handshake, of any version that there ever was.
const HANDSHAKE: u8 = 22;
const MAJOR: u8 = 3;

/// Reads behind what is there until it is known what it is; who ends before that begins with something else. Each time that
/// something came is told.
pub(super) async fn hear_out<R: AsyncRead + Unpin>(
    from: &mut R,
    buffer: &mut BytesMut,
    tell: impl Fn(),
) -> io::Result<Greeting> {
    let mut listener = Listener::new();
    loop {
        match listener.hear(buffer) {
            Greeting::Unfinished if buffer.len() >= GREETING_BYTES => return Ok(Greeting::Broken),
            Greeting::Unfinished => {}
            known => return Ok(known),
        }
        buffer.reserve(ROOM);
        if from.read_buf(buffer).await? == 0 {
            return Ok(Greeting::Other);
        }
        tell();
    }
}

// === impl Listener ===

impl Listener {
    pub(crate) fn new() -> Self {
        Self { acceptor: Acceptor::default(), heard: 0 }
    }

    /// What is known once these are all the bytes that have come, those that were there before among them.
    pub(crate) fn hear(&mut self, all: &[u8]) -> Greeting {
        match all {
            [] | [HANDSHAKE] => return Greeting::Unfinished,
            [HANDSHAKE, MAJOR, ..] => {}
            _ => return Greeting::Other,
        }
        let mut rest = all.get(self.heard..).unwrap_or_default();
        while !rest.is_empty() {
            match self.acceptor.read_tls(&mut rest) {
                Ok(count) if count > 0 => self.heard += count,
                _ => return Greeting::Broken,
            }
            match self.acceptor.accept() {
                Ok(Some(accepted)) => {
                    let name = accepted.client_hello().server_name().map(str::to_ascii_lowercase);
                    return Greeting::Tls { name };
                }
                Ok(None) => {}
                Err(_) => return Greeting::Broken,
            }
        }
        Greeting::Unfinished
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::ServerName;
    use std::sync::Arc;

    /// What rustls sends first.
    fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut sent = Vec::new();
        client.write_tls(&mut sent).unwrap();
        sent
    }

    #[test]
    fn the_name_is_found_however_the_greeting_comes() {
        let whole = hello("API.example.com");
        let found = Greeting::Tls { name: Some("api.example.com".to_owned()) };
        let of = |bytes: &[u8]| Listener::new().hear(bytes);
        assert_eq!(of(&whole), found);
        let mut by_bytes = Listener::new();
        for end in 0..whole.len() {
            assert_eq!(of(&whole[..end]), Greeting::Unfinished, "{end} of {}", whole.len());
            assert_eq!(by_bytes.hear(&whole[..end]), Greeting::Unfinished, "{end} of {}", whole.len());
        }
        assert_eq!(by_bytes.hear(&whole), found);
        let more = [whole.as_slice(), b"behind it"].concat();
        assert_eq!(of(&more), found);
        assert_eq!(of(&hello("93.184.216.34")), Greeting::Tls { name: None });
    }

    #[test]
    fn what_is_no_tls_is_told_at_once() {
        assert_eq!(Listener::new().hear(b"SSH-2.0-x"), Greeting::Other);
        assert_eq!(Listener::new().hear(b"GET / HTTP/1.1\r\n"), Greeting::Other);
        assert_eq!(Listener::new().hear(b"\x16\x02\x01"), Greeting::Other);
        assert_eq!(Listener::new().hear(b"\x16\x03\x01\x00\x05hello and more"), Greeting::Broken);
    }
}
