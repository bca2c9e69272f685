//! Problems in a document, described so that its author can fix them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A problem: its position, what was found there, and what is expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{path}: found {found}; expected {expected}")]
pub struct Problem {
    /// JSON path from the root, such as `$.steps[2].args.cwd`.
    pub path: String,
    /// Value that was found.
    pub found: String,
    /// Values that would be accepted.
    pub expected: String,
}

/// All problems found in one document, in the order in which they were found; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", Summary(self))]
pub struct Problems {
    problems: Vec<Problem>,
    unlisted: usize,
}

/// More problems than this are counted, not listed: a hostile document must not grow without bound in its answer.
pub const LISTED_PROBLEMS: usize = 200;

struct Summary<'a>(&'a Problems);

// === impl Problems ===

impl Problems {
    /// Wraps the problems found and the number of those that are not listed; `None` if there were none.
    pub(crate) fn from_found(problems: Vec<Problem>, unlisted: usize) -> Option<Self> {
        (!problems.is_empty()).then_some(Self { problems, unlisted })
    }

    /// The mistakes, in the order they were found, at most [`LISTED_PROBLEMS`].
    pub fn as_slice(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the problems; a last entry has the number of those that are not listed, if any.
    pub fn into_vec(self) -> Vec<Problem> {
        let mut problems = self.problems;
        if self.unlisted > 0 {
            problems.push(Problem {
                path: "$".to_owned(),
                found: format!("{} more problems", self.unlisted),
                expected: "none".to_owned(),
            });
        }
        problems
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem], unlisted: 0 }
    }
}

// === impl Summary ===

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        let Problems { problems, unlisted } = self.0;
        for (index, problem) in problems.iter().take(SHOWN).enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        match problems.len().saturating_sub(SHOWN) + unlisted {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}
