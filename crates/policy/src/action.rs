//! Action types: the known ones, their risks, and the patterns in lists.
//!
//! An unregistered name is refused in every list: a misspelt name in a list of required approvals would allow the action that
//! it should stop.

mod registry;
mod risk;

pub use registry::{ActionRegistry, CustomRow, PatternError, RegisterActionError};
pub use risk::{Weighed, weighed};

use belljar_contract::action::{ActionType, Leaf};
use belljar_contract::category::Category;

/// Returns the default action of a category's tools.
pub const fn of_category(category: Category) -> Leaf {
    match category {
        Category::FileSystem | Category::CodeExecution | Category::Terminal | Category::Mcp => {
            Leaf::CodeWrite
        }
        Category::VersionControl => Leaf::VcsCommit,
        Category::Web => Leaf::CommsExternal,
        Category::Database => Leaf::DbQuery,
        Category::Design => Leaf::DocsWrite,
        Category::Communication => Leaf::CommsInternal,
        Category::Analytics | Category::Other => Leaf::CodeRead,
        Category::Deployment => Leaf::DeployStaging,
        Category::Memory | Category::Ontology => Leaf::MemoryRead,
        Category::Browser => Leaf::BrowserNavigate,
        Category::ExternalData => Leaf::ExternalDataRequest,
        Category::Desktop => Leaf::DesktopLaunch,
    }
}

/// Returns the default action of a category's tools, as an action type.
pub fn default_of(category: Category) -> ActionType {
    ActionType::BuiltIn(of_category(category))
}

#[cfg(test)]
mod tests;
