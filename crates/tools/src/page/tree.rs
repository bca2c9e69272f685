//! A page as a tree, parsed like browsers do. The only module that depends on the parser library.
//!
//! Comments, templates and unused attributes are not kept. A page with more than [`MOST_NODES`] nodes is cut off, because some
//! elements are duplicated by the parser and a few bytes could exhaust memory.

mod sink;

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{LocalName, ParseOpts, parse_document};
use sink::Sink;
use std::time::Instant;

/// Tree of a page.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    is_cut: bool,
}

/// Content of a node: an element or text.
#[derive(Debug)]
pub(super) struct Node {
    parent: Option<usize>,
    first: Option<usize>,
    last: Option<usize>,
    previous: Option<usize>,
    next: Option<usize>,
    content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// The document itself.
    Page,
    Element(Element),
    Text(String),
}

/// An element, with the kept attributes.
#[derive(Debug)]
pub(super) struct Element {
    name: LocalName,
    attributes: Vec<(LocalName, String)>,
}

/// A step of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'t> {
    Text(&'t str),
    /// Start of an element, with its index.
    Enter(usize, &'t Element),
    /// End of an element.
    Leave(usize, &'t Element),
}

/// Maximum number of elements and text nodes.
pub(super) const MOST_NODES: usize = 200_000;

/// Index of the document node.
pub(super) const PAGE: usize = 0;

/// Attributes kept for any element.
const KEPT: [&str; 5] = ["aria-hidden", "hidden", "href", "role", "style"];

/// Attributes kept for particular elements. Keeping them for all would use too much memory, as some elements are duplicated.
const KEPT_OF: [(&str, &str); 7] = [
    ("a", "rel"),
    ("html", "lang"),
    ("link", "rel"),
    ("meta", "content"),
    ("meta", "name"),
    ("meta", "property"),
    ("script", "type"),
];

/// Maximum length of an attribute.
const LONGEST_ATTRIBUTE: usize = 2 << 10;

/// The time limit is checked after this number of bytes.
const PIECE_BYTES: usize = 512;

/// Parses a page; `None` if the deadline passes.
pub(super) fn parse(text: &str, until: Instant) -> Option<Tree> {
    let mut parser = parse_document(Sink::default(), ParseOpts::default());
    let mut rest = text;
    while !rest.is_empty() && !parser.tokenizer.sink.sink.is_cut() {
        if Instant::now() > until {
            return None;
        }
        let (piece, more) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES.min(rest.len())));
        parser.process(StrTendril::from_slice(piece));
        rest = more;
    }
    Some(parser.finish())
}

// === impl Tree ===

impl Tree {
    /// True if nodes were cut off.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Title of the page.
    pub(super) fn title(&self) -> Option<String> {
        let mut found = None;
        self.walk(PAGE, &mut |step| {
            if let Step::Enter(number, element) = step
                && found.is_none()
                && element.name() == "title"
            {
                found = Some(number);
            }
            true
        });
        let mut title = String::new();
        self.walk(found?, &mut |step| {
            if let Step::Text(text) = step {
                title.push_str(text);
            }
            true
        });
        Some(title)
    }

    /// Walks the tree from a node in document order. Descendants of an element are skipped if the visitor returns false. Uses
    /// constant stack space.
    pub(super) fn walk<'t>(&'t self, from: usize, visit: &mut impl FnMut(Step<'t>) -> bool) {
        let mut at = from;
        loop {
            let Some(node) = self.nodes.get(at) else { return };
            let is_wanted = match &node.content {
                Content::Page => true,
                Content::Element(element) => visit(Step::Enter(at, element)),
                Content::Text(text) => visit(Step::Text(text)),
            };
            if let Some(first) = node.first.filter(|_| is_wanted) {
                at = first;
                continue;
            }
            if is_wanted {
                self.leave(at, visit);
            }
            // Go up to the next node with a sibling.
            loop {
                let Some(node) = self.nodes.get(at).filter(|_| at != from) else { return };
                if let Some(next) = node.next {
                    at = next;
                    break;
                }
                let Some(parent) = node.parent else { return };
                at = parent;
                self.leave(at, visit);
            }
        }
    }

    fn leave<'t>(&'t self, at: usize, visit: &mut impl FnMut(Step<'t>) -> bool) {
        if let Some(Content::Element(element)) = self.nodes.get(at).map(|node| &node.content) {
            visit(Step::Leave(at, element));
        }
    }
}

// === impl Element ===

impl Element {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Value of a kept attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| &**own == name).map(|(_, value)| value.as_str())
    }
}

// === impl Node ===

impl Node {
    fn of(content: Content) -> Self {
        Self { parent: None, first: None, last: None, previous: None, next: None, content }
    }
}
