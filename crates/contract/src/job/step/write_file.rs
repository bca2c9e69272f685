//! `write_file`: the whole content of one file, atomically.

use crate::decode::{Decode, DecodeContext, Fields};
use crate::job::step::FilePath;
use crate::json::Node;
use crate::path::StepPath;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;

/// Arguments of `write_file`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WriteFile {
    /// The file.
    #[schemars(with = "FilePath")]
    pub path: StepPath,
    /// New content: the text itself, or base64 if `encoding` is set to that.
    #[schemars(with = "String")]
    pub content: Vec<u8>,
    /// Encoding of `content`. Default: `utf-8`.
    #[schemars(default)]
    pub encoding: ContentEncoding,
    /// Permission bits in octal, such as `"0644"`. Unset: those of the file that is replaced, else 0644.
    #[schemars(
        default,
        with = "String",
        regex(pattern = "^0?[0-7]{3}$"),
        skip_serializing_if = "Option::is_none"
    )]
    pub mode: Option<FileMode>,
    /// Create missing directories. Default: true.
    #[schemars(default = "yes")]
    pub create_parents: bool,
    /// Replace an existing file. Default: true. If false, an existing file is an error.
    #[schemars(default = "yes")]
    pub overwrite: bool,
}

/// Encoding of bytes in a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, JsonSchema)]
pub enum ContentEncoding {
    /// The string is the content.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// The string is the content in base64 (RFC 4648 §4, with padding).
    #[serde(rename = "base64")]
    Base64,
}

/// Permission bits for owner, group and others; never set-user-id, set-group-id or sticky.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMode(u16);

fn yes() -> bool {
    true
}

// === impl FileMode ===

impl FileMode {
    /// The nine bits.
    pub fn bits(self) -> u32 {
        self.0.into()
    }
}

// === Decode ===

impl Decode for WriteFile {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let path = fields.required("path").map(|FilePath(path)| path);
        let encoding = fields.or("encoding", ContentEncoding::Utf8);
        let content = match encoding {
            Some(ContentEncoding::Base64) => fields.required("content").map(|Base64(bytes)| bytes),
            _ => fields.required("content").map(String::into_bytes),
        };
        let mode = fields.optional("mode");
        let create_parents = fields.or("create_parents", true);
        let overwrite = fields.or("overwrite", true);
        fields.finish()?;
        Some(Self {
            path: path?,
            content: content?,
            encoding: encoding?,
            mode: mode?,
            create_parents: create_parents?,
            overwrite: overwrite?,
        })
    }
}

impl Decode for ContentEncoding {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str() {
            Some("utf-8") => Some(Self::Utf8),
            Some("base64") => Some(Self::Base64),
            _ => at.mistyped(node, "\"utf-8\" or \"base64\""),
        }
    }
}

impl Decode for FileMode {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let octal = |text: &str| {
            let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
            let octal = digits.len() == 3 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
            octal.then(|| u16::from_str_radix(digits, 8).ok()).flatten()
        };
        match node.as_str().and_then(octal) {
            Some(bits) => Some(Self(bits)),
            None => at.mistyped(node, "octal permission bits in a string, such as \"0644\""),
        }
    }
}

struct Base64(Vec<u8>);

impl Decode for Base64 {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        at.parsed(node, "base64 (RFC 4648 §4, with padding)", |text| STANDARD.decode(text)).map(Self)
    }
}
