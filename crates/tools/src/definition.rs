//! The definition of a tool, disclosed in three levels: to choose the tool, to call it, and to look up details
//! (`docs/contracts/tools.md#t14`).

use crate::guide::{self, Usage};
use belljar_contract::action::ActionType;
use belljar_contract::category::Category;
use belljar_contract::tool::{CostTier, InvalidToolNameError, ToolName, ToolScope};
use belljar_policy::action;
use serde_json::Value;
use std::time::Duration;

/// The definition of a tool.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its name.
    pub name: ToolName,
    /// Its purpose, in one line (level 1).
    pub summary: String,
    /// Its effects, arguments, answers and failures (level 2).
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub input: Value,
    /// Its category.
    pub category: Category,
    /// Action type of a call.
    pub action: ActionType,
    /// Approximate cost of a call.
    pub cost: CostTier,
    /// Scope of agents that may call it.
    pub scope: ToolScope,
    /// Effect of a call.
    pub effect: Effect,
    /// True if calls leave the host.
    pub reaches_out: bool,
    /// True if calls require a known actor, `confirm: true` and a reason.
    pub is_guarded: bool,
    /// True if it is another server's.
    pub is_installed: bool,
    /// True to exempt its answers from the scan for secrets: approvals are shown unaltered.
    pub is_verbatim: bool,
    /// Time limit of a call.
    pub within: Duration,
    /// An example of a call, and its failures (level 2), for tools of the host.
    pub usage: Option<Usage>,
    /// Resources about it (level 3).
    pub resources: Vec<Resource>,
}

/// Member of a schema that marks values which must not be recorded.
pub const SECRET_MARK: &str = "x-belljar-secret";

/// Member of a schema that describes its value in words, as in `expected an absolute path`. Error messages contain it in place of
/// a regular expression.
pub const EXPECTED_MARK: &str = "x-belljar-expected";

/// Effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing.
    ReadOnly,
    /// Adds something; repeating the call changes nothing more.
    Idempotent,
    /// Adds something, each time.
    Additive,
    /// Removes or replaces something.
    Destructive,
}

/// A resource about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its name among the tool's resources, or a URI of its own (`scheme://…`).
    pub id: String,
    /// Its media type.
    pub content_type: String,
    /// Its content.
    pub content: Content,
}

/// Content of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A text.
    Text(String),
    /// Bytes, in Base64.
    Base64(String),
}

/// Default time limit of a call.
const WITHIN: Duration = Duration::from_secs(60);

// === impl Definition ===

impl Definition {
    /// Returns a definition of that name, as [`Definition::new`] does.
    ///
    /// # Errors
    /// [`InvalidToolNameError`] when the name is invalid.
    pub fn named(
        name: &str,
        category: Category,
        summary: &str,
        input: Value,
    ) -> Result<Self, InvalidToolNameError> {
        Ok(Self::new(ToolName::parse(name)?, category, summary, input))
    }

    /// Returns a definition with defaults: read-only, cheap, of this host, for all scopes.
    pub fn new(name: ToolName, category: Category, summary: &str, input: Value) -> Self {
        Self {
            usage: guide::usage(name.as_str()),
            resources: guide::resources(name.as_str()),
            name,
            summary: summary.to_owned(),
            description: summary.to_owned(),
            input,
            category,
            action: action::default_of(category),
            cost: CostTier::Cheap,
            scope: ToolScope::Both,
            effect: Effect::ReadOnly,
            reaches_out: false,
            is_guarded: false,
            is_installed: false,
            is_verbatim: false,
            within: WITHIN,
        }
    }

    /// Returns the description with an example and the failures.
    pub fn described(&self) -> String {
        let usage = self.usage.filter(|_| !self.is_installed);
        usage.map_or_else(|| self.description.clone(), |usage| usage.appended_to(&self.description))
    }
}

// === impl Resource ===

impl Resource {
    /// Returns its URI, as a resource of that tool.
    pub fn uri(&self, tool: &ToolName) -> String {
        match self.id.contains("://") {
            true => self.id.clone(),
            false => format!("belljar://tools/{tool}/{}", self.id),
        }
    }
}

// === impl Effect ===

impl Effect {
    /// Returns true if a call changes anything.
    pub const fn is_change(self) -> bool {
        !matches!(self, Self::ReadOnly)
    }
}
