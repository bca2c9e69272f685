//! Who writes what others read, and whether they may.

use super::Clock;
use crate::answer::Failure;
use crate::caller::Caller;
use belljar_contract::id::UserId;
use belljar_contract::scope::{Scope, ScopeKind};
use belljar_contract::tool::{AgentKind, DomainCode};
use belljar_store::edit::Edit;

/// Who writes where nobody has a name.
const NOBODY: &str = "planner";

/// An edit of the caller's, now.
///
/// # Errors
/// [`Failure`] when the caller has a name under which nothing can be written.
pub fn edit(caller: &Caller, clock: &Clock) -> Result<Edit, Failure> {
    let by = caller.user_id.as_deref().or(caller.actor.as_deref()).unwrap_or(NOBODY);
    let by = UserId::parse(by).map_err(|error| Failure::internal("say who writes", &error))?;
    Ok(Edit { by, at: clock() })
}

/// What many read is written by whoever owns the machine, and by no agent.
pub(super) fn may_write(caller: &Caller, scope: &Scope) -> Result<(), Failure> {
    match scope.kind() {
        ScopeKind::System | ScopeKind::Group if caller.kind != AgentKind::Operator => Err(Failure::new(
            DomainCode::PermissionDenied,
            format!("{} agents write nothing for a group or the system", caller.kind),
        )),
        _ => Ok(()),
    }
}
