//! Strict parser for the ClientHello of TLS 1.0 to 1.3 (RFC 8446 §4.1.2), reassembled from its records.

use super::Opening;

/// Content type of handshake records.
pub(in crate::web) const HANDSHAKE: u8 = 22;

const RECORD_HEAD: usize = 5;
/// Maximum payload of an unencrypted record in bytes (RFC 8446 §5.1).
const LONGEST_RECORD: usize = 1 << 14;
const MESSAGE_HEAD: usize = 4;
const CLIENT_HELLO: u8 = 1;
/// Major version and minor versions of records and hellos: TLS 1.0 to 1.2. TLS 1.3 uses the number of 1.2 there.
pub(super) const MAJOR: u8 = 3;
const MINORS: std::ops::RangeInclusive<u8> = 1..=3;

const RANDOM: usize = 32;
const LONGEST_SESSION_ID: usize = 32;
const NO_COMPRESSION: u8 = 0;
/// Maximum number of extensions; no client sends as many.
const MOST_EXTENSIONS: usize = 256;
const LONGEST_NAME: usize = 253;

const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
/// Encrypted Client Hello (RFC 9849): the outer hello is parsed like any other.
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
const OUTER: u8 = 0;

/// Reassembles records and finds the ClientHello in them.
#[derive(Default)]
pub(super) struct ClientHelloReader {
    /// Offset of the next record.
    at: usize,
    /// Handshake message bytes so far.
    message: Vec<u8>,
}

/// TLS record, as far as its bytes have arrived.
pub(in crate::web) enum TlsRecord<'b> {
    Incomplete,
    /// Handshake record, with its length including the header.
    Handshake {
        payload: &'b [u8],
        bytes: usize,
    },
    /// ChangeCipherSpec, alert or encrypted record, with its length including the header.
    Other {
        bytes: usize,
    },
    Malformed,
}

/// Unread rest of a byte string.
struct UnreadBytes<'b>(&'b [u8]);

// === impl ClientHelloReader ===

impl ClientHelloReader {
    /// Returns the opening. `all` holds all bytes so far.
    pub(super) fn read(&mut self, all: &[u8]) -> Opening {
        loop {
            match hello_record(all.get(self.at..).unwrap_or_default()) {
                TlsRecord::Incomplete => return Opening::Incomplete,
                TlsRecord::Handshake { payload, bytes } => {
                    self.at += bytes;
                    self.message.extend_from_slice(payload);
                }
                TlsRecord::Other { .. } | TlsRecord::Malformed => return Opening::Malformed,
            }
            match self.judge() {
                Opening::Incomplete => {}
                known => return known,
            }
        }
    }

    /// Returns the opening that the records so far hold.
    fn judge(&self) -> Opening {
        let [kind, length @ ..] = self.message.as_slice() else { return Opening::Incomplete };
        if *kind != CLIENT_HELLO {
            return Opening::Malformed;
        }
        let [high, middle, low, body @ ..] = length else { return Opening::Incomplete };
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        if length > super::CLIENT_HELLO_BYTES - MESSAGE_HEAD {
            return Opening::Malformed;
        }
        match body.len() {
            there if there < length => Opening::Incomplete,
            there if there > length => Opening::Malformed,
            _ => match hello(body) {
                Some(server_name) => Opening::Tls { server_name, bytes: self.at },
                None => Opening::Malformed,
            },
        }
    }
}

/// Returns the first record of what either side sends after a ClientHello.
pub(in crate::web) fn first_record(bytes: &[u8]) -> TlsRecord<'_> {
    const OTHERS: [u8; 3] = [20, 21, 23];
    const LONGEST_ENCRYPTED: usize = LONGEST_RECORD + 2_048;
    let (kind, head) = match bytes {
        [] => return TlsRecord::Incomplete,
        [kind, rest @ ..] if *kind == HANDSHAKE || OTHERS.contains(kind) => (*kind, rest),
        _ => return TlsRecord::Malformed,
    };
    if head.first().is_some_and(|major| *major != MAJOR) {
        return TlsRecord::Malformed;
    }
    let [_, _, high, low, rest @ ..] = head else { return TlsRecord::Incomplete };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    if length > LONGEST_ENCRYPTED {
        return TlsRecord::Malformed;
    }
    let bytes = RECORD_HEAD + length;
    match rest.get(..length) {
        None => TlsRecord::Incomplete,
        Some(payload) if kind == HANDSHAKE => TlsRecord::Handshake { payload, bytes },
        Some(_) => TlsRecord::Other { bytes },
    }
}

/// Returns the first record of these bytes, if it is of the kind that a ClientHello stands in.
fn hello_record(bytes: &[u8]) -> TlsRecord<'_> {
    let is_sound = |at: usize, byte: u8| match at {
        0 => byte == HANDSHAKE,
        1 => byte == MAJOR,
        _ => MINORS.contains(&byte),
    };
    if !bytes.iter().take(3).enumerate().all(|(at, byte)| is_sound(at, *byte)) {
        return TlsRecord::Malformed;
    }
    let [_, _, _, high, low, ..] = bytes else { return TlsRecord::Incomplete };
    match usize::from(u16::from_be_bytes([*high, *low])) {
        1..=LONGEST_RECORD => first_record(bytes),
        _ => TlsRecord::Malformed,
    }
}

/// Returns the server name of a ClientHello: `Some(None)` if it has none, `None` if it is not well-formed.
fn hello(body: &[u8]) -> Option<Option<String>> {
    let mut rest = UnreadBytes(body);
    let (major, minor) = (rest.byte()?, rest.byte()?);
    if major != MAJOR || !MINORS.contains(&minor) {
        return None;
    }
    rest.take(RANDOM)?;
    let session = rest.counted(1)?;
    let suites = rest.counted(2)?;
    let compressions = rest.counted(1)?;
    let are_sound = session.len() <= LONGEST_SESSION_ID
        && !suites.is_empty()
        && suites.len().is_multiple_of(2)
        && compressions.contains(&NO_COMPRESSION);
    if !are_sound {
        return None;
    }
    // A TLS 1.0 client may send no extensions.
    if rest.is_empty() {
        return Some(None);
    }
    let extensions = rest.counted(2)?;
    if !rest.is_empty() {
        return None;
    }
    server_name(UnreadBytes(extensions))
}

/// Returns the server name in a list of extensions. Each extension may occur once.
fn server_name(mut extensions: UnreadBytes<'_>) -> Option<Option<String>> {
    let (mut seen, mut name) = (Vec::new(), None);
    while !extensions.is_empty() {
        let kind = u16::from_be_bytes([extensions.byte()?, extensions.byte()?]);
        let content = extensions.counted(2)?;
        if seen.contains(&kind) || seen.len() == MOST_EXTENSIONS {
            return None;
        }
        seen.push(kind);
        match kind {
            SERVER_NAME => name = Some(only_name(content)?),
            ENCRYPTED_CLIENT_HELLO if content.first() != Some(&OUTER) => return None,
            _ => {}
        }
    }
    Some(name)
}

/// Returns the single host name of a server name list, in lower case.
fn only_name(content: &[u8]) -> Option<String> {
    let mut rest = UnreadBytes(content);
    let mut list = UnreadBytes(rest.counted(2)?);
    let kind = list.byte()?;
    let name = list.counted(2)?;
    if kind != HOST_NAME || !list.is_empty() || !rest.is_empty() {
        return None;
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.iter().all(is_plain) {
        return None;
    }
    Some(std::str::from_utf8(name).ok()?.to_ascii_lowercase())
}

// === impl UnreadBytes ===

impl<'b> UnreadBytes<'b> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// Returns the bytes behind a length prefix of `length_bytes` bytes.
    fn counted(&mut self, length_bytes: usize) -> Option<&'b [u8]> {
        let length = self.take(length_bytes)?;
        let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        self.take(length)
    }
}
