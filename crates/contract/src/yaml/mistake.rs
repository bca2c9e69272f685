//! Mistakes in a configuration, described so that its author can fix them.

use serde::Serialize;
use std::fmt;

/// A place in a file, as editors count: both from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in it.
    pub column: usize,
}

/// A mistake: its position, what was found there, and what is expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{position}: {path}: found {found}; expected {expected}")]
pub struct Mistake {
    /// Position in the file.
    #[serde(flatten)]
    pub position: Position,
    /// Path from the root, for example `sandboxing.docker.image`.
    pub path: String,
    /// Value that was found.
    pub found: String,
    /// Values that would be accepted.
    pub expected: String,
}

/// All mistakes of one file, in the order of their positions; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.mistakes, *.unlisted))]
pub struct Mistakes {
    mistakes: Vec<Mistake>,
    unlisted: usize,
}

/// The mistakes so far.
#[derive(Debug, Default)]
pub struct MistakeLog {
    found: Vec<Mistake>,
    unlisted: usize,
}

/// More are counted, not listed.
const MOST: usize = 200;

// === impl Mistakes ===

impl Mistakes {
    /// The mistakes.
    pub fn as_slice(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// Returns the number of mistakes that are not listed.
    pub fn unlisted(&self) -> usize {
        self.unlisted
    }
}

fn lines(mistakes: &[Mistake], unlisted: usize) -> String {
    let mut lines: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    if unlisted > 0 {
        lines.push(format!("and {unlisted} more"));
    }
    lines.join("\n")
}

// === impl Position ===

impl Position {
    /// Start of a file.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

// === impl MistakeLog ===

impl MistakeLog {
    /// Notes a mistake.
    pub fn note(
        &mut self,
        position: Position,
        path: &str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) {
        if self.found.len() >= MOST {
            self.unlisted += 1;
            return;
        }
        let (path, found, expected) = (path.to_owned(), found.into(), expected.into());
        self.found.push(Mistake { position, path, found, expected });
    }

    /// All of them, unless there are none.
    pub fn finish(self) -> Result<(), Mistakes> {
        let Self { found: mut mistakes, unlisted } = self;
        mistakes.sort_by_key(|mistake| mistake.position);
        if mistakes.is_empty() { Ok(()) } else { Err(Mistakes { mistakes, unlisted }) }
    }
}

/// A text as it is quoted in mistakes: in one line, and not at any length.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(LONGEST).collect();
    let rest = if characters.next().is_some() { "…" } else { "" };
    format!("{:?}", format!("{start}{rest}"))
}
