//! Links of a page, without duplicates. Links that can't be fetched (`javascript:`, `data:`) are only counted.

use super::tree::{Element, PAGE, Step, Tree};
use super::visible::is_seen;
use super::{cut, one_line, without_invisible};
use serde::Serialize;
use std::collections::HashMap;
use url::{ParseError, Url};

/// Links of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// In document order.
    pub links: Vec<Link>,
    /// Number of links that can't be fetched or are too long.
    pub left_out: usize,
    /// True if there are more links.
    pub is_truncated: bool,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Target; absolute if the URL of the page is known.
    pub url: String,
    /// Link text.
    pub text: String,
    /// Value of the `rel` attribute, for example `nofollow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rel: Option<String>,
}

/// Links found so far.
struct LinkCollector<'t> {
    base: Option<&'t Url>,
    links: Links,
    /// Index of each address in `links`.
    places: HashMap<String, usize>,
    bytes: usize,
}

const MOST_LINKS: usize = 1_000;

/// Maximum total size of addresses and texts, in bytes.
const MOST_BYTES: usize = 256 << 10;

/// Maximum length of an address in bytes, and of a text and a `rel` value in characters.
const LONGEST_URL: usize = 2_000;
const LONGEST_TEXT: usize = 300;
const LONGEST_REL: usize = 100;

/// Visible links, in document order.
pub(super) fn of(tree: &Tree, base: Option<&Url>) -> Links {
    let links = Links { is_truncated: tree.is_cut(), ..Links::default() };
    let mut collected = LinkCollector { base, links, places: HashMap::new(), bytes: 0 };
    let mut open: Option<(usize, String)> = None;
    tree.walk(PAGE, &mut |step| {
        match step {
            Step::Text(text) => {
                if let Some((_, said)) = open.as_mut().filter(|(_, said)| said.len() < 4 * LONGEST_TEXT) {
                    said.push_str(&text[..text.floor_char_boundary(4 * LONGEST_TEXT)]);
                }
            }
            Step::Enter(_, element) if !is_seen(element) => return false,
            // Each nested link has its own text. Nested links exist only in pages that were not built by a parser.
            Step::Enter(number, element) if element.name() == "a" => open = Some((number, String::new())),
            Step::Enter(..) => {}
            Step::Leave(number, element) => {
                if let Some((_, said)) = open.take_if(|(open, _)| *open == number) {
                    collected.take(element, &said);
                }
            }
        }
        true
    });
    collected.links
}

// === impl LinkCollector ===

impl LinkCollector<'_> {
    fn take(&mut self, element: &Element, said: &str) {
        let Some(href) = element.attribute("href").map(str::trim) else { return };
        // The link refers to the page itself.
        if href.is_empty() || href.starts_with('#') {
            return;
        }
        let Some(url) = self.address(href) else {
            self.links.left_out += 1;
            return;
        };
        let text = cut(without_invisible(&one_line(said)), LONGEST_TEXT).0;
        if let Some(known) = self.places.get(&url).and_then(|place| self.links.links.get_mut(*place)) {
            // Of a picture and a text with the same target, the text is kept.
            if known.text.is_empty() {
                self.bytes += text.len();
                known.text = text;
            }
            return;
        }
        let rel = element.attribute("rel").map(|rel| cut(without_invisible(&one_line(rel)), LONGEST_REL).0);
        let rel = rel.filter(|rel| !rel.is_empty());
        let bytes = url.len() + text.len() + rel.as_ref().map_or(0, String::len);
        if self.links.links.len() >= MOST_LINKS || self.bytes + bytes > MOST_BYTES {
            self.links.is_truncated = true;
            return;
        }
        self.bytes += bytes;
        self.places.insert(url.clone(), self.links.links.len());
        self.links.links.push(Link { url, text, rel });
    }

    /// Resolves the target the way browsers do, so that disguised schemes are recognized.
    fn address(&self, href: &str) -> Option<String> {
        let url = match self.base {
            Some(base) => base.join(href),
            None => Url::parse(href),
        };
        let address = match url {
            Ok(url) if matches!(url.scheme(), "http" | "https" | "mailto" | "tel") => url.into(),
            Err(ParseError::RelativeUrlWithoutBase) => without_invisible(href),
            Ok(_) | Err(_) => return None,
        };
        (address.len() <= LONGEST_URL).then_some(address)
    }
}
