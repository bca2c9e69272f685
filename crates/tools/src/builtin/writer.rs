//! Authorship of shared records, and the scopes that a caller may read and write.

use super::Clock;
use crate::answer::Failure;
use crate::caller::Caller;
use belljar_contract::id::{TaskId, UserId};
use belljar_contract::scope::{Scope, ScopeKind};
use belljar_contract::tool::{AgentKind, DomainCode};
use belljar_store::edit::Edit;

/// Author name of callers without a name.
const DEFAULT_AUTHOR: &str = "planner";

/// Returns an edit by the caller, now.
///
/// # Errors
/// [`Failure`] when the caller's name is not valid for an author.
pub fn edit(caller: &Caller, clock: &Clock) -> Result<Edit, Failure> {
    let by = caller.user_id.as_deref().or(caller.actor.as_deref()).unwrap_or(DEFAULT_AUTHOR);
    let by = UserId::parse(by).map_err(|error| Failure::internal("determine the author", &error))?;
    Ok(Edit { by, at: clock() })
}

/// Checks that a caller may name a scope, to read its records: it must be one of the caller's own. Operators and planners work
/// for all users, projects and tasks, unless they are bound to one; operators also for all groups.
pub(super) fn may_name(caller: &Caller, scope: &Scope) -> Result<(), Failure> {
    let works_for_all = matches!(caller.kind, AgentKind::Operator | AgentKind::ProjectManager);
    let is_theirs = |bound: Option<&str>, id: &str| bound.map_or(works_for_all, |bound| bound == id);
    let may = match scope {
        Scope::System => true,
        Scope::Group(id) => {
            caller.kind == AgentKind::Operator || caller.group_ids.iter().any(|group| group == id.as_str())
        }
        Scope::User(id) => is_theirs(caller.user_id.as_deref(), id.as_str()),
        Scope::Project(id) => is_theirs(caller.project_id.as_deref(), id.as_str()),
        // Task ids are compared in canonical form.
        Scope::Task(id) => is_theirs(caller.task_id.as_ref().map(TaskId::key).as_deref(), &id.key()),
    };
    match may {
        true => Ok(()),
        false => Err(Failure::new(
            DomainCode::PermissionDenied,
            format!("{scope} is not a scope of this caller; allowed are its own scopes and `system`"),
        )),
    }
}

/// Checks that a caller may write to a scope: only operators write to groups and the system, which many agents read.
pub(super) fn may_write(caller: &Caller, scope: &Scope) -> Result<(), Failure> {
    may_name(caller, scope)?;
    match scope.kind() {
        ScopeKind::System | ScopeKind::Group if caller.kind != AgentKind::Operator => Err(Failure::new(
            DomainCode::PermissionDenied,
            format!("{} agents can't write for a group or the system; only an operator can", caller.kind),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

    fn may(caller: &Caller, scope: &str) -> (bool, bool) {
        let scope = Scope::parse(scope).unwrap();
        (may_name(caller, &scope).is_ok(), may_write(caller, &scope).is_ok())
    }

    #[test]
    fn planner_may_name_unbound_scopes_and_cannot_write_for_groups() {
        let unbound = Caller::of(AgentKind::ProjectManager);
        for scope in ["user:ada", "project:mean", &format!("task:{TASK}")] {
            assert_eq!(may(&unbound, scope), (true, true), "{scope}");
        }
        assert_eq!(may(&unbound, "system"), (true, false));
        assert_eq!(may(&unbound, "group:ops"), (false, false));
        let bound = Caller { project_id: Some("mean".to_owned()), ..unbound };
        assert_eq!(may(&bound, "project:mean"), (true, true));
        for other in ["project:median", "project:Mean"] {
            assert_eq!(may(&bound, other), (false, false), "{other}");
        }
    }

    #[test]
    fn agents_may_name_own_scopes_only_and_operators_write_all() {
        let task_id = Some(TaskId::parse(TASK).unwrap());
        let sandbox = Caller { task_id, ..Caller::of(AgentKind::Sandbox) };
        assert!(may(&sandbox, &format!("task:{}", TASK.to_uppercase())).0);
        for other in ["user:ada", "project:mean", "group:ops", "task:0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f"] {
            assert!(!may(&sandbox, other).0, "{other}");
        }
        let operator = Caller::of(AgentKind::Operator);
        for scope in ["system", "group:ops", "user:ada", "project:mean"] {
            assert_eq!(may(&operator, scope), (true, true), "{scope}");
        }
    }
}
