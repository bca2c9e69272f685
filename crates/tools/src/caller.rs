//! Who calls, as the host knows it: never by what a call says.

use belljar_contract::access::AccessLevel;
use belljar_contract::id::{AgentId, GroupId, JobId, ProjectId, RunId, TaskId, UserId};
use belljar_contract::scope::Scopes;
use belljar_contract::tool::AgentKind;
use belljar_policy::tool::ToolGrants;

/// Who calls a tool, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// What kind of agent it is.
    pub kind: AgentKind,
    /// The task that it works on, if it is bound to one.
    pub task_id: Option<TaskId>,
    /// The job.
    pub job_id: Option<JobId>,
    /// The attempt at it.
    pub run_id: Option<RunId>,
    /// The project of the task.
    pub project_id: Option<String>,
    /// For whom it works.
    pub user_id: Option<String>,
    /// The groups of that user.
    pub group_ids: Vec<String>,
    /// The name under which it acts, if it has one of its own.
    pub actor: Option<String>,
    /// What it has been given.
    pub grants: ToolGrants,
    /// By whose rules it is judged besides; by nobody's, where nothing is said.
    pub identity: Option<Identity>,
}

/// As whom a caller is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// As the agent of that name.
    Agent(AgentId),
    /// As anybody at that level.
    Level(AccessLevel),
}

// === impl Caller ===

impl Caller {
    /// An agent of that kind which is bound to nothing and has been given nothing.
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

    /// One that works on a job in a sandbox.
    pub fn in_sandbox(task_id: TaskId, job_id: JobId, run_id: RunId, grants: ToolGrants) -> Self {
        Self {
            task_id: Some(task_id),
            job_id: Some(job_id),
            run_id: Some(run_id),
            grants,
            ..Self::of(AgentKind::Sandbox)
        }
    }

    /// Whose skills and preferences count when it works on that task, or on the one that it is bound to.
    pub fn scopes(&self, task_id: Option<&TaskId>) -> Scopes {
        Scopes {
            groups: self.group_ids.iter().filter_map(|id| GroupId::parse(id).ok()).collect(),
            user: self.user_id.as_deref().and_then(|id| UserId::parse(id).ok()),
            project: self.project_id.as_deref().and_then(|id| ProjectId::parse(id).ok()),
            task: task_id.or(self.task_id.as_ref()).cloned(),
        }
    }

    /// Its name among those who wait for their turns: its run, or who it is where it works on none.
    pub fn queue(&self) -> String {
        let Self { kind, task_id, job_id, run_id, project_id, user_id, actor, .. } = self;
        match run_id {
            Some(run_id) => format!("run {run_id}"),
            None => format!("{kind:?} {:?}", (actor, user_id, project_id, task_id, job_id)),
        }
    }

    /// What it is bound to: a name of an argument, and the one value that it may have.
    pub fn bounds(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let task = self.task_id.as_ref().map(|id| ("task_id", id.as_str()));
        let job = self.job_id.as_ref().map(|id| ("job_id", id.as_str()));
        let project = self.project_id.as_deref().map(|id| ("project_id", id));
        [task, job, project].into_iter().flatten()
    }
}
