//! Parsing of YAML into a tree with positions.
//!
//! Constructs that could make a small text large or ambiguous are rejected: anchors and aliases, tags, keys that are
//! not plain texts, a second document. The size of the text, of the tree and its depth are bounded.

use super::LARGEST_BYTES;
use super::mistake::{MistakeLog, Position, quoted};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

/// A value and where it stands.
#[derive(Debug)]
pub struct Node {
    /// Position in the file.
    pub position: Position,
    /// The way from the root.
    pub path: String,
    /// Value of the node.
    pub value: Value,
}

/// Value of a node.
#[derive(Debug)]
pub enum Value {
    /// A text without quotes, whose meaning depends on where it stands.
    Plain(String),
    /// A text in quotes, or a block of text: a text in any case.
    Text(String),
    /// A list.
    Sequence(Vec<Node>),
    /// The keys in their order, repeated ones included.
    Mapping(Vec<(Key, Node)>),
}

/// A key and where it stands.
#[derive(Debug)]
pub struct Key {
    /// Position in the file.
    pub position: Position,
    /// Text of the key.
    pub name: String,
}

/// Nodes that are being read, the innermost last.
enum OpenNode {
    Sequence(Node, Vec<Node>),
    Mapping { node: Node, members: Vec<(Key, Node)>, key: Option<Key> },
}

/// Builds the tree from what the parser tells.
struct TreeBuilder<'l> {
    open: Vec<OpenNode>,
    root: Option<Node>,
    nodes: usize,
    /// End of the file.
    end: Position,
    log: &'l mut MistakeLog,
}

/// The whole document has been given up; why has been noted.
struct ParseAbort;

const DEEPEST: usize = 16;
const MOST_NODES: usize = 10_000;

/// Parses a document; `None` if it can't be parsed, which is noted in the log.
pub fn parse(bytes: &[u8], log: &mut MistakeLog) -> Option<Node> {
    if bytes.len() > LARGEST_BYTES {
        let expected = format!("at most {LARGEST_BYTES}");
        log.note(Position::START, "the file", format!("{} bytes", bytes.len()), expected);
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let position = position_after(&bytes[..error.valid_up_to()]);
            log.note(position, "the file", "a byte that is not UTF-8", "text in UTF-8");
            return None;
        }
    };
    let mut builder = TreeBuilder { open: Vec::new(), root: None, nodes: 0, end: position_after(bytes), log };
    builder.read(text).ok()?;
    let TreeBuilder { root, log, .. } = builder;
    if root.is_none() {
        log.note(Position::START, "the file", "nothing", "a mapping with the member `sandboxing`");
    }
    root
}

fn position_after(valid: &[u8]) -> Position {
    let text = String::from_utf8_lossy(valid);
    let last = text.rsplit('\n').next().unwrap_or_default();
    Position { line: text.matches('\n').count() + 1, column: last.chars().count() + 1 }
}

// === impl TreeBuilder ===

impl TreeBuilder<'_> {
    fn read(&mut self, text: &str) -> Result<(), ParseAbort> {
        for event in Parser::new_from_str(text) {
            match event {
                Ok((event, span)) => self.take(event, span)?,
                Err(error) => {
                    let position = self.position(*error.marker());
                    let found = format!("invalid YAML: {}", error.info());
                    self.log.note(position, "the file", found, "YAML 1.2, indented with spaces");
                    return Err(ParseAbort);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), ParseAbort> {
        let position = self.position(span.start);
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                self.log.note(position, "the file", "a second document", "one document");
                Err(ParseAbort)
            }
            Event::Alias(_) => {
                let path = self.path();
                self.log.note(position, &path, "an alias", "the value itself, written out");
                // The alias is not resolved; the document is refused in any case.
                self.put(position, Value::Plain(String::new()))
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_extras(position, anchor, tag.is_some());
                let text = text.into_owned();
                let is_plain = matches!(style, ScalarStyle::Plain);
                self.put(position, if is_plain { Value::Plain(text) } else { Value::Text(text) })
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_extras(position, anchor, tag.is_some());
                let node = self.node(position, Value::Sequence(Vec::new()))?;
                self.enter(OpenNode::Sequence(node, Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_extras(position, anchor, tag.is_some());
                let node = self.node(position, Value::Mapping(Vec::new()))?;
                self.enter(OpenNode::Mapping { node, members: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.leave(),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    /// The parser takes the end of a file without a last line end for a line more.
    fn position(&self, marker: Marker) -> Position {
        Position { line: marker.line(), column: marker.col() + 1 }.min(self.end)
    }

    fn refuse_extras(&mut self, position: Position, anchor: usize, is_tagged: bool) {
        let path = self.path();
        if anchor != 0 {
            self.log.note(position, &path, "an anchor", "a value without one: aliases are not supported");
        }
        if is_tagged {
            self.log.note(position, &path, "a tag", "a value without one");
        }
    }

    /// The way to what comes next.
    fn path(&self) -> String {
        match self.open.last() {
            None => String::new(),
            Some(OpenNode::Sequence(node, items)) => format!("{}[{}]", node.path, items.len()),
            Some(OpenNode::Mapping { node, key: None, .. }) => node.path.clone(),
            Some(OpenNode::Mapping { node, key: Some(key), .. }) => below(&node.path, &key.name),
        }
    }

    fn node(&mut self, position: Position, value: Value) -> Result<Node, ParseAbort> {
        self.nodes += 1;
        let path = self.path();
        if self.nodes > MOST_NODES {
            let found = format!("more than {MOST_NODES} values");
            self.log.note(position, "the file", found, "fewer values");
            return Err(ParseAbort);
        }
        Ok(Node { position, path, value })
    }

    fn enter(&mut self, open: OpenNode) -> Result<(), ParseAbort> {
        let position = open.position();
        if self.open.len() >= DEEPEST {
            self.log.note(position, "the file", format!("more than {DEEPEST} levels"), "fewer");
            return Err(ParseAbort);
        }
        if self.expects_key() {
            let path = self.path();
            self.log.note(position, &path, "a key that is a list or a mapping", "a name");
            return Err(ParseAbort);
        }
        self.open.push(open);
        Ok(())
    }

    fn leave(&mut self) -> Result<(), ParseAbort> {
        match self.open.pop() {
            Some(OpenNode::Sequence(node, items)) => {
                self.place(Node { value: Value::Sequence(items), ..node });
            }
            Some(OpenNode::Mapping { node, members, .. }) => {
                self.place(Node { value: Value::Mapping(members), ..node });
            }
            None => {}
        }
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenNode::Mapping { key: None, .. }))
    }

    /// Takes a text, which is a key where one is expected.
    fn put(&mut self, position: Position, value: Value) -> Result<(), ParseAbort> {
        let node = self.node(position, value)?;
        if let (Some(OpenNode::Mapping { key: key @ None, .. }), Value::Plain(name) | Value::Text(name)) =
            (self.open.last_mut(), &node.value)
        {
            *key = Some(Key { position, name: name.clone() });
            return Ok(());
        }
        self.place(node);
        Ok(())
    }

    fn place(&mut self, node: Node) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenNode::Sequence(_, items)) => items.push(node),
            Some(OpenNode::Mapping { members, key, .. }) => {
                if let Some(key) = key.take() {
                    members.push((key, node));
                }
            }
        }
    }
}

// === impl OpenNode ===

impl OpenNode {
    fn position(&self) -> Position {
        match self {
            Self::Sequence(node, _) | Self::Mapping { node, .. } => node.position,
        }
    }
}

// === impl Node ===

impl Node {
    /// The node that names lead to from here, one mapping after the other, if it is there.
    pub fn member(&self, names: &[&str]) -> Option<&Self> {
        let Some((first, rest)) = names.split_first() else { return Some(self) };
        let Value::Mapping(members) = &self.value else { return None };
        members.iter().find(|(key, _)| key.name == *first)?.1.member(rest)
    }

    /// Returns a description for error messages.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Plain(text) if text.is_empty() => "nothing".to_owned(),
            Value::Plain(text) if is_harmless(text) => format!("`{text}`"),
            Value::Plain(text) | Value::Text(text) => format!("the text {}", quoted(text)),
            Value::Sequence(items) => format!("a list of {}", items.len()),
            Value::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

fn is_harmless(text: &str) -> bool {
    text.len() <= 40 && text.chars().all(|c| !c.is_control() && c != '`')
}

/// The way to a member.
pub fn below(path: &str, name: &str) -> String {
    let name = if name.len() <= 40 && !name.contains(char::is_control) { name } else { &quoted(name) };
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
