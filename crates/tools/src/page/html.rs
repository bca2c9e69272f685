//! A parsed HTML page and its queries.

use super::links::{self, Links};
use super::metadata::{self, Metadata};
use super::tree::{self, PAGE, Step, Tree};
use super::visible;
use super::{PageText, Part, UnreadableError, WITHIN, cut, one_line, without_invisible};
use std::time::Instant;
use url::Url;

/// A parsed HTML page.
#[derive(Debug)]
pub struct Html {
    tree: Tree,
}

/// Maximum length of a title, in characters.
const LONGEST_TITLE: usize = 300;

// === impl Html ===

impl Html {
    /// Parses a page. This is CPU-bound: don't call it on an async worker thread.
    ///
    /// # Errors
    /// [`UnreadableError::TooMuch`] when it takes too long.
    pub fn parse(text: &str) -> Result<Self, UnreadableError> {
        let tree = tree::parse(text, Instant::now() + WITHIN).ok_or(UnreadableError::TooMuch)?;
        Ok(Self { tree })
    }

    /// Visible text. Link addresses are included only if the URL of the page is known.
    pub fn text(&self, url: Option<&Url>, (part, most_chars): (Part, usize)) -> PageText {
        let (content, is_long) = cut(without_invisible(&visible::text(&self.tree, url, part)), most_chars);
        PageText { content, title: self.title(), is_truncated: is_long || self.tree.is_cut() }
    }

    /// Title of the page.
    pub fn title(&self) -> Option<String> {
        let title = cut(without_invisible(&one_line(&self.tree.title()?)), LONGEST_TITLE).0;
        Some(title).filter(|title| !title.is_empty())
    }

    /// Visible links.
    pub fn links(&self, base: Option<&Url>) -> Links {
        links::of(&self.tree, base)
    }

    /// Metadata of the head, which is not displayed.
    pub fn metadata(&self, base: Option<&Url>) -> Metadata {
        metadata::of(self, &self.tree, base)
    }

    /// Base URL for relative addresses: the `base` element, otherwise the URL of the page.
    pub fn base(&self, url: Option<&Url>) -> Option<Url> {
        let mut named = None;
        self.tree.walk(PAGE, &mut |step| {
            if let Step::Enter(_, element) = step
                && named.is_none()
                && element.name() == "base"
            {
                named = element.attribute("href");
            }
            true
        });
        let named = named.and_then(|href| match url {
            Some(url) => url.join(href).ok(),
            None => Url::parse(href).ok(),
        });
        named.filter(|named| matches!(named.scheme(), "http" | "https")).or_else(|| url.cloned())
    }
}
