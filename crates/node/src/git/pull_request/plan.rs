//! A pull request that is wanted: where it would be opened, and what it says. Known before anything is pushed, or refused then.

use super::shape;
use belljar_egress::api::{ApiConnection, Connections};
use belljar_policy::git::{Forge, GitRules, NoProject, Project, Remote, is_branch_name};
use std::sync::Arc;

/// One that could be opened.
#[derive(Debug)]
pub struct PullRequestOrder {
    pub(super) forge: Forge,
    pub(super) project: Project,
    pub(super) connection: Arc<ApiConnection>,
    words: PullRequestWords,
}

/// What somebody has said of it.
#[derive(Debug, Clone, Default)]
pub struct PullRequestWords {
    /// Its title; the first line of what the commit says, if there is none.
    pub title: Option<String>,
    /// What stands below that; the rest of what the commit says, if there is none.
    pub body: Option<String>,
    /// The branch that it is to get into; the one that the clone is of, if none is named.
    pub base: Option<String>,
    /// Whether it is only to be looked at yet.
    pub is_draft: bool,
}

/// What it says in the end.
pub(super) struct Said {
    pub(super) title: String,
    pub(super) body: String,
    pub(super) is_draft: bool,
}

/// Why none can be opened there.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Nobody has said that there is a forge.
    #[error("no forge is known for the host of {remote}, so there can be no pull request")]
    NoForge {
        /// The repository.
        remote: Remote,
    },
    /// It isn't a project of the forge.
    #[error("{remote} is no project of its host's forge")]
    NoProject {
        /// The repository.
        remote: Remote,
        /// Why.
        #[source]
        source: NoProject,
    },
    /// The forge's connection isn't there.
    #[error("there is no connection {name:?} to call the forge by")]
    NoConnection {
        /// Its name.
        name: String,
    },
    /// It is for other calls.
    #[error("the connection {name:?} is not for {method} {path}, which a pull request takes")]
    NotFor {
        /// Its name.
        name: String,
        /// The method.
        method: &'static str,
        /// The path below the connection's.
        path: String,
    },
    /// No branch is called so.
    #[error("{name:?} is no name of a branch")]
    Base {
        /// What was named.
        name: String,
    },
}

/// The longest title and the longest text that all forges take.
const LONGEST_TITLE: usize = 240;
const LONGEST_BODY: usize = 60_000;

// === impl PullRequestOrder ===

impl PullRequestOrder {
    /// Looks whether it could be opened; nobody is asked.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn plan(
        remote: &Remote,
        (rules, connections): (&GitRules, &Connections),
        words: PullRequestWords,
    ) -> Result<Self, PlanError> {
        let forge = rules.forge(remote).ok_or_else(|| PlanError::NoForge { remote: remote.clone() })?;
        let no_project = |source| PlanError::NoProject { remote: remote.clone(), source };
        let project = forge.project(remote).map_err(no_project)?;
        let name = &forge.connection;
        let no_connection = || PlanError::NoConnection { name: name.clone() };
        let connection = connections.get(name).ok_or_else(no_connection)?;
        for (method, path) in shape::calls(forge.kind, &project) {
            if !connection.is_for(method, &path) {
                return Err(PlanError::NotFor { name: name.clone(), method, path });
            }
        }
        if let Some(name) = words.base.as_ref().filter(|name| !is_branch_name(name)) {
            return Err(PlanError::Base { name: name.clone() });
        }
        Ok(Self { forge: forge.clone(), project, connection: Arc::clone(connection), words })
    }

    /// The branch that was named for it to get into.
    pub(in crate::git) fn base(&self) -> Option<&str> {
        self.words.base.as_deref()
    }

    pub(super) fn connection(&self) -> &str {
        &self.forge.connection
    }

    /// What it says, for a commit that says this on a branch.
    pub(super) fn says(&self, commit: &str, branch: &str) -> Said {
        let PullRequestWords { title, body, is_draft, .. } = &self.words;
        let (first, rest) = commit.trim().split_once('\n').unwrap_or((commit.trim(), ""));
        let title = title.as_deref().unwrap_or(first);
        let is_plain = |char: &char| !char.is_control();
        let title: String = title.trim().chars().filter(is_plain).take(LONGEST_TITLE).collect();
        let body = body.as_deref().unwrap_or(rest).trim();
        Said {
            title: if title.is_empty() { branch.to_owned() } else { title },
            body: body.chars().take(LONGEST_BODY).collect(),
            is_draft: *is_draft,
        }
    }
}
