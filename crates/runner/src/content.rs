//! Encoding of arbitrary bytes in a result.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use belljar_contract::result::output::ContentEncoding;

/// Bytes as a JSON string can hold them: as they are if they are UTF-8, else in base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    /// The text or the base64.
    pub(crate) text: String,
    /// Encoding that was used.
    pub(crate) encoding: ContentEncoding,
}

// === impl Content ===

impl Content {
    /// Encodes bytes that are complete.
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(
            |error| Self::base64(error.as_bytes()),
            |text| Self { text, encoding: ContentEncoding::Utf8 },
        )
    }

    /// Encodes bytes that were truncated: an incomplete last character is left out of a text. Bytes that are not text
    /// are kept to the last.
    pub(crate) fn cut(bytes: Vec<u8>) -> Self {
        String::from_utf8(bytes).map_or_else(
            |error| {
                let flaw = error.utf8_error();
                let mut bytes = error.into_bytes();
                if flaw.error_len().is_some() {
                    return Self::base64(&bytes);
                }
                bytes.truncate(flaw.valid_up_to());
                Self::whole(bytes)
            },
            |text| Self { text, encoding: ContentEncoding::Utf8 },
        )
    }

    /// Encodes bytes in base64, whatever they are.
    pub(crate) fn base64(bytes: &[u8]) -> Self {
        Self { text: STANDARD.encode(bytes), encoding: ContentEncoding::Base64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_character_is_dropped_and_non_utf8_is_kept_as_base64() {
        let text = |text: &str| Content { text: text.to_owned(), encoding: ContentEncoding::Utf8 };
        let euro = "a€".as_bytes();
        assert_eq!(Content::cut(euro.to_vec()), text("a€"));
        assert_eq!(Content::cut(euro[..3].to_vec()), text("a"));
        assert_eq!(Content::cut(euro[1..3].to_vec()), text(""));
        for noise in [&[b'a', 0xff, b'b'][..], &euro[2..]] {
            let content = Content::cut(noise.to_vec());
            assert_eq!(content.encoding, ContentEncoding::Base64);
            assert_eq!(STANDARD.decode(content.text).unwrap(), noise);
        }
        assert_eq!(Content::whole(euro[..3].to_vec()).encoding, ContentEncoding::Base64);
    }
}
