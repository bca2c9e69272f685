//! Action types: which there are, how much may go wrong by each, and what a pattern in a list means.
//!
//! A name that nobody has registered is refused wherever a list is read: one that is misspelt in a list of what a person has to
//! approve would let pass what it was meant to stop.

mod registry;
mod risk;

pub use registry::{ActionRegistry, CustomRow, PatternError, RegisterActionError};
pub use risk::{Weighed, weighed};

use belljar_contract::action::{ActionType, Leaf};
use belljar_contract::category::Category;

/// What tools of a category do, unless a tool says something else of itself.
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

/// The same, as an action type.
pub fn default_of(category: Category) -> ActionType {
    ActionType::BuiltIn(of_category(category))
}

#[cfg(test)]
mod tests;
