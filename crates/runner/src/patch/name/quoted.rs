//! Names in double quotes with C escapes, as git writes those it finds unusual.

/// Why a text doesn't start with a quoted name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotQuoted {
    /// There is no quote, or an escape that C doesn't know.
    Malformed,
    /// The closing quote is missing, at least in the first 64 KiB.
    Open,
}

/// Far more than any name may have, but not so much that copying it would matter.
const MAX_QUOTED_BYTES: usize = 64 << 10;

/// Reads a quoted name at the start of `text`; returns it and what follows the closing quote.
pub(crate) fn unquote(text: &[u8]) -> Result<(Vec<u8>, &[u8]), NotQuoted> {
    let mut rest = text.strip_prefix(b"\"").ok_or(NotQuoted::Malformed)?;
    let mut name = Vec::new();
    loop {
        let plain = memchr::memchr2(b'"', b'\\', rest).ok_or(NotQuoted::Open)?;
        if name.len() + plain > MAX_QUOTED_BYTES {
            return Err(NotQuoted::Open);
        }
        name.extend_from_slice(&rest[..plain]);
        let special = rest[plain];
        rest = &rest[plain + 1..];
        if special == b'"' {
            return Ok((name, rest));
        }
        let (byte, after) = escape(rest).ok_or(NotQuoted::Malformed)?;
        name.push(byte);
        rest = after;
    }
}

fn escape(text: &[u8]) -> Option<(u8, &[u8])> {
    let (&first, rest) = text.split_first()?;
    let byte = match first {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'\\' | b'"' => first,
        b'0'..=b'3' => return octal(text),
        _ => return None,
    };
    Some((byte, rest))
}

/// Exactly three digits; the first is known to be at most 3, so the value fits a byte.
fn octal(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = text.split_first_chunk::<3>()?;
    let mut value = 0u8;
    for digit in digits {
        if !matches!(digit, b'0'..=b'7') {
            return None;
        }
        value = value << 3 | (digit - b'0');
    }
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_name_escapes_are_those_of_c() {
        let (name, rest) = unquote(br#""a\a\b\f\n\r\t\v\\\"\303\244z" tail"#).unwrap();
        assert_eq!(name, b"a\x07\x08\x0c\n\r\t\x0b\\\"\xc3\xa4z");
        assert_eq!(rest, b" tail");
    }

    #[test]
    fn malformed_quoting_is_not_a_quoted_name() {
        for text in
            [&b"x"[..], br#""\q""#, br#""\400""#, br#""\18""#, br#""\08x""#, br#""\"#, b"\"\\3", b"\"\\\n"]
        {
            assert_eq!(unquote(text), Err(NotQuoted::Malformed), "{:?}", text.escape_ascii().to_string());
        }
        assert_eq!(unquote(b"\"x"), Err(NotQuoted::Open));
    }
}
