//! Openings that aren't handshake records: which of them a TLS server may accept all the same.

use super::Opening;
use super::client_hello::{HANDSHAKE, MAJOR};

/// Content types of TLS and DTLS records, assigned or not: ChangeCipherSpec, alert, handshake, application data, heartbeat and so on.
const RECORDS: std::ops::RangeInclusive<u8> = 20..=31;
const ALERT: u8 = 21;
/// The major version of DTLS records.
const DTLS: u8 = 0xfe;
/// Above it no hello of SSL 2 names a version.
const HIGHEST_MAJOR: u8 = 15;
/// The message type of a ClientHello, in TLS as in SSL 2.
const CLIENT_HELLO: u8 = 1;

/// How headers of the PROXY protocol begin, of its versions 1 and 2.
const PROXY_HEADERS: [&[u8]; 2] = [b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"];
/// No protocol begins with more blank lines or NULs.
const MOST_PADDING: usize = 256;

/// The request of another protocol to go on with TLS, in the clear.
struct UpgradeRequest {
    prefix: &'static [u8],
    bytes: usize,
    /// A byte of it, and the bits of it that must be set.
    flag: Option<(usize, u8)>,
}

/// PostgreSQL's SSLRequest and GSSENCRequest, and MySQL's handshake response with `CLIENT_SSL` that stops before the user name.
const UPGRADES: &[UpgradeRequest] = &[
    UpgradeRequest { prefix: &[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f], bytes: 8, flag: None },
    UpgradeRequest { prefix: &[0, 0, 0, 8, 4, 0xd2, 0x16, 0x30], bytes: 8, flag: None },
    UpgradeRequest { prefix: &[0x20, 0, 0, 1], bytes: 36, flag: Some((5, 0x08)) },
];

/// How a tunnel begins that doesn't begin with a handshake record of TLS.
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

/// A header of the PROXY protocol: servers behind a load balancer take it off, and what follows for the beginning.
fn proxied(all: &[u8]) -> Option<Opening> {
    let signature =
        PROXY_HEADERS.iter().find(|signature| all.starts_with(signature) || signature.starts_with(all))?;
    Some(if all.len() < signature.len() { Opening::Incomplete } else { Opening::Malformed })
}

/// A handshake record behind blank lines or NULs, which a server may pass over.
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

/// What begins with the content type of a record. Lengths of other protocols' messages may look like one, so records of another
/// version than TLS's are told by their content: Go's TLS takes a first record of every version below 16.0.
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

/// A hello of SSL 2: two bytes of length with the highest bit set, message type 1, a version. Servers took these for hellos of
/// every version up to TLS 1.2.
fn sslv2(all: &[u8]) -> Opening {
    match all {
        [_] | [_, _] | [_, _, CLIENT_HELLO] => Opening::Incomplete,
        [_, _, CLIENT_HELLO, 0..=HIGHEST_MAJOR, ..] => Opening::Malformed,
        _ => Opening::Plain,
    }
}

// === impl UpgradeRequest ===

impl UpgradeRequest {
    /// Nothing if the bytes are no such request.
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
