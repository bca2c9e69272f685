//! Whose a sandbox is that is kept between calls.
//!
//! What a sandbox has is part of whose it is: a caller who may do less than before gets another one at once, and never the one
//! that was made when it could do more.

use crate::caller::Caller;
use belljar_contract::id::{RunId, TaskId};
use belljar_sandbox::backend::Wanted;
use belljar_sandbox::config::Strategy;
use belljar_sandbox::correlation::{Correlation, CorrelationId};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// So much of a digest tells one from another.
const SHOWN_BYTES: usize = 16;

/// Whose the sandbox for that caller is; nothing if it is nobody's, and so is for one call.
pub(super) fn owner(strategy: Strategy, caller: &Caller, wanted: &Wanted) -> Option<CorrelationId> {
    let whose = whose(strategy, caller)?;
    // What can't be written down can't be told from anything else.
    let wanted = serde_json::to_vec(wanted).ok()?;
    let name = format!("{}.{}", digest(whose.as_bytes()), digest(&wanted));
    CorrelationId::parse(&name).ok()
}

/// All that tells the owner from others: the same name for another user is another one.
fn whose(strategy: Strategy, caller: &Caller) -> Option<String> {
    let Caller { task_id, run_id, actor, user_id, project_id, .. } = caller;
    let name = match strategy {
        Strategy::PerCall => return None,
        Strategy::PerTask => json!({ "task": task_id.as_ref()? }),
        // An agent at work on a job is that attempt at it, and no other one.
        Strategy::PerAgent => match (actor, run_id) {
            (Some(actor), run_id) => json!({ "actor": actor, "run": run_id }),
            (None, Some(run_id)) => json!({ "run": run_id }),
            (None, None) => return None,
        },
    };
    Some(json!([name, user_id, project_id]).to_string())
}

/// For whom a sandbox is, as events tell it.
pub(super) fn correlation(caller: &Caller) -> Correlation {
    let id = |text: Option<&str>| text.and_then(|text| CorrelationId::parse(text).ok());
    Correlation {
        agent_id: id(caller.actor.as_deref()),
        session_id: id(caller.run_id.as_ref().map(RunId::as_str)),
        task_id: id(caller.task_id.as_ref().map(TaskId::as_str)),
        request_id: None,
    }
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().take(SHOWN_BYTES).fold(String::new(), |mut text, byte| {
        // A text takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::id::JobId;
    use belljar_contract::isolation::Required;
    use belljar_policy::tool::ToolGrants;
    use belljar_sandbox::limits::Limits;
    use belljar_sandbox::run::WorkspaceChoice;
    use std::collections::BTreeMap;

    const ID: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
    const OTHER: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f";

    fn caller(task: &str, run: &str) -> Caller {
        let (task, run) = (TaskId::parse(task).unwrap(), RunId::parse(run).unwrap());
        Caller::in_sandbox(task, JobId::parse(ID).unwrap(), run, ToolGrants::default())
    }

    fn wanted(variable: &str) -> Wanted {
        Wanted {
            workspace: WorkspaceChoice::Empty,
            lent: Vec::new(),
            env: BTreeMap::from([("A".to_owned(), variable.to_owned())]),
            limits: Limits::default(),
            required: Required::default(),
            hatches: Vec::new(),
            home: BTreeMap::new(),
            programs: None,
        }
    }

    #[test]
    fn what_a_sandbox_has_and_whose_it_is_tell_it_from_others() {
        let of = |strategy, caller: &Caller, variable| owner(strategy, caller, &wanted(variable));
        let agent = |caller: &Caller, variable| of(Strategy::PerAgent, caller, variable).unwrap();
        let one = caller(ID, ID);
        assert_eq!(agent(&one, "a"), agent(&one.clone(), "a"));
        assert_ne!(agent(&one, "a"), agent(&one, "b"));
        assert_ne!(agent(&one, "a"), agent(&caller(ID, OTHER), "a"));
        let of_user = |user: &str| Caller { user_id: Some(user.to_owned()), ..one.clone() };
        assert_ne!(agent(&of_user("a"), "a"), agent(&of_user("b"), "a"));
        let task = |caller: &Caller| of(Strategy::PerTask, caller, "a").unwrap();
        assert_eq!(task(&one), task(&caller(ID, OTHER)));
        assert_ne!(task(&one), task(&caller(OTHER, ID)));
        assert_eq!(of(Strategy::PerCall, &one, "a"), None);
        assert_eq!(of(Strategy::PerAgent, &Caller::of(one.kind), "a"), None);
    }
}
