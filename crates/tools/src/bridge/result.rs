//! Conversion of a server's results to answers (`docs/contracts/tools.md#t11.3`).

use crate::answer::{Answer, Attachment, Failure, Success};
use belljar_contract::tool::DomainCode;
use serde_json::{Value, json};

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    Text(String),
    /// An image or a sound.
    Media {
        kind: &'static str,
        mime_type: String,
        base64: String,
    },
    Resource {
        uri: String,
    },
    Unknown,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Outcome {
    pub(super) blocks: Vec<Block>,
    pub(super) structured: Option<Value>,
    pub(super) is_error: bool,
}

/// Maximum length of an error message that is passed on, in bytes.
const LONGEST_COMPLAINT: usize = 8 << 10;

/// Maximum length of a media type.
const LONGEST_TYPE: usize = 100;

/// Maximum length of a resource's URI.
const LONGEST_URI: usize = 2 << 10;

// === impl Outcome ===

impl Outcome {
    /// Converts the result. Texts are joined by line breaks; other parts leave a marker, and images and sounds are attached.
    pub(super) fn answer(self) -> Answer {
        let mut lines = Vec::with_capacity(self.blocks.len());
        let mut attachments = Vec::new();
        for block in self.blocks {
            lines.push(match block {
                Block::Text(text) => text,
                Block::Media { kind, mime_type, base64 } => {
                    let mime_type = plain(&mime_type, LONGEST_TYPE);
                    let line = format!("[{kind}: {mime_type}]");
                    attachments.push(Attachment { mime_type, uri: None, base64 });
                    line
                }
                Block::Resource { uri } => format!("[resource: {}]", plain(&uri, LONGEST_URI)),
                Block::Unknown => "[unknown]".to_owned(),
            });
        }
        let text = lines.join("\n");
        if self.is_error {
            let text =
                if text.trim().is_empty() { "the tool failed without an error message" } else { &text };
            let text = &text[..text.floor_char_boundary(LONGEST_COMPLAINT)];
            return Err(Failure::new(DomainCode::ToolFailed, text));
        }
        let mut data = json!({ "content": text });
        if let Some(structured) = self.structured {
            data["structured_content"] = structured;
        }
        Ok(Success { attachments, ..Success::of(data) })
    }
}

/// Removes brackets and special characters, so that text within a marker can't end it.
fn plain(text: &str, longest: usize) -> String {
    text.chars().filter(|c| c.is_ascii_graphic() && !matches!(c, '[' | ']')).take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Block {
        Block::Text(text.to_owned())
    }

    #[test]
    fn text_blocks_are_joined_and_other_blocks_marked() {
        let image =
            Block::Media { kind: "image", mime_type: "image/png".to_owned(), base64: "aGk=".to_owned() };
        let resource = Block::Resource { uri: "file:///a]\nb".to_owned() };
        let outcome = Outcome {
            blocks: vec![text("one"), image, resource, Block::Unknown, text("two")],
            structured: Some(json!({ "n": 1 })),
            is_error: false,
        };
        let success = outcome.answer().unwrap();
        assert_eq!(
            success.data["content"],
            "one\n[image: image/png]\n[resource: file:///ab]\n[unknown]\ntwo"
        );
        assert_eq!(success.data["structured_content"], json!({ "n": 1 }));
        assert_eq!(success.attachments.len(), 1);
    }

    #[test]
    fn error_result_becomes_a_failure_with_its_text() {
        let failed = |blocks| Outcome { blocks, structured: None, is_error: true }.answer().unwrap_err();
        let failure = failed(vec![text("no such file")]);
        assert_eq!((failure.code, failure.message.as_str()), (DomainCode::ToolFailed, "no such file"));
        assert!(!failed(Vec::new()).message.is_empty());
        assert_eq!(failed(vec![text(&"ü".repeat(10_000))]).message.len(), LONGEST_COMPLAINT);
    }
}
