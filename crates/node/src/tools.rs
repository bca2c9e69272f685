//! The tools of a node, for agents that work on its jobs.

use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::tool::InvalidToolNameError;
use belljar_egress::api::ApiCaller;
use belljar_egress::upstream::names::NameSource;
use belljar_gateway::seat::Seat;
use belljar_gateway::{Door, Gateway};
use belljar_policy::tool::ToolGrants;
use belljar_store::audit::AuditLog;
use belljar_tools::builtin;
use belljar_tools::builtin::web::reach::Reaches;
use belljar_tools::caller::Caller;
use belljar_tools::registry::{RegisterError, Registry};
use std::sync::Arc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The tools of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeTools {
    gateway: Arc<Gateway>,
}

/// The place from which one run's agent calls. Dropping it takes it away, and gives up what was called from there.
#[derive(Debug)]
pub(crate) struct Seated {
    /// What is served at its hatch.
    pub(crate) routes: axum::Router,
    _taken: DropGuard,
}

/// There are no tools to be had.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// One has a name that is none.
    #[error(transparent)]
    Name(#[from] InvalidToolNameError),
    /// One can't be among the others.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// There can be no thread for calls of services.
    #[error("can't start what calls services")]
    Start(#[from] std::io::Error),
}

/// From so many calls on, each of a run takes its time, and one waits for the other: whoever calls without end fills no disk.
const UNPACED_CALLS: u32 = 500;

// === impl NodeTools ===

impl NodeTools {
    /// All that a node has.
    pub(crate) fn new(audit: &Arc<AuditLog>, reaches: &Reaches) -> Result<Self, ToolsError> {
        let calls = Arc::new(ApiCaller::start_with(NameSource::of_system())?);
        let web = builtin::web::tools(reaches, &calls)?;
        let tools = [builtin::help::tools()?, web, builtin::api::tools(reaches, &calls)?];
        let registry = Arc::new(Registry::new(tools.into_iter().flatten())?);
        Ok(Self { gateway: Arc::new(Gateway::new(registry, Arc::clone(audit))) })
    }

    /// A place for the agent of a run.
    pub(crate) fn seat(&self, (task, job, run): (&TaskId, &JobId, &RunId), may_reach_out: bool) -> Seated {
        let grants = ToolGrants { may_reach_out, ..ToolGrants::default() };
        let caller = Caller::in_sandbox(task.clone(), job.clone(), run.clone(), grants);
        let ended = CancellationToken::new();
        let seat = Seat::new(caller, ended.clone()).paced_after(UNPACED_CALLS);
        let routes = belljar_gateway::routes(Arc::clone(&self.gateway), Door::Hatch(seat), ended.clone());
        Seated { routes, _taken: ended.drop_guard() }
    }
}
