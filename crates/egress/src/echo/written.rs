//! Other ways of writing what is no letter: in texts of JSON, in addresses, and in pages.

use super::Form;
use zeroize::Zeroizing;

/// All that an address has encoded in it (RFC 3986 §2.3).
const RESERVED: &[u8] = b"!\"#$%&'()*+,/:;<=>?@[\\]^`{|}";

/// `&quot;`
const LONGEST_ESCAPE: usize = 6;

/// Bytes that are wiped when they go. They are given all of their room at once: what grows leaves its old self behind.
pub(super) fn wiped(room: usize, bytes: impl Iterator<Item = u8>) -> Form {
    let mut all = Zeroizing::new(Vec::with_capacity(room));
    all.extend(bytes);
    all
}

/// As it stands in a text of JSON, in an address, and in a page.
pub(super) fn escaped(bytes: &[u8]) -> impl Iterator<Item = Form> + use<> {
    type Escape = fn(u8) -> String;
    let in_json: Escape = |byte| format!("\\{}", char::from(byte));
    let coded: Escape = |byte| format!("\\u{byte:04x}");
    let in_address: Escape = |byte| format!("%{byte:02X}");
    let in_small: Escape = |byte| format!("%{byte:02x}");
    let in_page: Escape = |byte| format!("&#{byte};");
    let in_page_coded: Escape = |byte| format!("&#x{byte:x};");
    let named: Escape = |byte| match byte {
        b'&' => "&amp;".to_owned(),
        b'<' => "&lt;".to_owned(),
        b'>' => "&gt;".to_owned(),
        b'"' => "&quot;".to_owned(),
        other => format!("&#{other};"),
    };
    // As some write pages: no name but for three of them.
    let numbered: Escape = |byte| match byte {
        b'&' => "&amp;".to_owned(),
        b'<' => "&lt;".to_owned(),
        b'>' => "&gt;".to_owned(),
        other => format!("&#{other};"),
    };
    let ways: [(&[u8], Escape); 21] = [
        (RESERVED, in_address),
        (RESERVED, in_small),
        (b"/+=:@!$&'()*,;?#[]~", in_small),
        (b"\"\\", in_json),
        (b"\"\\/", in_json),
        (b"&<>", coded),
        (b"&<>'", coded),
        (b"&<>'\"\\", coded),
        (b"&<>\"", named),
        (b"&<>\"'", named),
        (b"&<>", named),
        (b"+", numbered),
        (b"&<>\"'+", numbered),
        (b"/", in_json),
        (b"/", coded),
        (b"+", coded),
        (b"/+=", in_address),
        (b"/+=", in_small),
        (b"/+=:@!$&'()*,;?#[]~", in_address),
        (b"/&'", in_page),
        (b"/&'", in_page_coded),
    ];
    let write = |(which, escape): (&[u8], Escape)| -> Form {
        let mut out = Zeroizing::new(Vec::with_capacity(LONGEST_ESCAPE * bytes.len()));
        for byte in bytes {
            match which.contains(byte) {
                true => out.extend_from_slice(escape(*byte).as_bytes()),
                false => out.push(*byte),
            }
        }
        out
    };
    ways.map(write).into_iter()
}
