//! Categories of tools; a tool's category decides which backend its calls run in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A tool's category (`docs/contracts/tools.md#t1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each says what it is")]
pub enum Category {
    FileSystem,
    CodeExecution,
    VersionControl,
    Web,
    Database,
    Terminal,
    Design,
    Communication,
    Analytics,
    Deployment,
    Mcp,
    Other,
    Memory,
    Ontology,
    Browser,
    ExternalData,
    Desktop,
}

/// Another name of a category, which configurations use.
pub const ALIASES: [(&str, Category); 1] = [("git", Category::VersionControl)];

// === impl Category ===

impl Category {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::FileSystem,
        Self::CodeExecution,
        Self::VersionControl,
        Self::Web,
        Self::Database,
        Self::Terminal,
        Self::Design,
        Self::Communication,
        Self::Analytics,
        Self::Deployment,
        Self::Mcp,
        Self::Other,
        Self::Memory,
        Self::Ontology,
        Self::Browser,
        Self::ExternalData,
        Self::Desktop,
    ];

    /// The name on the wire and in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FileSystem => "file_system",
            Self::CodeExecution => "code_execution",
            Self::VersionControl => "version_control",
            Self::Web => "web",
            Self::Database => "database",
            Self::Terminal => "terminal",
            Self::Design => "design",
            Self::Communication => "communication",
            Self::Analytics => "analytics",
            Self::Deployment => "deployment",
            Self::Mcp => "mcp",
            Self::Other => "other",
            Self::Memory => "memory",
            Self::Ontology => "ontology",
            Self::Browser => "browser",
            Self::ExternalData => "external_data",
            Self::Desktop => "desktop",
        }
    }

    /// The category of that name or alias, exactly as it is written here.
    pub fn named(name: &str) -> Option<Self> {
        let alias = ALIASES.into_iter().find(|(alias, _)| *alias == name);
        alias
            .map(|(_, category)| category)
            .or_else(|| Self::ALL.into_iter().find(|category| category.as_str() == name))
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn category_names_match_serialized_names_and_git_is_an_alias() {
        for category in Category::ALL {
            assert_eq!(Category::named(category.as_str()), Some(category));
            assert_eq!(serde_json::to_value(category).unwrap(), category.as_str());
        }
        assert_eq!(Category::named("git"), Some(Category::VersionControl));
        assert_eq!(Category::named("Git"), None);
    }
}
