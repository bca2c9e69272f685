//! Holders of tokens.

use crate::database::{DatabaseError, Row, unreadable};
use belljar_contract::id::{AgentId, JobId, ProjectId, SessionId, TaskId, UserId};
use std::fmt;

/// Holder of a token, and the objects that it acts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    /// Kind of holder.
    pub kind: HolderKind,
    /// The task.
    pub task_id: Option<TaskId>,
    /// The job.
    pub job_id: Option<JobId>,
    /// The project.
    pub project_id: Option<ProjectId>,
    /// The session.
    pub session: Option<SessionId>,
    /// User that the holder acts for.
    pub user: Option<UserId>,
    /// Agent identity that calls are made as, if it has a name.
    pub agent_id: Option<AgentId>,
}

/// Kind of a token's holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HolderKind {
    /// An agent in a sandbox.
    Sandbox,
    /// The project manager.
    ProjectManager,
    /// A project analyst.
    ProjectAnalyst,
    /// An operator of the system, or a client of the operator.
    Operator,
}

/// The fields of a holder don't fit its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token of the kind {kind} {must}")]
pub struct IncompleteHolder {
    kind: HolderKind,
    must: &'static str,
}

// === impl TokenHolder ===

impl TokenHolder {
    /// Creates a holder of that kind without any bindings.
    pub fn new(kind: HolderKind) -> Self {
        Self {
            kind,
            task_id: None,
            job_id: None,
            project_id: None,
            session: None,
            user: None,
            agent_id: None,
        }
    }

    /// Checks that the fields fit the kind: an agent in a sandbox is bound to its job, an analyst to a person, and the
    /// manager to none.
    pub(super) fn check(&self) -> Result<(), IncompleteHolder> {
        let (has_task, has_job, has_user) =
            (self.task_id.is_some(), self.job_id.is_some(), self.user.is_some());
        let has_agent = self.agent_id.is_some();
        let must = match self.kind {
            _ if has_job && !has_task => "that has a job has its task, too",
            HolderKind::Sandbox if !has_job => "has a task and a job",
            HolderKind::Sandbox if has_agent => "calls as its job says",
            HolderKind::ProjectManager if has_user => "has no user",
            HolderKind::ProjectAnalyst if !has_user => "has a user",
            HolderKind::Operator if has_job => "has no job",
            _ => return Ok(()),
        };
        Err(IncompleteHolder { kind: self.kind, must })
    }

    pub(super) fn read(row: &Row) -> Result<Self, DatabaseError> {
        let kind = row.text("kind")?;
        Ok(Self {
            kind: HolderKind::from_name(&kind)
                .ok_or_else(|| unreadable(format!("the kind {kind:?}").into()))?,
            task_id: row.optionally_parsed("task_id", TaskId::parse)?,
            job_id: row.optionally_parsed("job_id", JobId::parse)?,
            project_id: row.optionally_parsed("project_id", ProjectId::parse)?,
            session: row.optionally_parsed("session", SessionId::parse)?,
            user: row.optionally_parsed("user_id", UserId::parse)?,
            agent_id: row.optionally_parsed("agent_id", AgentId::parse)?,
        })
    }
}

// === impl HolderKind ===

impl HolderKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sandbox, Self::ProjectManager, Self::ProjectAnalyst, Self::Operator];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::ProjectManager => "pm",
            Self::ProjectAnalyst => "pa",
            Self::Operator => "operator",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for HolderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
