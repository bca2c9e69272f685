//! What is wrong with a document, said so that its author can mend it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One mistake: where it stands, what was found there, what would be right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{path}: found {found}; expected {expected}")]
pub struct Problem {
    /// JSON path from the root, such as `$.steps[2].args.cwd`.
    pub path: String,
    /// What stands there now.
    pub found: String,
    /// What would be accepted.
    pub expected: String,
}

/// Every mistake found in one document, in the order they were found; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", Summary(problems))]
pub struct Problems {
    problems: Vec<Problem>,
}

/// More problems than this are counted, not listed: a hostile document must not grow without bound in its answer.
pub const LISTED_PROBLEMS: usize = 200;

struct Summary<'a>(&'a [Problem]);

// === impl Problems ===

impl Problems {
    /// Wraps the mistakes found, or nothing when there were none.
    pub fn from_found(problems: Vec<Problem>) -> Option<Self> {
        (!problems.is_empty()).then_some(Self { problems })
    }

    /// The mistakes, in the order they were found.
    pub fn as_slice(&self) -> &[Problem] {
        &self.problems
    }

    /// Hands the mistakes over.
    pub fn into_vec(self) -> Vec<Problem> {
        self.problems
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

// === impl Summary ===

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        for (index, problem) in self.0.iter().take(SHOWN).enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}
