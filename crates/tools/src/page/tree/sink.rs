//! Tree sink for the parser library, which keeps only the needed nodes.
//!
//! A handle holds a node index. Handles of dropped nodes refer to nothing, and children appended to them are dropped.

use super::{Content, Element, KEPT, KEPT_OF, LONGEST_ATTRIBUTE, MOST_NODES, Node, PAGE, Tree};
use html5ever::interface::{ElementFlags, ExpandedName, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::{Attribute, LocalName, QualName, local_name, ns};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

#[derive(Debug)]
pub(super) struct Sink {
    nodes: RefCell<Vec<Node>>,
    /// Number of dropped nodes.
    lost: Cell<usize>,
    is_cut: Cell<bool>,
    unnamed: Rc<QualName>,
}

#[derive(Debug, Clone)]
pub(super) struct Handle {
    number: usize,
    name: Rc<QualName>,
}

// === impl Sink ===

impl Default for Sink {
    fn default() -> Self {
        let unnamed = Rc::new(QualName::new(None, ns!(), local_name!("")));
        let nodes = RefCell::new(vec![Node::of(Content::Page)]);
        Self { nodes, lost: Cell::new(0), is_cut: Cell::new(false), unnamed }
    }
}

impl Sink {
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    /// Adds a node and returns its index, or the index of a dropped node if the tree is full.
    fn keep(&self, content: Content) -> usize {
        let mut nodes = self.nodes.borrow_mut();
        if nodes.len() >= MOST_NODES {
            self.is_cut.set(true);
            return self.lose();
        }
        nodes.push(Node::of(content));
        nodes.len() - 1
    }

    fn lose(&self) -> usize {
        self.lost.set(self.lost.get() + 1);
        MOST_NODES + self.lost.get()
    }

    fn unnamed(&self, number: usize) -> Handle {
        Handle { number, name: Rc::clone(&self.unnamed) }
    }

    fn detach(&self, number: usize) {
        let mut nodes = self.nodes.borrow_mut();
        let Some(node) = nodes.get_mut(number) else { return };
        let (parent, previous, next) = (node.parent.take(), node.previous.take(), node.next.take());
        if let Some(previous) = previous.and_then(|previous| nodes.get_mut(previous)) {
            previous.next = next;
        } else if let Some(parent) = parent.and_then(|parent| nodes.get_mut(parent)) {
            parent.first = next;
        }
        if let Some(next) = next.and_then(|next| nodes.get_mut(next)) {
            next.previous = previous;
        } else if let Some(parent) = parent.and_then(|parent| nodes.get_mut(parent)) {
            parent.last = previous;
        }
    }

    /// Inserts a node below a parent, before the given child or at the end.
    fn put(&self, parent: usize, before: Option<usize>, number: usize) {
        let mut nodes = self.nodes.borrow_mut();
        if number >= nodes.len() || parent >= nodes.len() {
            return;
        }
        let previous = match before {
            Some(before) => nodes[before].previous,
            None => nodes[parent].last,
        };
        let node = &mut nodes[number];
        (node.parent, node.previous, node.next) = (Some(parent), previous, before);
        match previous {
            Some(previous) => nodes[previous].next = Some(number),
            None => nodes[parent].first = Some(number),
        }
        match before {
            Some(before) => nodes[before].previous = Some(number),
            None => nodes[parent].last = Some(number),
        }
    }

    fn insert(&self, parent: usize, before: Option<usize>, child: NodeOrText<Handle>) {
        match child {
            NodeOrText::AppendNode(handle) => {
                self.detach(handle.number);
                self.put(parent, before, handle.number);
            }
            NodeOrText::AppendText(text) => self.insert_text(parent, before, &text),
        }
    }

    /// Inserts text, merging it with a preceding text node.
    fn insert_text(&self, parent: usize, before: Option<usize>, text: &str) {
        let mut nodes = self.nodes.borrow_mut();
        let previous = match before {
            Some(before) => nodes.get(before).and_then(|node| node.previous),
            None => nodes.get(parent).and_then(|node| node.last),
        };
        if let Some(Content::Text(before)) = previous.map(|previous| &mut nodes[previous].content) {
            before.push_str(text);
            return;
        }
        drop(nodes);
        let number = self.keep(Content::Text(text.to_owned()));
        self.put(parent, before, number);
    }

    fn parent_of(&self, number: usize) -> Option<usize> {
        self.nodes.borrow().get(number)?.parent
    }
}

fn kept(element: &LocalName, attributes: Vec<Attribute>) -> impl Iterator<Item = (LocalName, String)> {
    let is_kept = |attribute: &Attribute| {
        let name = &*attribute.name.local;
        KEPT.contains(&name) || KEPT_OF.contains(&(&**element, name))
    };
    let attributes: Vec<_> = attributes.into_iter().filter(is_kept).collect();
    attributes.into_iter().map(|attribute| {
        let value = &attribute.value;
        (attribute.name.local, value[..value.floor_char_boundary(LONGEST_ATTRIBUTE)].to_owned())
    })
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = Tree;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> Tree {
        Tree { nodes: self.nodes.into_inner(), is_cut: self.is_cut.get() }
    }

    // Ignored, since pages are full of parse errors.
    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        self.unnamed(PAGE)
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> Handle {
        let attributes = kept(&name.local, attributes).collect();
        let number = self.keep(Content::Element(Element { name: name.local.clone(), attributes }));
        Handle { number, name: Rc::new(name) }
    }

    fn create_comment(&self, _: StrTendril) -> Handle {
        self.unnamed(self.lose())
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        self.unnamed(self.lose())
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.insert(parent.number, None, child);
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        match self.parent_of(element.number) {
            Some(_) => self.append_before_sibling(element, child),
            None => self.append(previous, child),
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    // Template contents are not part of the page.
    fn get_template_contents(&self, _: &Handle) -> Handle {
        self.unnamed(self.lose())
    }

    fn same_node(&self, one: &Handle, other: &Handle) -> bool {
        one.number == other.number
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        if let NodeOrText::AppendNode(handle) = &child {
            self.detach(handle.number);
        }
        if let Some(parent) = self.parent_of(sibling.number) {
            self.insert(parent, Some(sibling.number), child);
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, attributes: Vec<Attribute>) {
        let mut nodes = self.nodes.borrow_mut();
        let Some(Content::Element(element)) = nodes.get_mut(target.number).map(|node| &mut node.content)
        else {
            return;
        };
        for (name, value) in kept(&target.name.local, attributes) {
            if element.attributes.iter().all(|(own, _)| *own != name) {
                element.attributes.push((name, value));
            }
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.detach(target.number);
    }

    fn reparent_children(&self, node: &Handle, parent: &Handle) {
        let first = |number: usize| self.nodes.borrow().get(number).and_then(|node| node.first);
        while let Some(child) = first(node.number) {
            self.detach(child);
            self.put(parent.number, None, child);
        }
    }
}
