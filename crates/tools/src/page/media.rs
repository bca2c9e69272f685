//! Detects content types that are text.

/// Method of reading content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// HTML, of which only the visible text is read.
    Html,
    /// Plain text.
    Plain,
}

/// Text types outside of `text/…`.
const PLAIN: [&str; 14] = [
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/ndjson",
    "application/sql",
    "application/toml",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
];

/// Number of bytes inspected to detect the type.
const LOOKED_AT: usize = 1024;

/// Maximum length of a content type in messages.
const LONGEST_TOLD: usize = 100;

/// Method of reading the content; `None` if it isn't text.
pub(super) fn kind(content_type: Option<&str>, bytes: &[u8]) -> Option<Kind> {
    let essence = content_type.map(essence).unwrap_or_default();
    let kind = match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "" if looks_like_html(bytes) => Kind::Html,
        "" => Kind::Plain,
        text if text.starts_with("text/") || text.ends_with("+json") || text.ends_with("+xml") => Kind::Plain,
        text if PLAIN.contains(&text) => Kind::Plain,
        _ => return None,
    };
    // Text doesn't contain NUL bytes, except UTF-16, which is recognized by its byte order mark or declared type.
    let begin = &bytes[..bytes.len().min(LOOKED_AT)];
    let is_wide = begin.starts_with(&[0xff, 0xfe]) || begin.starts_with(&[0xfe, 0xff]);
    let says_wide = content_type.is_some_and(|text| text.to_ascii_lowercase().contains("utf-16"));
    (is_wide || says_wide || !begin.contains(&0)).then_some(kind)
}

/// The content type for error messages.
pub(super) fn told(content_type: Option<&str>) -> String {
    let essence = content_type.map(essence).unwrap_or_default();
    match essence.as_str() {
        "" => "the response without a content type".to_owned(),
        text => text.chars().filter(char::is_ascii_graphic).take(LONGEST_TOLD).collect(),
    }
}

fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOKED_AT)]).to_ascii_lowercase();
    let begin = begin.trim_start_matches('\u{feff}').trim_start();
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| begin.starts_with(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_format_is_detected_from_content_type_and_bytes() {
        for (content_type, bytes, expected) in [
            (Some("text/html; charset=utf-8"), &b"<p>"[..], Some(Kind::Html)),
            (Some("Application/XHTML+xml"), b"<p>", Some(Kind::Html)),
            (Some("text/markdown"), b"# x", Some(Kind::Plain)),
            (Some("application/vnd.api+json"), b"{}", Some(Kind::Plain)),
            (Some("image/svg+xml"), b"<svg/>", Some(Kind::Plain)),
            (Some("application/pdf"), b"%PDF-1.7", None),
            (Some("image/png"), b"\x89PNG", None),
            (Some("application/octet-stream"), b"text", None),
            (Some("text/plain"), b"a\0b", None),
            (Some("text/plain"), b"\xff\xfea\0", Some(Kind::Plain)),
            (None, b"\n <!DOCTYPE html><p>", Some(Kind::Html)),
            (None, b"text", Some(Kind::Plain)),
            (None, b"\x7fELF\0", None),
        ] {
            assert_eq!(kind(content_type, bytes), expected, "{content_type:?}");
        }
        assert_eq!(told(Some("Application/PDF; x=y")), "application/pdf");
    }
}
