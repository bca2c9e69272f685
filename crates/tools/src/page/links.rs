//! The links of a page, each once. What leads to nothing that could be asked for (`javascript:`, `data:`) is only counted.

use super::tree::{Element, PAGE, Step, Tree};
use super::visible::is_seen;
use super::{cut, one_line, without_invisible};
use serde::Serialize;
use std::collections::HashMap;
use url::{ParseError, Url};

/// Where a page leads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// In the order of the page.
    pub links: Vec<Link>,
    /// How many lead to nothing that could be asked for, or are too long.
    pub left_out: usize,
    /// Whether there are more.
    pub is_truncated: bool,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Where it leads: whole, if it is known where the page was.
    pub url: String,
    /// What is clicked on.
    pub text: String,
    /// How it is related, as `nofollow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rel: Option<String>,
}

/// Those of a page that have been found.
struct Collected<'t> {
    base: Option<&'t Url>,
    links: Links,
    /// Where each address stands among them.
    places: HashMap<String, usize>,
    bytes: usize,
}

const MOST_LINKS: usize = 1_000;

/// So many bytes are told at most, of addresses and texts together.
const MOST_BYTES: usize = 256 << 10;

/// An address, in bytes; a text and what is said of how it is related, in characters.
const LONGEST_URL: usize = 2_000;
const LONGEST_TEXT: usize = 300;
const LONGEST_REL: usize = 100;

/// The links that people see, in the order of the page.
pub(super) fn of(tree: &Tree, base: Option<&Url>) -> Links {
    let links = Links { is_truncated: tree.is_cut(), ..Links::default() };
    let mut collected = Collected { base, links, places: HashMap::new(), bytes: 0 };
    let mut open: Option<(usize, String)> = None;
    tree.walk(PAGE, &mut |step| {
        match step {
            Step::Text(text) => {
                if let Some((_, said)) = open.as_mut().filter(|(_, said)| said.len() < 4 * LONGEST_TEXT) {
                    said.push_str(&text[..text.floor_char_boundary(4 * LONGEST_TEXT)]);
                }
            }
            Step::Enter(_, element) if !is_seen(element) => return false,
            // Of one within another each has its own; it takes a page that was put together by no parser to have any.
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

// === impl Collected ===

impl Collected<'_> {
    fn take(&mut self, element: &Element, said: &str) {
        let Some(href) = element.attribute("href").map(str::trim) else { return };
        // It leads to where one is.
        if href.is_empty() || href.starts_with('#') {
            return;
        }
        let Some(url) = self.address(href) else {
            self.links.left_out += 1;
            return;
        };
        let text = cut(without_invisible(&one_line(said)), LONGEST_TEXT).0;
        if let Some(known) = self.places.get(&url).and_then(|place| self.links.links.get_mut(*place)) {
            // Of a picture and a text that lead to one place the text says more.
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

    /// Where it leads. Read as browsers do, by which what only looks like another scheme is none.
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
