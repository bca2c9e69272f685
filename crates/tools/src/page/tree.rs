//! A page as a tree, as browsers make it. The one place that knows the library for it.
//!
//! What nobody looks for is not kept: comments, templates, attributes without a meaning here. A page of more elements than [`MOST_NODES`]
//! is cut there: some copy themselves, and a few bytes would be all memory that there is.

mod sink;

use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::{LocalName, ParseOpts, parse_document};
use sink::Sink;
use std::time::Instant;

/// The tree of a page.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    is_cut: bool,
}

/// What is in it: an element, or text.
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
    /// The page itself.
    Page,
    Element(Element),
    Text(String),
}

/// An element, with those of its attributes that are kept.
#[derive(Debug)]
pub(super) struct Element {
    name: LocalName,
    attributes: Vec<(LocalName, String)>,
}

/// A step of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'t> {
    Text(&'t str),
    /// An element, by its number, is begun.
    Enter(usize, &'t Element),
    /// It is over.
    Leave(usize, &'t Element),
}

/// So many elements and pieces of text.
pub(super) const MOST_NODES: usize = 200_000;

/// The number of the page itself.
pub(super) const PAGE: usize = 0;

/// The attributes that are kept of any element.
const KEPT: [&str; 5] = ["aria-hidden", "hidden", "href", "role", "style"];

/// Those that are kept of one: of each would be much, since some elements copy themselves.
const KEPT_OF: [(&str, &str); 7] = [
    ("a", "rel"),
    ("html", "lang"),
    ("link", "rel"),
    ("meta", "content"),
    ("meta", "name"),
    ("meta", "property"),
    ("script", "type"),
];

/// As much of an attribute.
const LONGEST_ATTRIBUTE: usize = 2 << 10;

/// It is looked at the clock after so many bytes.
const PIECE_BYTES: usize = 512;

/// The tree of a page; nothing if it isn't read until then.
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
    /// Whether there was more than is kept.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// What the page calls itself.
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

    /// Goes through it from there on, in the order of the page. What is below an element is passed over if the visitor doesn't want
    /// it. However deep it is, this takes no more of the stack.
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
            // Up to where there is something beside it.
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

    /// The value of an attribute that is kept.
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
