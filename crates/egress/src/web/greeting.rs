//! What a tunnel begins with: TLS says whose name it is for, and that must be the one that was asked for.

use rustls::server::Acceptor;
use std::io::Cursor;

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

/// A record of a handshake, of any version that there ever was.
const HANDSHAKE: u8 = 22;
const MAJOR: u8 = 3;

// === impl Greeting ===

impl Greeting {
    /// Looks at the first bytes of what a client sends.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match bytes {
            [] | [HANDSHAKE] => return Self::Unfinished,
            [HANDSHAKE, MAJOR, ..] => {}
            _ => return Self::Other,
        }
        let mut acceptor = Acceptor::default();
        let mut rest = Cursor::new(bytes);
        while rest.position() < bytes.len() as u64 {
            if acceptor.read_tls(&mut rest).is_err() {
                return Self::Broken;
            }
            match acceptor.accept() {
                Ok(Some(accepted)) => {
                    let name = accepted.client_hello().server_name().map(str::to_ascii_lowercase);
                    return Self::Tls { name };
                }
                Ok(None) => {}
                Err(_) => return Self::Broken,
            }
        }
        Self::Unfinished
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
        assert_eq!(Greeting::of(&whole), found);
        for end in 0..whole.len() {
            assert_eq!(Greeting::of(&whole[..end]), Greeting::Unfinished, "{end} of {}", whole.len());
        }
        let more = [whole.as_slice(), b"behind it"].concat();
        assert_eq!(Greeting::of(&more), found);
        assert_eq!(Greeting::of(&hello("93.184.216.34")), Greeting::Tls { name: None });
    }

    #[test]
    fn what_is_no_tls_is_told_at_once() {
        assert_eq!(Greeting::of(b"SSH-2.0-x"), Greeting::Other);
        assert_eq!(Greeting::of(b"GET / HTTP/1.1\r\n"), Greeting::Other);
        assert_eq!(Greeting::of(b"\x16\x02\x01"), Greeting::Other);
        assert_eq!(Greeting::of(b"\x16\x03\x01\x00\x05hello and more"), Greeting::Broken);
    }
}
