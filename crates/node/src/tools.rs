//! The tools of a node, for agents that work on its jobs and for planners.

mod bridged;
mod configured;
mod git;
mod planner;
mod projects;
mod remote;
mod web;

pub(crate) use remote::RemoteSlots;

pub(crate) use planner::follow_images;

use crate::access_rules::NodeAccessRules;
use crate::api::Api;
use crate::approvals::StoredApprover;
use crate::daemon::WallClock;
use crate::web::NodeWeb;
use belljar_contract::id::{AgentId, GroupId, JobId, ProjectId, RunId, TaskId, UserId};
use belljar_contract::tool::{AgentKind, InvalidToolNameError, ToolName, ToolScope};
use belljar_egress::api::ApiCaller;
use belljar_egress::known_secrets::ProcessSecrets;
use belljar_egress::upstream::names::NameSource;
use belljar_gateway::access::Access;
use belljar_gateway::call::CallOutcome;
use belljar_gateway::caller_slot::CallerSlot;
use belljar_gateway::{EndpointKind, Gateway, bearer};
use belljar_policy::approval::TimeoutPolicy;
use belljar_policy::git::GitRules;
use belljar_policy::tool::ToolGrants;
use belljar_sandbox::run::RunWorkspace;
use belljar_sandbox::state::StateDirectory;
use belljar_store::approvals::Approvals;
use belljar_store::artifacts::Artifacts;
use belljar_store::audit::{AuditError, AuditLog, Event};
use belljar_store::database::Database;
use belljar_store::jobs::Jobs;
use belljar_store::memory::{self, Memory};
use belljar_store::preferences::{self, Preferences};
use belljar_store::skills::Skills;
use belljar_store::task_artifacts::{self, TaskArtifacts};
use belljar_tools::builtin;
use belljar_tools::builtin::artifact::ArtifactStore;
use belljar_tools::builtin::configured::ConfiguredError;
use belljar_tools::builtin::configured::config::ToolsConfig;
use belljar_tools::builtin::git::hatch::GitHatch;
use belljar_tools::builtin::git::host::{GitHostSettings, GitWorkspaces, HostGitHatch};
use belljar_tools::builtin::memory::NoteStore;
use belljar_tools::builtin::preference::PreferenceStore;
use belljar_tools::builtin::skills::SkillStore;
use belljar_tools::builtin::web::reach::WebHatch;
use belljar_tools::caller::{Caller, Identity};
use belljar_tools::registry::{RegisterError, Registry};
use belljar_tools::{Arguments, Tool};
use git::{JobWorkspaceEntry, JobWorkspaces};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

/// The tools of a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeTools {
    gateway: Arc<Gateway>,
    /// Artifacts of tasks.
    files: TaskArtifacts,
    /// Approvals of calls.
    approvals: Approvals,
    audit: Arc<AuditLog>,
    /// Access rules of calls; `None` if the node has none.
    house: Option<NodeAccessRules>,
    /// Workspaces of running jobs, for git.
    workspaces: Arc<JobWorkspaces>,
}

/// The caller slot of one run's agent. Dropping it removes the slot, and cancels its calls.
#[derive(Debug)]
pub(crate) struct AgentSlot {
    /// Routes served on the run's tool hatch.
    pub(crate) routes: axum::Router,
    // Dropped first: no call may find the workspace of a run that has ended.
    _workspace: Option<JobWorkspaceEntry>,
    _taken: DropGuard,
}

/// Owners of a run, and whether its calls may leave the host.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunOwnership {
    pub(crate) project_id: Option<ProjectId>,
    pub(crate) user_id: Option<UserId>,
    pub(crate) group_ids: Vec<GroupId>,
    /// The agent that the run is done as.
    pub(crate) agent_id: Option<AgentId>,
    pub(crate) may_reach_out: bool,
}

/// Dependencies of a node's tools.
pub(crate) struct ToolDependencies<'a> {
    pub(crate) database: &'a Database,
    pub(crate) jobs: &'a Jobs,
    pub(crate) artifacts: &'a Artifacts,
    pub(crate) clock: &'a WallClock,
    pub(crate) audit: &'a Arc<AuditLog>,
    pub(crate) web: &'a Arc<NodeWeb>,
    /// Timeouts of approvals.
    pub(crate) timeout: &'a TimeoutPolicy,
    pub(crate) config: &'a ToolsConfig,
    /// Remotes that agents may clone and push, and hosts that git may connect to.
    pub(crate) git: &'a GitRules,
    pub(crate) state: &'a StateDirectory,
    pub(crate) house: Option<NodeAccessRules>,
}

/// Reasons why a node's tools can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    /// A tool has an invalid name.
    #[error(transparent)]
    Name(#[from] InvalidToolNameError),
    /// A tool can't be registered, as with a duplicate name.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The configured tools can't be set up.
    #[error(transparent)]
    Configured(#[from] ConfiguredError),
    /// The thread for calls of services can't be started.
    #[error("can't start what calls services")]
    Start(#[from] std::io::Error),
}

/// Number of calls of a run from which on they are throttled and served one after the other, so that endless calls can't fill
/// the disk.
const UNPACED_CALLS: u32 = 500;

/// Maximum number of concurrent calls that use the host's git. Calls of one run wait for each other.
const GIT_AT_ONCE: usize = 4;

/// Path at which remote callers call tools.
const REMOTE_PATH: &str = "/mcp";

/// Actor name of the node's operator in records.
const OPERATOR: &str = "operator";

/// Source name of the node's own tools that are installed later.
const OF_NODE: &str = "node";

// === impl NodeTools ===

impl NodeTools {
    /// Returns all tools of a node.
    pub(crate) fn new(parts: &ToolDependencies<'_>) -> Result<Self, ToolsError> {
        let files = TaskArtifacts::new(parts.database.clone(), task_artifacts::TaskArtifactLimits::default());
        let workspaces = JobWorkspaces::new(parts.state.clone());
        let mut all = own(parts, &files)?;
        all.extend(git_tools(parts, &workspaces)?);
        let registry = Arc::new(Registry::new(projects::kept_apart(all, parts.jobs))?);
        let approvals = Approvals::new(parts.database.clone(), Arc::clone(parts.audit));
        let approver = StoredApprover::new(approvals.clone(), parts.timeout.clone(), Arc::clone(parts.clock));
        let gateway = Gateway::new(registry, Arc::clone(parts.audit)).knowing(Arc::new(ProcessSecrets));
        let gateway = gateway.asking(Arc::new(approver))?;
        let house = parts.house.clone();
        let gateway = match &house {
            Some(house) => gateway.judging_by(Arc::clone(house.access()) as Arc<dyn Access>),
            None => gateway,
        };
        let audit = Arc::clone(parts.audit);
        Ok(Self { gateway: Arc::new(gateway), files, approvals, audit, house, workspaces })
    }

    /// Disables these tools for all callers.
    pub(crate) fn disable(&self, names: &[ToolName]) {
        self.gateway.disable(names.iter().cloned());
    }

    /// Restricts these tools to agents of these scopes.
    pub(crate) fn rescope(&self, scopes: &BTreeMap<ToolName, ToolScope>) {
        self.gateway.rescope(scopes.iter().map(|(name, scope)| (name.clone(), *scope)));
    }

    /// Returns the artifacts of tasks.
    pub(crate) fn files(&self) -> &TaskArtifacts {
        &self.files
    }

    /// Returns the access rules of agents; `None` if the node has none.
    pub(crate) fn house(&self) -> Option<&NodeAccessRules> {
        self.house.as_ref()
    }

    /// Returns the identity of an agent under the access rules; `None` without rules.
    fn identity(&self, agent: Option<&AgentId>) -> Option<Identity> {
        self.house.as_ref().map(|house| house.identity(agent))
    }

    /// Returns the approvals of calls.
    pub(crate) fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Adds the planners' tools, once the API that carries them out exists.
    pub(crate) fn add_planners(&self, api: &Arc<Api>) -> Result<(), ToolsError> {
        let tools = projects::kept_apart(planner::tools(&Arc::downgrade(api))?, &api.workplace.jobs);
        let refused = self.gateway.registry().install(OF_NODE, tools);
        refused.into_iter().next().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Returns a caller slot for the agent of a run.
    pub(crate) fn seat(
        &self,
        (task, job, run): (&TaskId, &JobId, &RunId),
        given: &RunOwnership,
        workspace: Option<RunWorkspace>,
    ) -> AgentSlot {
        let grants = ToolGrants { may_reach_out: given.may_reach_out, ..ToolGrants::default() };
        let caller = Caller {
            project_id: given.project_id.as_ref().map(ToString::to_string),
            user_id: given.user_id.as_ref().map(ToString::to_string),
            group_ids: given.group_ids.iter().map(ToString::to_string).collect(),
            identity: self.identity(given.agent_id.as_ref()),
            ..Caller::in_sandbox(task.clone(), job.clone(), run.clone(), grants)
        };
        let ended = CancellationToken::new();
        let seat = CallerSlot::new(caller, ended.clone()).paced_after(UNPACED_CALLS);
        let routes =
            belljar_gateway::routes(Arc::clone(&self.gateway), EndpointKind::Hatch(seat), ended.clone());
        let workspace = workspace.map(|workspace| self.workspaces.add(run, workspace));
        AgentSlot { routes, _workspace: workspace, _taken: ended.drop_guard() }
    }

    /// Calls a tool as the node's operator.
    pub(crate) async fn call_as_operator(
        &self,
        (user_id, may_reach_out): (Option<&UserId>, bool),
        (tool, arguments): (&ToolName, Arguments),
        stopped: CancellationToken,
    ) -> CallOutcome {
        let caller = Caller {
            user_id: user_id.map(ToString::to_string),
            actor: Some(OPERATOR.to_owned()),
            grants: ToolGrants { may_reach_out, ..ToolGrants::default() },
            ..Caller::of(AgentKind::Operator)
        };
        self.gateway.call(&CallerSlot::new(caller, stopped), tool.as_str(), arguments).await
    }

    /// Returns the routes of remote callers, for these host names. They need [`guarded`] around them, which authenticates.
    pub(crate) fn remote(&self, hosts: Vec<String>, stopped: CancellationToken) -> axum::Router {
        belljar_gateway::routes(Arc::clone(&self.gateway), EndpointKind::Remote(hosts), stopped)
    }

    /// Records an event about callers, and waits for the disk. Returns true if it was recorded.
    pub(crate) async fn record(&self, kind: &str, record: &impl Serialize) -> bool {
        let event = match Event::new(kind, None, record) {
            Ok(event) => event,
            Err(error) => {
                tracing::error!(error = crate::chain(&error), kind, "something can't be recorded");
                return false;
            }
        };
        let (done, outcome) = oneshot::channel();
        self.audit.submit_urgent(event, move |result| drop(done.send(result)));
        let recorded = outcome.await.unwrap_or(Err(AuditError::Closed));
        if let Err(error) = &recorded {
            tracing::error!(error = crate::chain(error), kind, "something can't be recorded");
        }
        recorded.is_ok()
    }
}

/// Requires a bearer token for these routes.
pub(crate) fn guarded(routes: axum::Router, seats: Arc<RemoteSlots>) -> axum::Router {
    bearer::guarded(routes, Arc::new(remote::RemoteTokens(seats)))
}

/// The tools that use the host's git, if the configuration names remotes for agents.
fn git_tools(
    parts: &ToolDependencies<'_>,
    workspaces: &Arc<JobWorkspaces>,
) -> Result<Vec<Arc<dyn Tool>>, ToolsError> {
    if parts.git.remotes.is_empty() {
        return Ok(Vec::new());
    }
    let settings = GitHostSettings {
        rules: parts.git.clone(),
        state: parts.state.path().to_owned(),
        at_once: GIT_AT_ONCE,
    };
    let workspaces = Arc::clone(workspaces) as Arc<dyn GitWorkspaces>;
    let hatch: Arc<dyn GitHatch> = Arc::new(HostGitHatch::new(workspaces, settings));
    Ok(builtin::git::hatch_tools(&hatch, ToolScope::Sandbox)?)
}

/// The tools that need only the database and the host's network access.
fn own(parts: &ToolDependencies<'_>, files: &TaskArtifacts) -> Result<Vec<Arc<dyn Tool>>, ToolsError> {
    let ToolDependencies { database, artifacts, clock, web, .. } = *parts;
    let hatch: Arc<dyn WebHatch> = Arc::new(web::NodeHatch::new(web, parts.house.clone()));
    let calls = Arc::new(ApiCaller::start_with(NameSource::of_system())?);
    let shelf = ArtifactStore { files: files.clone(), contents: artifacts.clone(), clock: Arc::clone(clock) };
    let notes = NoteStore {
        memory: Memory::new(database.clone(), memory::MemoryLimits::default()),
        clock: Arc::clone(clock),
    };
    let library = SkillStore {
        skills: Skills::new(database.clone()),
        clock: Arc::clone(clock),
        new_id: || Uuid::now_v7().to_string(),
    };
    let wishes = PreferenceStore {
        preferences: Preferences::new(database.clone(), preferences::PreferenceLimits::default()),
        clock: Arc::clone(clock),
    };
    let tools = [
        builtin::skills::tools(library)?,
        builtin::preference::tools(wishes)?,
        builtin::help::tools()?,
        builtin::artifact::tools(shelf)?,
        builtin::memory::tools(notes)?,
        builtin::web::tools(&hatch, &calls)?,
        builtin::web::offline()?,
        builtin::chart::tools()?,
        builtin::api::tools(&hatch, &calls)?,
        configured::tools(parts.config)?,
    ];
    Ok(tools.into_iter().flatten().collect())
}
