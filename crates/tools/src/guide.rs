//! Documentation of the host's tools besides their schemas: an example of a call with its failures (level 2), and a guide to
//! their kind of tools (level 3) (`docs/contracts/tools.md#t14`).

mod rows;

use crate::definition::{Content, Resource};
use belljar_contract::tool::DomainCode;
use rows::{GUIDES, ROWS};
use serde_json::Value;
use std::fmt::Write;

/// An example of a call, and its failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// The arguments of the example, as JSON.
    pub example: &'static str,
    /// Error codes, and when they occur.
    pub failures: &'static [(DomainCode, &'static str)],
}

/// Documentation of a tool: its name, its usage, and the name of its guide.
struct Row {
    tool: &'static str,
    usage: Usage,
    guide: &'static str,
}

/// Id of a guide among a tool's resources.
const GUIDE: &str = "guide";

const MARKDOWN: &str = "text/markdown";

/// Headings of the example and the failures in a description.
const EXAMPLE: &str = "\n\nExample: ";
const FAILS: &str = "\n\nFails with:";

/// Returns the usage of the tool of that name, if it is one of the host's.
pub fn usage(tool: &str) -> Option<Usage> {
    row(tool).map(|row| row.usage)
}

/// Returns the resources about the tool of that name.
pub fn resources(tool: &str) -> Vec<Resource> {
    let guide = row(tool).and_then(|row| GUIDES.iter().find(|(name, _)| *name == row.guide));
    let resource = |text: &str| Resource {
        id: GUIDE.to_owned(),
        content_type: MARKDOWN.to_owned(),
        content: Content::Text(text.to_owned()),
    };
    guide.map(|(_, text)| resource(text)).into_iter().collect()
}

fn row(tool: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.tool == tool)
}

// === impl Usage ===

impl Usage {
    /// Returns the arguments of the example.
    pub fn arguments(&self) -> Value {
        serde_json::from_str(self.example).unwrap_or_default()
    }

    /// Appends the usage to a description.
    pub fn appended_to(&self, description: &str) -> String {
        let mut text = format!("{description}{EXAMPLE}{}", self.example);
        if !self.failures.is_empty() {
            text.push_str(FAILS);
        }
        for (code, when) in self.failures {
            let _ = write!(text, "\n- {}: {when}", code.as_str());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_guide_row_has_a_unique_tool_example_failures_and_guide() {
        let names: BTreeSet<_> = ROWS.iter().map(|row| row.tool).collect();
        assert_eq!(names.len(), ROWS.len());
        for Row { tool, usage, guide } in ROWS {
            let example: Value = serde_json::from_str(usage.example).unwrap();
            assert!(example.is_object() && !usage.failures.is_empty(), "{tool}");
            assert!(GUIDES.iter().any(|(name, text)| name == guide && !text.is_empty()), "{tool}: {guide}");
            assert_eq!(resources(tool).len(), 1);
        }
        let used: BTreeSet<_> = ROWS.iter().map(|row| row.guide).collect();
        assert_eq!(used.len(), GUIDES.len(), "no guide is about nothing");
        assert_eq!((usage("mcp_far_look"), resources("mcp_far_look").len()), (None, 0));
    }
}
