//! What is known of a tool without calling it, in three levels: enough to choose it by, to call it by, and to look things up
//! (`spec/3 §Progressive Tool Disclosure`).

use crate::guide::{self, Usage};
use belljar_contract::action::ActionType;
use belljar_contract::category::Category;
use belljar_contract::tool::{CostTier, InvalidToolNameError, ToolName, ToolScope};
use belljar_policy::action;
use serde_json::Value;
use std::time::Duration;

/// What is known of a tool.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its name.
    pub name: ToolName,
    /// What it does, in one line (level 1).
    pub summary: String,
    /// What it does, takes and answers, and how it fails (level 2).
    pub description: String,
    /// What it takes: a JSON Schema of an object.
    pub input: Value,
    /// What kind of thing it does.
    pub category: Category,
    /// What an agent does by it.
    pub action: ActionType,
    /// What a call costs, roughly.
    pub cost: CostTier,
    /// For whom it is.
    pub scope: ToolScope,
    /// What it does to what is there.
    pub effect: Effect,
    /// Whether calls leave the host.
    pub reaches_out: bool,
    /// Whether it takes an actor who is known, `confirm: true` and a reason.
    pub is_guarded: bool,
    /// Whether it is of another server.
    pub is_installed: bool,
    /// Whether its answers are passed on without a scan for secrets: approvals are shown whole.
    pub is_verbatim: bool,
    /// So long a call may take.
    pub within: Duration,
    /// An example of a call and how calls fail (level 2), for tools of the host.
    pub usage: Option<Usage>,
    /// What can be looked up about it (level 3).
    pub resources: Vec<Resource>,
}

/// The member of a schema that marks what must not be recorded.
pub const SECRET_MARK: &str = "x-belljar-secret";

/// The member of a schema that says in words what its value should be, as in `expected an absolute path`. Callers are told it where they
/// would otherwise be shown a regular expression.
pub const EXPECTED_MARK: &str = "x-belljar-expected";

/// What a call does to what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    ReadOnly,
    /// It adds, and the same again changes nothing more.
    Idempotent,
    /// It adds, each time.
    Additive,
    /// It takes away, or replaces.
    Destructive,
}

/// Something that can be looked up about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its name, among those of the tool, or an address of its own (`scheme://…`).
    pub id: String,
    /// Its type.
    pub content_type: String,
    /// All of it.
    pub content: Content,
}

/// What is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A text.
    Text(String),
    /// Bytes, in Base64.
    Base64(String),
}

/// So long a call may take, unless its tool says something else.
const WITHIN: Duration = Duration::from_secs(60);

// === impl Definition ===

impl Definition {
    /// One of that name, as [`Definition::new`] makes it.
    ///
    /// # Errors
    /// [`InvalidToolNameError`] when it is no name.
    pub fn named(
        name: &str,
        category: Category,
        summary: &str,
        input: Value,
    ) -> Result<Self, InvalidToolNameError> {
        Ok(Self::new(ToolName::parse(name)?, category, summary, input))
    }

    /// One that is read only, cheap, of this host and for either side, until something else is said.
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

    /// The description with an example and the failures.
    pub fn described(&self) -> String {
        let usage = self.usage.filter(|_| !self.is_installed);
        usage.map_or_else(|| self.description.clone(), |usage| usage.appended_to(&self.description))
    }
}

// === impl Resource ===

impl Resource {
    /// The address by which it is looked up, as one of that tool's.
    pub fn uri(&self, tool: &ToolName) -> String {
        match self.id.contains("://") {
            true => self.id.clone(),
            false => format!("belljar://tools/{tool}/{}", self.id),
        }
    }
}

// === impl Effect ===

impl Effect {
    /// Whether a call changes anything.
    pub const fn is_change(self) -> bool {
        !matches!(self, Self::ReadOnly)
    }
}
