//! What SQLite lets a call do. What isn't listed is refused: other files, settings, transactions of its own, extensions.

use rusqlite::hooks::{AuthAction, Authorization};

/// What a call is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// It reads.
    Read,
    /// It changes rows.
    Change,
    /// It changes rows, or what there is.
    Define,
}

/// Modules that keep what they have in this very database.
const MODULES: [&str; 2] = ["fts5", "rtree"];

/// Whether that may be done.
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
