//! The caller of a tool, as the host knows it: its identity never comes from the call's content.

use belljar_contract::access::AccessLevel;
use belljar_contract::id::{AgentId, GroupId, JobId, ProjectId, RunId, TaskId, UserId};
use belljar_contract::scope::Scopes;
use belljar_contract::tool::AgentKind;
use belljar_policy::tool::ToolGrants;

/// A caller of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Kind of agent.
    pub kind: AgentKind,
    /// The task that it is bound to, if any.
    pub task_id: Option<TaskId>,
    /// The job.
    pub job_id: Option<JobId>,
    /// The attempt at the job.
    pub run_id: Option<RunId>,
    /// The project of the task.
    pub project_id: Option<String>,
    /// The user that it works for.
    pub user_id: Option<String>,
    /// The groups of that user.
    pub group_ids: Vec<String>,
    /// Name of the actor, if it has one of its own.
    pub actor: Option<String>,
    /// Granted capabilities.
    pub grants: ToolGrants,
    /// Its identity under the access rules; `None` if none apply.
    pub identity: Option<Identity>,
}

/// Identity of a caller under the access rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A named agent.
    Agent(AgentId),
    /// An anonymous caller with that level.
    Level(AccessLevel),
}

// === impl Caller ===

impl Caller {
    /// Returns a caller of that kind, without bounds and capabilities.
    pub fn of(kind: AgentKind) -> Self {
        Self {
            kind,
            task_id: None,
            job_id: None,
            run_id: None,
            project_id: None,
            user_id: None,
            group_ids: Vec::new(),
            actor: None,
            grants: ToolGrants::default(),
            identity: None,
        }
    }

    /// Returns a caller that works on a job in a sandbox.
    pub fn in_sandbox(task_id: TaskId, job_id: JobId, run_id: RunId, grants: ToolGrants) -> Self {
        Self {
            task_id: Some(task_id),
            job_id: Some(job_id),
            run_id: Some(run_id),
            grants,
            ..Self::of(AgentKind::Sandbox)
        }
    }

    /// Returns the scopes whose skills and preferences apply to work on that task; by default the task that the caller is bound
    /// to.
    pub fn scopes(&self, task_id: Option<&TaskId>) -> Scopes {
        Scopes {
            groups: self.group_ids.iter().filter_map(|id| GroupId::parse(id).ok()).collect(),
            user: self.user_id.as_deref().and_then(|id| UserId::parse(id).ok()),
            project: self.project_id.as_deref().and_then(|id| ProjectId::parse(id).ok()),
            task: task_id.or(self.task_id.as_ref()).cloned(),
        }
    }

    /// Returns the caller's key in queues: its run, or its identity if it has none.
    pub fn queue(&self) -> String {
        let Self { kind, task_id, job_id, run_id, project_id, user_id, actor, .. } = self;
        match run_id {
            Some(run_id) => format!("run {run_id}"),
            None => format!("{kind:?} {:?}", (actor, user_id, project_id, task_id, job_id)),
        }
    }

    /// Returns its bounds: names of arguments, each with the only permitted value.
    pub fn bounds(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let task = self.task_id.as_ref().map(|id| ("task_id", id.as_str()));
        let job = self.job_id.as_ref().map(|id| ("job_id", id.as_str()));
        let project = self.project_id.as_deref().map(|id| ("project_id", id));
        [task, job, project].into_iter().flatten()
    }
}
