//! A page in HTML that has been read, and the questions that can be asked about it.

use super::links::{self, Links};
use super::metadata::{self, Metadata};
use super::tree::{self, PAGE, Step, Tree};
use super::visible;
use super::{PageText, Part, UnreadableError, WITHIN, cut, one_line, without_invisible};
use std::time::Instant;
use url::Url;

/// A page that has been read.
#[derive(Debug)]
pub struct Html {
    tree: Tree,
}

/// As much of a title is kept, in characters.
const LONGEST_TITLE: usize = 300;

// === impl Html ===

impl Html {
    /// Reads one. It takes its time: not for a thread that others wait for.
    ///
    /// # Errors
    /// [`UnreadableError::TooMuch`] when it takes too long.
    pub fn parse(text: &str) -> Result<Self, UnreadableError> {
        let tree = tree::parse(text, Instant::now() + WITHIN).ok_or(UnreadableError::TooMuch)?;
        Ok(Self { tree })
    }

    /// What people see of it. Addresses are told where it is known where the page was.
    pub fn text(&self, url: Option<&Url>, (part, most_chars): (Part, usize)) -> PageText {
        let (content, is_long) = cut(without_invisible(&visible::text(&self.tree, url, part)), most_chars);
        PageText { content, title: self.title(), is_truncated: is_long || self.tree.is_cut() }
    }

    /// What it calls itself.
    pub fn title(&self) -> Option<String> {
        let title = cut(without_invisible(&one_line(&self.tree.title()?)), LONGEST_TITLE).0;
        Some(title).filter(|title| !title.is_empty())
    }

    /// Where it leads, by the links that people see.
    pub fn links(&self, base: Option<&Url>) -> Links {
        links::of(&self.tree, base)
    }

    /// What it says of itself, which people don't see.
    pub fn metadata(&self, base: Option<&Url>) -> Metadata {
        metadata::of(self, &self.tree, base)
    }

    /// What its addresses are relative to: what it names itself, or where it was.
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
