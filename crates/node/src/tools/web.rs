//! Web access of tools at a node: calls of a run use the run's; each remote caller has one of its own, as one run while it is
//! active.

use crate::access_rules::NodeAccessRules;
use crate::chain;
use crate::web::NodeWeb;
use belljar_contract::id::{AgentId, JobId, RunId, TaskId};
use belljar_contract::tool::{AgentKind, DomainCode};
use belljar_policy::access::compiled::SandboxAccess;
use belljar_tools::answer::Failure;
use belljar_tools::builtin::web::reach::{RunWebAccess, WebHatch};
use belljar_tools::caller::{Caller, Identity};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Web access of a node's tools.
pub(super) struct NodeHatch {
    web: Arc<NodeWeb>,
    /// Access rules of callers, if the node has any.
    house: Option<NodeAccessRules>,
    /// Remote callers. The limits of a run apply to all requests of one of them.
    callers: Mutex<HashMap<RemoteIdentity, RemoteWeb>>,
}

/// Identity of a remote caller, also in the audit log.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
struct RemoteIdentity {
    kind: AgentKind,
    agent_id: Option<AgentId>,
    actor: Option<String>,
    task_id: Option<TaskId>,
    job_id: Option<JobId>,
    project_id: Option<String>,
    user_id: Option<String>,
}

/// Web access of a remote caller.
struct RemoteWeb {
    /// Its permissions.
    terms: Option<SandboxAccess>,
    reach: RunWebAccess,
    used: Instant,
}

/// Time after which an inactive caller is removed. Hourly limits have started anew by then.
const KEPT: Duration = Duration::from_secs(3_600);

/// Maximum number of remote callers.
const MOST: usize = 1_024;

// === impl NodeHatch ===

impl NodeHatch {
    pub(super) fn new(web: &Arc<NodeWeb>, house: Option<NodeAccessRules>) -> Self {
        Self { web: Arc::clone(web), house, callers: Mutex::default() }
    }

    fn reached(&self, caller: &Caller) -> Result<RunWebAccess, Failure> {
        if caller.run_id.is_some() {
            return self.web.reaches().of(caller);
        }
        let (whose, now) = (RemoteIdentity::of(caller), Instant::now());
        let terms = self.house.as_ref().zip(caller.identity.as_ref());
        let terms = terms.map(|(house, identity)| house.web_of(identity));
        // Ignores poisoning: each change is complete.
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|_, served| now.duration_since(served.used) < KEPT);
        if let Some(served) = callers.get_mut(&whose).filter(|served| served.terms == terms) {
            served.used = now;
            return Ok(served.reach.clone());
        }
        // Access with former permissions ends.
        callers.remove(&whose);
        if callers.len() >= MOST {
            let message = "as many reach the web by this node as may: come again later";
            return Err(Failure::new(DomainCode::LimitExceeded, message));
        }
        let run_id = RunId::from_uuid(Uuid::now_v7());
        let reach = self.web.serve_caller(&whose, (&run_id, terms.as_ref())).map_err(|error| {
            tracing::error!(error = chain(&error), "the web can't be served to a caller");
            Failure::new(DomainCode::Unavailable, "the web can't be reached just now")
        })?;
        callers.insert(whose, RemoteWeb { terms, reach: reach.clone(), used: now });
        Ok(reach)
    }
}

impl WebHatch for NodeHatch {
    fn reach<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<RunWebAccess, Failure>> {
        std::future::ready(self.reached(caller)).boxed()
    }
}

// === impl RemoteIdentity ===

impl RemoteIdentity {
    fn of(caller: &Caller) -> Self {
        let agent_id = caller.identity.as_ref().and_then(|identity| match identity {
            Identity::Agent(agent) => Some(agent.clone()),
            Identity::Level(_) => None,
        });
        Self {
            kind: caller.kind,
            agent_id,
            actor: caller.actor.clone(),
            task_id: caller.task_id.clone(),
            job_id: caller.job_id.clone(),
            project_id: caller.project_id.clone(),
            user_id: caller.user_id.clone(),
        }
    }
}
