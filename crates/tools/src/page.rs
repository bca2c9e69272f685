//! What a page says, as text that an agent may read: what people don't see of it is left out, and what is left is still what a stranger
//! says.
//!
//! ```text
//! bytes, type ─► charset ─► text ─┬─ HTML ─► tree ─► visible ─► lines ─┬─► nothing invisible in it ─► PageText
//!                                 └─ any other text ───────────────────┘
//! ```
//! Pages are hostile: nesting, attributes and elements that copy themselves are bounded, and so is the time that one may take.

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

/// Which part of a page is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Its article if it has one, all of it otherwise.
    #[default]
    Auto,
    /// Its article, or what is left of it without what leads elsewhere.
    Article,
    /// All that can be seen.
    FullText,
}

/// What it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageText {
    /// Its text.
    pub content: String,
    /// What it calls itself.
    pub title: Option<String>,
    /// Whether there is more.
    pub is_truncated: bool,
}

/// It has no text that can be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableError {
    /// It is no text.
    #[error("{content_type} is no text")]
    NotText {
        /// What it says to be.
        content_type: String,
    },
    /// It takes too long to be read.
    #[error("it takes too long to be read")]
    TooMuch,
}

/// So long reading one may take.
const WITHIN: Duration = Duration::from_secs(3);

/// Reads a page that was found there. It takes its time: not for a thread that others wait for.
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

/// As one line, without white space around it.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// So many characters of it; whether there were more.
pub fn cut(text: String, most_chars: usize) -> (String, bool) {
    match text.char_indices().nth(most_chars) {
        Some((end, _)) => (text[..end].to_owned(), true),
        None => (text, false),
    }
}

/// What a piece of a page says, without any of its markup.
pub fn snippet(text: &str, most_chars: usize) -> String {
    let plain = tree::parse(text, Instant::now() + WITHIN).map(|tree| visible::bare(&tree));
    cut(one_line(&without_invisible(&plain.unwrap_or_default())), most_chars).0
}

#[cfg(test)]
mod tests;
