//! Detects the character encoding of a page: by byte order mark, HTTP header, or `meta` element.

use super::media::Kind;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Number of bytes searched for a `meta` element.
const LOOKED_AT: usize = 1024;

/// Decodes the text. Invalid sequences are replaced.
pub(super) fn decoded(content_type: Option<&str>, bytes: &[u8], kind: Kind) -> String {
    let (encoding, begin) = match Encoding::for_bom(bytes) {
        Some(found) => found,
        None => (said(content_type, bytes, kind), 0),
    };
    encoding.decode_without_bom_handling(&bytes[begin..]).0.into_owned()
}

fn said(content_type: Option<&str>, bytes: &[u8], kind: Kind) -> &'static Encoding {
    let by_server = content_type.and_then(|text| label(text.as_bytes()));
    let by_page = || match kind {
        Kind::Html => meta(&bytes[..bytes.len().min(LOOKED_AT)]),
        Kind::Plain => None,
    };
    let usual = || if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 };
    by_server.or_else(by_page).unwrap_or_else(usual)
}

/// Encoding declared by a `meta` element. A page declaring UTF-16 was readable as ASCII, so it is UTF-8.
fn meta(begin: &[u8]) -> Option<&'static Encoding> {
    let lower = begin.to_ascii_lowercase();
    let mut rest = lower.as_slice();
    while let Some(at) = memchr::memmem::find(rest, b"<meta") {
        rest = &rest[at + 5..];
        let tag = rest.split(|byte| *byte == b'>').next().unwrap_or_default();
        match label(tag) {
            Some(encoding) if encoding == UTF_16BE || encoding == UTF_16LE => return Some(UTF_8),
            Some(encoding) => return Some(encoding),
            None => {}
        }
    }
    None
}

/// The encoding named after `charset=`.
fn label(text: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"charset";
    let lower = text.to_ascii_lowercase();
    let rest = lower[memchr::memmem::find(&lower, NAME)? + NAME.len()..].trim_ascii_start();
    let rest = rest.strip_prefix(b"=")?.trim_ascii_start();
    let is_around = |byte: &u8| matches!(byte, b'"' | b'\'');
    let rest = if rest.first().is_some_and(is_around) { &rest[1..] } else { rest };
    let is_end = |byte: &u8| is_around(byte) || byte.is_ascii_whitespace() || matches!(byte, b';' | b'/');
    Encoding::for_label(rest.split(is_end).next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charset_is_taken_from_bom_header_or_page_in_that_order() {
        let html = |content_type, bytes: &[u8]| decoded(Some(content_type), bytes, Kind::Html);
        let cases: [(&str, &[u8], &str); 9] = [
            ("text/html; charset=iso-8859-1", b"Gr\xfc\xdfe", "Grüße"),
            ("text/html", b"<meta charset='windows-1251'>\xcf\xf0", "<meta charset='windows-1251'>Пр"),
            (
                "text/html",
                b"<META http-equiv=x content='text/html; charset=koi8-r'>\xf0",
                "<META http-equiv=x content='text/html; charset=koi8-r'>П",
            ),
            // The HTTP header takes precedence over the page, and the byte order mark over both.
            ("text/html; charset=\"utf-8\"", b"<meta charset=koi8-r>\xd0\x9f", "<meta charset=koi8-r>П"),
            ("text/html; charset=koi8-r", b"\xef\xbb\xbf\xd0\x9f", "П"),
            ("text/html", b"\xff\xfea\0b\0", "ab"),
            ("text/html", b"<meta charset=utf-16>a", "<meta charset=utf-16>a"),
            ("text/html", b"caf\xe9", "café"),
            ("text/html", "café".as_bytes(), "café"),
        ];
        for (content_type, bytes, expected) in cases {
            assert_eq!(html(content_type, bytes), expected, "{content_type}");
        }
        // UTF-7 is not decoded, so it can't smuggle markup.
        assert_eq!(html("text/html; charset=utf-7", b"+ADw-b+AD4-"), "+ADw-b+AD4-");
    }
}
