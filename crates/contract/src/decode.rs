//! From a [`Node`] tree to checked values, collecting every problem on the way instead of stopping at the first.
//!
//! A decoder returns `None` after it has noted why; the caller goes on with the siblings and gives up at the end.

use crate::json::{Node, quoted};
use crate::problem::{LISTED_PROBLEMS, Problem, Problems};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// A type that can be read from a node.
pub(crate) trait Decode: Sized {
    /// Reads the value, or notes in `at` why it can't be read.
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self>;
}

/// A place in the document, and the list that collects what is wrong.
pub(crate) struct At<'p, 'l> {
    path: Path<'p>,
    log: &'l mut Log,
}

/// The problems so far.
#[derive(Default)]
pub(crate) struct Log {
    found: Vec<Problem>,
    unlisted: usize,
}

/// The members of one object: each is asked for by name, what remains is unknown.
pub(crate) struct Fields<'n, 'p> {
    members: &'n [(String, Node)],
    accepted: Vec<&'static str>,
    at: At<'p, 'p>,
    sound: bool,
}

#[derive(Clone, Copy)]
enum Path<'p> {
    Root,
    Member(&'p Path<'p>, &'p str),
    Element(&'p Path<'p>, usize),
}

/// Decodes a whole document.
pub(crate) fn decode_document<T: Decode>(node: &Node) -> Result<T, Problems> {
    let mut log = Log::default();
    let decoded = T::decode(node, &mut At { path: Path::Root, log: &mut log });
    match (decoded, log.finish()) {
        (Some(value), None) => Ok(value),
        (_, Some(problems)) => Err(problems),
        (None, None) => Err(Problem {
            path: "$".to_owned(),
            found: node.describe(),
            expected: "a document that can be read".to_owned(),
        }
        .into()),
    }
}

// === impl Log ===

impl Log {
    fn is_full(&self) -> bool {
        self.found.len() >= LISTED_PROBLEMS
    }

    fn finish(self) -> Option<Problems> {
        Problems::from_found(self.found, self.unlisted)
    }
}

// === impl At ===

impl At<'_, '_> {
    /// Notes a problem here.
    pub(crate) fn refuse(&mut self, found: impl Into<String>, expected: impl Into<String>) {
        self.refuse_with(|| (found.into(), expected.into()));
    }

    /// The same for texts that are costly to make; of a problem that is only counted they are not made.
    fn refuse_with(&mut self, texts: impl FnOnce() -> (String, String)) {
        if self.log.is_full() {
            self.log.unlisted += 1;
            return;
        }
        let (found, expected) = texts();
        self.log.found.push(Problem { path: self.path.render(), found, expected });
    }

    /// Notes that the node is not what was expected, and returns nothing.
    pub(crate) fn mistyped<T>(&mut self, node: &Node, expected: impl Into<String>) -> Option<T> {
        self.refuse_with(|| (node.describe(), expected.into()));
        None
    }

    /// Reads a text and turns it into `T`, with the parser's error as the problem.
    pub(crate) fn parsed<T, E: std::fmt::Display>(
        &mut self,
        node: &Node,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let Some(text) = node.as_str() else { return self.mistyped(node, expected) };
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.refuse(format!("{} ({error})", quoted(text)), expected);
                None
            }
        }
    }

    /// The place of an element.
    pub(crate) fn element(&mut self, index: usize) -> At<'_, '_> {
        At { path: Path::Element(&self.path, index), log: self.log }
    }

    /// The place of a member.
    pub(crate) fn member<'s>(&'s mut self, name: &'s str) -> At<'s, 's> {
        At { path: Path::Member(&self.path, name), log: self.log }
    }
}

// === impl Path ===

impl Path<'_> {
    fn render(&self) -> String {
        match self {
            Self::Root => "$".to_owned(),
            Self::Element(parent, index) => format!("{}[{index}]", parent.render()),
            Self::Member(parent, name) if is_identifier(name) => format!("{}.{name}", parent.render()),
            Self::Member(parent, name) => format!("{}[{}]", parent.render(), quoted(name)),
        }
    }
}

fn is_identifier(name: &str) -> bool {
    // A longer one is cut like any other text, or each problem below it would repeat it in full.
    const LONGEST: usize = 60;
    !name.is_empty()
        && name.len() <= LONGEST
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

// === impl Fields ===

impl<'n, 'p> Fields<'n, 'p> {
    /// Opens an object; notes repeated member names.
    pub(crate) fn open(node: &'n Node, at: &'p mut At<'_, '_>) -> Option<Self> {
        let Node::Object(members) = node else { return at.mistyped(node, "an object") };
        let mut fields = Fields {
            members,
            accepted: Vec::new(),
            at: At { path: at.path, log: &mut *at.log },
            sound: true,
        };
        fields.sound = refuse_repeated_names(fields.members, &mut fields.at);
        Some(fields)
    }

    /// Whether the object has a member of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(key, _)| key == name)
    }

    /// A member that must be there.
    pub(crate) fn required<T: Decode>(&mut self, name: &'static str) -> Option<T> {
        match self.take(name) {
            Some(node) => self.decode(name, node),
            None => {
                self.sound = false;
                self.at.member(name).refuse("nothing", "this required member");
                None
            }
        }
    }

    /// A member that may be absent; `Some(None)` then.
    pub(crate) fn optional<T: Decode>(&mut self, name: &'static str) -> Option<Option<T>> {
        match self.take(name) {
            Some(node) => self.decode(name, node).map(Some),
            None => Some(None),
        }
    }

    /// A member that stands for `default` when absent.
    pub(crate) fn or<T: Decode>(&mut self, name: &'static str, default: T) -> Option<T> {
        self.optional(name).map(|value| value.unwrap_or(default))
    }

    /// One thing that has two names: the name used, or `None` for neither; both at once are refused.
    pub(crate) fn one_name(&mut self, names: [&'static str; 2]) -> Option<&'static str> {
        let [first, second] = names;
        self.accept(names);
        if self.has(first) && self.has(second) {
            self.sound = false;
            self.at
                .member(second)
                .refuse(format!("`{second}` beside `{first}`"), "one of the two: both name the same thing");
        }
        names.into_iter().find(|name| self.has(name))
    }

    /// Takes these names for known, whether or not they are read.
    pub(crate) fn accept(&mut self, names: impl IntoIterator<Item = &'static str>) {
        self.accepted.extend(names);
    }

    /// Notes problems that show only when several members are seen together; `check` tells whether it found none.
    pub(crate) fn check(&mut self, check: impl FnOnce(&mut At<'_, '_>) -> bool) {
        self.sound &= check(&mut At { path: self.at.path, log: &mut *self.at.log });
    }

    /// Notes a problem with the object as a whole.
    pub(crate) fn refuse(&mut self, found: impl Into<String>, expected: impl Into<String>) {
        self.sound = false;
        self.at.refuse(found, expected);
    }

    /// Ends the reading: whatever was not asked for is unknown. `None` when anything was wrong with the members.
    pub(crate) fn finish(mut self) -> Option<()> {
        for (name, _) in self.members {
            if !self.accepted.contains(&name.as_str()) {
                self.sound = false;
                let accepted = &self.accepted;
                let texts = || ("an unknown member".to_owned(), expected_instead_of(name, accepted));
                self.at.member(name).refuse_with(texts);
            }
        }
        self.sound.then_some(())
    }

    fn take(&mut self, name: &'static str) -> Option<&'n Node> {
        self.accepted.push(name);
        self.members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    fn decode<T: Decode>(&mut self, name: &str, node: &Node) -> Option<T> {
        let value = T::decode(node, &mut self.at.member(name));
        self.sound &= value.is_some();
        value
    }
}

fn expected_instead_of(name: &str, accepted: &[&'static str]) -> String {
    let mut known = accepted.to_vec();
    known.sort_unstable();
    known.dedup();
    let listed = known.join(", ");
    match known.iter().find(|candidate| differ_slightly(candidate, name)) {
        Some(near) => format!("`{near}`, perhaps; known here: {listed}"),
        None => format!("one of: {listed}"),
    }
}

/// The names that occur more than once and how often, in the order of their first occurrence.
fn repeated_names(members: &[(String, Node)]) -> Vec<(&str, usize)> {
    let mut counts: HashMap<&str, usize> = HashMap::with_capacity(members.len());
    for (name, _) in members {
        *counts.entry(name).or_insert(0) += 1;
    }
    if counts.len() == members.len() {
        return Vec::new();
    }
    // Taken out when first met, so that each is told once.
    let told_once = members.iter().filter_map(|(name, _)| counts.remove_entry(name.as_str()));
    told_once.filter(|(_, count)| *count > 1).collect()
}

/// One slip apart: case, separators, or a single letter more, less or other.
fn differ_slightly(known: &str, written: &str) -> bool {
    const LONGEST: usize = 60;
    if written.len() > LONGEST {
        return false;
    }
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_', ' '], "");
    let (known, written) = (plain(known), plain(written));
    if known == written {
        return true;
    }
    let same_start = known.bytes().zip(written.bytes()).take_while(|(a, b)| a == b).count();
    let (rest_known, rest_written) = (&known.as_bytes()[same_start..], &written.as_bytes()[same_start..]);
    let skip = |bytes: &[u8]| bytes.get(1..).map(<[u8]>::to_vec).unwrap_or_default();
    known.len() > 3
        && (skip(rest_known) == rest_written
            || rest_known == skip(rest_written)
            || skip(rest_known) == skip(rest_written))
}

// === Decode for the plain types ===

impl Decode for bool {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        match node {
            Node::Bool(value) => Some(*value),
            other => at.mistyped(other, "true or false"),
        }
    }
}

impl Decode for String {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        match node {
            Node::String(text) => Some(text.clone()),
            other => at.mistyped(other, "a string"),
        }
    }
}

impl Decode for Value {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        refuse_repeated_below(node, at).then(|| node.to_value())
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let Node::Array(elements) = node else { return at.mistyped(node, "an array") };
        // Every element is read, also after a bad one, so that all their problems are listed.
        let decoded: Vec<Option<T>> = elements
            .iter()
            .enumerate()
            .map(|(index, element)| T::decode(element, &mut at.element(index)))
            .collect();
        decoded.into_iter().collect()
    }
}

impl<T: Decode> Decode for BTreeMap<String, T> {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        let Node::Object(members) = node else { return at.mistyped(node, "an object") };
        let unique = refuse_repeated_names(members, at);
        let decoded: Vec<Option<(String, T)>> = members
            .iter()
            .map(|(name, value)| Some((name.clone(), T::decode(value, &mut at.member(name))?)))
            .collect();
        decoded.into_iter().collect::<Option<Self>>().filter(|_| unique)
    }
}

fn refuse_repeated_names(members: &[(String, Node)], at: &mut At<'_, '_>) -> bool {
    let mut unique = true;
    for (name, count) in repeated_names(members) {
        unique = false;
        at.member(name).refuse(format!("the member {count} times"), "each member once");
    }
    unique
}

fn refuse_repeated_below(node: &Node, at: &mut At<'_, '_>) -> bool {
    match node {
        Node::Array(elements) => elements.iter().enumerate().fold(true, |sound, (index, child)| {
            refuse_repeated_below(child, &mut at.element(index)) && sound
        }),
        Node::Object(members) => {
            let unique = refuse_repeated_names(members, at);
            members.iter().fold(unique, |sound, (name, child)| {
                refuse_repeated_below(child, &mut at.member(name)) && sound
            })
        }
        _ => true,
    }
}

/// A whole number within `range`.
pub(crate) fn whole_number(
    node: &Node,
    at: &mut At<'_, '_>,
    range: std::ops::RangeInclusive<u64>,
) -> Option<u64> {
    let number = match node {
        Node::Number(number) => number.as_u64(),
        _ => None,
    };
    match number.filter(|number| range.contains(number)) {
        Some(number) => Some(number),
        None => {
            let plainly = match node {
                Node::Number(number) if number.is_f64() => ", without fraction or exponent",
                _ => "",
            };
            let expected = format!("a whole number from {} to {}{plainly}", range.start(), range.end());
            at.mistyped(node, expected)
        }
    }
}
