//! Whether a skill may be kept: a look for what agents are usually led astray by.
//!
//! This is a tripwire, not a wall. It knows some phrases, in English, and some ways of hiding text; it takes no notice of anything
//! that is said otherwise, in another language or in a code, and it knows nothing of what a text means. Whoever wants to get
//! something past it will. What an agent may do is decided by what it is given, never by what its skills say; this keeps out what
//! was copied without being read, and tells whoever meant well which words to change.
//!
//! ```text
//! content ─► characters that nobody sees ─► text that nobody sees ─► phrases, word by word ─► kept
//!               hidden_instructions           hidden_instructions      instruction_override, secret_bypass
//! ```

mod hidden;
mod rules;
mod words;

use rules::Rule;
use std::fmt;

/// A skill that is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the skill {reason}: {text:?}")]
pub struct Rejection {
    /// What kind of thing it has in it.
    pub category: Category,
    /// What it does.
    pub reason: &'static str,
    /// The very text that this is about, of which no more than [`MOST_TEXT`] bytes are told.
    pub text: String,
}

/// What a skill must not have in it. The codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Something that whoever reads it doesn't see, and a model does.
    HiddenInstructions,
    /// Something that is to stand above what the agent was told.
    InstructionOverride,
    /// Something by which secrets get out.
    SecretBypass,
}

/// So much of the text is told.
pub const MOST_TEXT: usize = 512;

/// Looks through a skill.
///
/// # Errors
/// [`Rejection`] for the first thing that should not be there: what is hidden before what is said.
pub fn examine(content: &str) -> Result<(), Rejection> {
    hidden::check(content)?;
    match rules::first(&words::words(content)) {
        Some((rule, from, to)) => Err(rejected(rule, content.get(from..to).unwrap_or_default())),
        None => Ok(()),
    }
}

fn rejected(rule: &Rule, text: &str) -> Rejection {
    Rejection::new(rule.category, rule.reason, text)
}

// === impl Rejection ===

impl Rejection {
    fn new(category: Category, reason: &'static str, text: &str) -> Self {
        Self { category, reason, text: text[..text.floor_char_boundary(MOST_TEXT)].to_owned() }
    }
}

// === impl Category ===

impl Category {
    /// Its code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HiddenInstructions => "hidden_instructions",
            Self::InstructionOverride => "instruction_override",
            Self::SecretBypass => "secret_bypass",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
