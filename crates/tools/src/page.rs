//! Extracts the text of a page for agents: invisible content is removed. The remaining text is still untrusted.
//!
//! ```text
//! bytes, type ─► charset ─► text ─┬─ HTML ─► tree ─► visible ─► lines ─┬─► invisible characters removed ─► PageText
//!                                 └─ any other text ───────────────────┘
//! ```
//! Pages are untrusted: nesting, attributes, duplicated elements and parsing time are bounded.

mod charset;
mod html;
mod invisible;
mod links;
mod media;
mod metadata;
mod prose;
mod tree;
mod visible;

pub use html::Html;
pub use invisible::without_invisible;
pub use links::{Link, Links};
pub use metadata::Metadata;

use media::Kind;
use std::time::{Duration, Instant};
use url::Url;

/// Part of a page to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The article if the page has one, otherwise the whole page.
    #[default]
    Auto,
    /// The article, or the page without navigation, footers and asides.
    Article,
    /// All visible text.
    FullText,
}

/// Visible text of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageText {
    /// The text.
    pub content: String,
    /// Title of the page.
    pub title: Option<String>,
    /// True if there is more text than returned.
    pub is_truncated: bool,
}

/// The page has no readable text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableError {
    /// The content is not text.
    #[error("{content_type} is not text")]
    NotText {
        /// The declared content type.
        content_type: String,
    },
    /// Parsing takes too long.
    #[error("parsing the page takes too long")]
    TooMuch,
}

/// Maximum time to parse a page.
const WITHIN: Duration = Duration::from_secs(3);

/// Extracts the text of a page fetched from a URL. This is CPU-bound: don't call it on an async worker thread.
///
/// # Errors
/// [`UnreadableError`].
pub fn read(
    (url, content_type): (&Url, Option<&str>),
    bytes: &[u8],
    (part, most_chars): (Part, usize),
) -> Result<PageText, UnreadableError> {
    let kind = media::kind(content_type, bytes)
        .ok_or_else(|| UnreadableError::NotText { content_type: media::told(content_type) })?;
    let text = charset::decoded(content_type, bytes, kind);
    let content = match kind {
        Kind::Html => {
            return Ok(Html::parse(&text)?.text(Some(url), (part, most_chars)));
        }
        Kind::Plain => text,
    };
    let (content, is_truncated) = cut(without_invisible(&content), most_chars);
    Ok(PageText { content, title: None, is_truncated })
}

/// The text on one line, without surrounding white space.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Truncates text to a number of characters. Also returns true if something was cut off.
pub fn cut(text: String, most_chars: usize) -> (String, bool) {
    match text.char_indices().nth(most_chars) {
        Some((end, _)) => (text[..end].to_owned(), true),
        None => (text, false),
    }
}

/// Plain text of an HTML fragment.
pub fn snippet(text: &str, most_chars: usize) -> String {
    let plain = tree::parse(text, Instant::now() + WITHIN).map(|tree| visible::bare(&tree));
    cut(one_line(&without_invisible(&plain.unwrap_or_default())), most_chars).0
}

#[cfg(test)]
mod tests;
