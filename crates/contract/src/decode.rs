//! From a [`Node`] tree to checked values, collecting every problem on the way instead of stopping at the first.
//!
//! A decoder returns `None` after it has noted why; the caller goes on with the siblings and gives up at the end.

mod fields;
mod plain;

pub(crate) use fields::Fields;
pub(crate) use plain::whole_number;

use crate::json::{Node, quoted};
use crate::problem::{LISTED_PROBLEMS, Problem, Problems};

/// A type that can be read from a node.
pub(crate) trait Decode: Sized {
    /// Reads the value, or notes in `at` why it can't be read.
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self>;
}

/// A position in the document, and the log that collects problems.
pub(crate) struct DecodeContext<'p, 'l> {
    path: DocumentPath<'p>,
    log: &'l mut ProblemLog,
}

/// The problems so far.
#[derive(Default)]
pub(crate) struct ProblemLog {
    found: Vec<Problem>,
    unlisted: usize,
}

#[derive(Clone, Copy)]
enum DocumentPath<'p> {
    Root,
    Member(&'p DocumentPath<'p>, &'p str),
    Element(&'p DocumentPath<'p>, usize),
}

/// Decodes a whole document.
pub(crate) fn decode_document<T: Decode>(node: &Node) -> Result<T, Problems> {
    let mut log = ProblemLog::default();
    let decoded = T::decode(node, &mut DecodeContext { path: DocumentPath::Root, log: &mut log });
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

// === impl ProblemLog ===

impl ProblemLog {
    fn is_full(&self) -> bool {
        self.found.len() >= LISTED_PROBLEMS
    }

    fn finish(self) -> Option<Problems> {
        Problems::from_found(self.found, self.unlisted)
    }
}

// === impl DecodeContext ===

impl DecodeContext<'_, '_> {
    /// Notes a problem here.
    pub(crate) fn refuse(&mut self, found: impl Into<String>, expected: impl Into<String>) {
        self.refuse_with(|| (found.into(), expected.into()));
    }

    /// Notes a problem with texts that are expensive to make. They are not made if the problem is only counted.
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
    pub(crate) fn element(&mut self, index: usize) -> DecodeContext<'_, '_> {
        DecodeContext { path: DocumentPath::Element(&self.path, index), log: self.log }
    }

    /// The place of a member.
    pub(crate) fn member<'s>(&'s mut self, name: &'s str) -> DecodeContext<'s, 's> {
        DecodeContext { path: DocumentPath::Member(&self.path, name), log: self.log }
    }
}

// === impl DocumentPath ===

impl DocumentPath<'_> {
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
