//! Checks whether a skill may be stored: scans it for common prompt injections.
//!
//! This is a tripwire, not a barrier. It knows some English phrases and some ways of hiding text. Other wordings, languages or
//! encodings pass, and it doesn't understand a text. An attacker can evade it. An agent's permissions are decided by its
//! grants, never by its skills. The check keeps out text that was copied without being read, and reports to a well-meaning
//! author which words to change.
//!
//! ```text
//! content ─► invisible characters ─► hidden text ─► phrases, word by word ─► accepted
//!            hidden_instructions     hidden_instructions   instruction_override, secret_bypass
//! ```

mod hidden;
mod rules;
mod words;

use rules::PhraseRule;
use std::fmt;

/// Reason why a skill is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the skill {reason}: {text:?}")]
pub struct SkillRejection {
    /// Category of the finding.
    pub category: Category,
    /// Effect of the text.
    pub reason: &'static str,
    /// Text of the finding, at most [`MOST_TEXT`] bytes.
    pub text: String,
}

/// Category of a finding. The codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Text that a human reader doesn't see and a model does.
    HiddenInstructions,
    /// Text that claims priority over the agent's instructions.
    InstructionOverride,
    /// Text that could make secrets leak.
    SecretBypass,
}

/// Maximum number of bytes of a finding that are shown.
pub const MOST_TEXT: usize = 512;

/// Scans a skill.
///
/// # Errors
/// [`SkillRejection`], for the first finding: hidden text before phrases.
pub fn examine(content: &str) -> Result<(), SkillRejection> {
    hidden::check(content)?;
    match rules::first(&words::words(content)) {
        Some((rule, from, to)) => Err(rejected(rule, content.get(from..to).unwrap_or_default())),
        None => Ok(()),
    }
}

fn rejected(rule: &PhraseRule, text: &str) -> SkillRejection {
    SkillRejection::new(rule.category, rule.reason, text)
}

// === impl SkillRejection ===

impl SkillRejection {
    fn new(category: Category, reason: &'static str, text: &str) -> Self {
        Self { category, reason, text: text[..text.floor_char_boundary(MOST_TEXT)].to_owned() }
    }
}

// === impl Category ===

impl Category {
    /// Returns the code.
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
