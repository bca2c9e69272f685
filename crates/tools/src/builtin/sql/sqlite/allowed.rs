//! SQLite's authorizer: an allowlist of actions. Others are refused: attaching files, settings, own transactions, extensions.

use rusqlite::hooks::{AuthAction, Authorization};

/// Access of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads.
    Read,
    /// Changes rows.
    Change,
    /// Changes rows and the schema.
    Define,
}

/// Virtual table modules that store their data in the same database.
const MODULES: [&str; 2] = ["fts5", "rtree"];

/// Decides whether an action is allowed.
pub(super) fn authorization(access: Access, action: &AuthAction<'_>) -> Authorization {
    let is_allowed = reads(action)
        || (access != Access::Read && changes(action))
        || (access == Access::Define && defines(action));
    if is_allowed { Authorization::Allow } else { Authorization::Deny }
}

fn reads(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !function_name.eq_ignore_ascii_case("load_extension"),
        _ => false,
    }
}

fn changes(action: &AuthAction<'_>) -> bool {
    matches!(action, AuthAction::Insert { .. } | AuthAction::Update { .. } | AuthAction::Delete { .. })
}

fn defines(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::CreateTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateTrigger { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropView { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::DropVtable { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Reindex { .. } => true,
        AuthAction::CreateVtable { module_name, .. } => {
            MODULES.iter().any(|module| module_name.eq_ignore_ascii_case(module))
        }
        _ => false,
    }
}
