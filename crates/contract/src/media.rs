//! Media types of files, as in HTTP: `text/markdown; charset=utf-8`.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A media type as a client declared it. It is not verified and must not be trusted, but it is safe in a header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct MediaType(String);

/// The text is no media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a media type such as `text/plain`, of at most {LONGEST} bytes")]
pub struct ParseMediaTypeError;

/// A media type has no more bytes.
pub const LONGEST: usize = 127;

// === impl MediaType ===

impl MediaType {
    /// Reads a media type: two tokens with a slash between them, and visible ASCII behind a `;`.
    ///
    /// # Errors
    /// [`ParseMediaTypeError`] for every other text.
    pub fn parse(text: &str) -> Result<Self, ParseMediaTypeError> {
        check(text).map(|()| Self(text.to_owned()))
    }

    /// Returns the text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(text: &str) -> Result<(), ParseMediaTypeError> {
    let is_token = |token: &str| {
        let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        !token.is_empty() && token.bytes().all(is_of_token)
    };
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_essence =
        essence.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    let is_visible = parameters.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if text.len() <= LONGEST && is_essence && is_visible { Ok(()) } else { Err(ParseMediaTypeError) }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for MediaType {
    type Error = ParseMediaTypeError;

    fn try_from(text: String) -> Result<Self, ParseMediaTypeError> {
        check(&text).map(|()| Self(text))
    }
}

impl From<MediaType> for String {
    fn from(media_type: MediaType) -> Self {
        media_type.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_must_be_safe_in_a_header() {
        for text in
            ["text/plain", "text/markdown; charset=utf-8", "image/svg+xml", "application/vnd.a.b+json"]
        {
            assert_eq!(MediaType::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "text",
            "/",
            "text/",
            "te xt/a",
            "text/a\r\nx: y",
            "text/a; b=\u{e9}",
            "text/a/b",
            &"a/".repeat(80),
        ] {
            assert_eq!(MediaType::parse(text), Err(ParseMediaTypeError), "{text:?}");
        }
    }
}
