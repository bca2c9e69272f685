//! Action types: the known ones, their risks, and the patterns in lists.
//!
//! An unregistered name is refused in every list: a misspelt name in a list of required approvals would allow the action that
//! it should stop.

mod registry;
mod risk;

pub use registry::{ActionRegistry, PatternError, RegisterActionError, RegisteredAction};
pub use risk::{RiskRating, weighed};

use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;

/// Returns the default action of a category's tools.
pub const fn of_category(category: Category) -> BuiltInAction {
    match category {
        Category::FileSystem | Category::CodeExecution | Category::Terminal | Category::Mcp => {
            BuiltInAction::CodeWrite
        }
        Category::VersionControl => BuiltInAction::VcsCommit,
        Category::Web => BuiltInAction::CommsExternal,
        Category::Database => BuiltInAction::DbQuery,
        Category::Design => BuiltInAction::DocsWrite,
        Category::Communication => BuiltInAction::CommsInternal,
        Category::Analytics | Category::Other => BuiltInAction::CodeRead,
        Category::Deployment => BuiltInAction::DeployStaging,
        Category::Memory | Category::Ontology => BuiltInAction::MemoryRead,
        Category::Browser => BuiltInAction::BrowserNavigate,
        Category::ExternalData => BuiltInAction::ExternalDataRequest,
        Category::Desktop => BuiltInAction::DesktopLaunch,
    }
}

/// Returns the default action of a category's tools, as an action type.
pub fn default_of(category: Category) -> ActionType {
    ActionType::BuiltIn(of_category(category))
}

#[cfg(test)]
mod tests;
