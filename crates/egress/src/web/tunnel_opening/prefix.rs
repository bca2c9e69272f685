//! Openings that are no handshake records: finds those that a TLS server may accept all the same.

use super::Opening;
use super::client_hello::{HANDSHAKE, MAJOR};

/// Content types of TLS and DTLS records, assigned or not: ChangeCipherSpec, alert, handshake, application data, heartbeat and
/// so on.
const RECORDS: std::ops::RangeInclusive<u8> = 20..=31;
const ALERT: u8 = 21;
/// Major version of DTLS records.
const DTLS: u8 = 0xfe;
/// Highest major version that an SSL 2 hello names.
const HIGHEST_MAJOR: u8 = 15;
/// Message type of a ClientHello, in TLS and in SSL 2.
const CLIENT_HELLO: u8 = 1;

/// First bytes of PROXY protocol headers, versions 1 and 2.
const PROXY_HEADERS: [&[u8]; 2] = [b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"];
/// Maximum number of leading blank lines or NULs; no protocol begins with more.
const MOST_PADDING: usize = 256;

/// Request of another protocol, in plain text, to continue with TLS.
struct UpgradeRequest {
    prefix: &'static [u8],
    bytes: usize,
    /// Offset of a byte, and the bits of it that must be set.
    flag: Option<(usize, u8)>,
}

/// PostgreSQL's SSLRequest and GSSENCRequest, and MySQL's handshake response with `CLIENT_SSL`, which stops before the user
/// name.
const UPGRADES: &[UpgradeRequest] = &[
    UpgradeRequest { prefix: &[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f], bytes: 8, flag: None },
    UpgradeRequest { prefix: &[0, 0, 0, 8, 4, 0xd2, 0x16, 0x30], bytes: 8, flag: None },
    UpgradeRequest { prefix: &[0x20, 0, 0, 1], bytes: 36, flag: Some((5, 0x08)) },
];

/// Returns the opening of bytes that don't begin with a TLS handshake record.
pub(super) fn judge(all: &[u8]) -> Opening {
    match all {
        [kind, ..] if RECORDS.contains(kind) => record(all),
        [first, ..] if first & 0x80 != 0 => sslv2(all),
        _ => UPGRADES
            .iter()
            .find_map(|request| request.judge(all))
            .or_else(|| proxied(all))
            .or_else(|| padded(all))
            .unwrap_or(Opening::Plain),
    }
}

/// PROXY protocol header. A server behind a load balancer removes it and takes what follows for the beginning.
fn proxied(all: &[u8]) -> Option<Opening> {
    let signature =
        PROXY_HEADERS.iter().find(|signature| all.starts_with(signature) || signature.starts_with(all))?;
    Some(if all.len() < signature.len() { Opening::Incomplete } else { Opening::Malformed })
}

/// Handshake record behind blank lines or NULs, which a server may skip.
fn padded(all: &[u8]) -> Option<Opening> {
    let padding = all.iter().take_while(|byte| matches!(byte, 0 | b'\r' | b'\n')).count();
    match all.get(padding..)? {
        _ if padding == 0 => None,
        _ if padding > MOST_PADDING => Some(Opening::Malformed),
        [] | [HANDSHAKE] => Some(Opening::Incomplete),
        [HANDSHAKE, MAJOR, ..] => Some(Opening::Malformed),
        _ => None,
    }
}

/// Bytes that begin with the content type of a record. Message lengths of other protocols may look the same. So records with
/// another version than TLS's are recognized by their content: Go's TLS accepts a first record of any version below 16.0.
fn record(all: &[u8]) -> Opening {
    match all {
        [_] => Opening::Incomplete,
        [_, MAJOR | DTLS, ..] => Opening::Malformed,
        [ALERT | HANDSHAKE, ..] if all.len() < 6 => Opening::Incomplete,
        [ALERT, _, _, 0, 2, 1 | 2, ..] => Opening::Malformed,
        [HANDSHAKE, _, _, _, _, CLIENT_HELLO, ..] => Opening::Malformed,
        _ => Opening::Plain,
    }
}

/// SSL 2 hello: two bytes of length with the highest bit set, message type 1, a version. Servers accepted these as hellos of
/// all versions up to TLS 1.2.
fn sslv2(all: &[u8]) -> Opening {
    match all {
        [_] | [_, _] | [_, _, CLIENT_HELLO] => Opening::Incomplete,
        [_, _, CLIENT_HELLO, 0..=HIGHEST_MAJOR, ..] => Opening::Malformed,
        _ => Opening::Plain,
    }
}

// === impl UpgradeRequest ===

impl UpgradeRequest {
    /// Returns `None` if the bytes are no such request.
    fn judge(&self, all: &[u8]) -> Option<Opening> {
        let compared = all.len().min(self.prefix.len());
        if all.get(..compared) != self.prefix.get(..compared) {
            return None;
        }
        let has_flag = |(at, bits): (usize, u8)| all.get(at).is_none_or(|byte| byte & bits == bits);
        if !self.flag.is_none_or(has_flag) {
            return None;
        }
        Some(match all.len() >= self.bytes {
            true => Opening::Upgrade { bytes: self.bytes },
            false => Opening::Incomplete,
        })
    }
}
