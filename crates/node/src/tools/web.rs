//! The web for tools at a node: a run's is its own, and who comes from elsewhere has the node's for as long as a call takes.

use crate::chain;
use crate::house::House;
use crate::web::NodeWeb;
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::tool::{AgentKind, DomainCode};
use belljar_tools::answer::Failure;
use belljar_tools::builtin::web::reach::{Reach, WebHatch};
use belljar_tools::caller::Caller;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::sync::Arc;
use uuid::Uuid;

/// The web, as the tools of a node have it.
pub(super) struct NodeHatch {
    pub(super) web: Arc<NodeWeb>,
    /// By whose rules callers are judged, if by anybody's.
    pub(super) house: Option<House>,
}

/// For whom something is reached, in the audit.
#[derive(Serialize)]
struct Whose<'c> {
    kind: AgentKind,
    actor: Option<&'c str>,
    task_id: Option<&'c TaskId>,
    job_id: Option<&'c JobId>,
    project_id: Option<&'c str>,
    user_id: Option<&'c str>,
}

// === impl NodeHatch ===

impl NodeHatch {
    fn reached(&self, caller: &Caller) -> Result<Reach, Failure> {
        if caller.run_id.is_some() {
            return self.web.reaches().of(caller);
        }
        let run_id = RunId::from_uuid(Uuid::now_v7());
        let terms = self.house.as_ref().zip(caller.identity.as_ref());
        let terms = terms.map(|(house, identity)| house.compiled(identity));
        self.web.serve_call(&Whose::of(caller), (&run_id, terms.as_ref())).map_err(|error| {
            tracing::error!(error = chain(&error), "the web can't be served to a call");
            Failure::new(DomainCode::Unavailable, "the web can't be reached just now")
        })
    }
}

impl WebHatch for NodeHatch {
    fn reach<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Reach, Failure>> {
        std::future::ready(self.reached(caller)).boxed()
    }
}

// === impl Whose ===

impl<'c> Whose<'c> {
    fn of(caller: &'c Caller) -> Self {
        Self {
            kind: caller.kind,
            actor: caller.actor.as_deref(),
            task_id: caller.task_id.as_ref(),
            job_id: caller.job_id.as_ref(),
            project_id: caller.project_id.as_deref(),
            user_id: caller.user_id.as_deref(),
        }
    }
}
