//! The plan of a pull request: its forge and its texts. It is validated before anything is pushed.

use super::shape;
use belljar_egress::api::{ApiConnection, Connections};
use belljar_policy::git::{Forge, GitRules, NoProject, Project, Remote, is_branch_name};
use std::sync::Arc;

/// A pull request that can be opened.
#[derive(Debug)]
pub struct PullRequestPlan {
    pub(super) forge: Forge,
    pub(super) project: Project,
    pub(super) connection: Arc<ApiConnection>,
    words: PullRequestTexts,
}

/// Texts and options that the user gave.
#[derive(Debug, Clone, Default)]
pub struct PullRequestTexts {
    /// Title. Default: the first line of the commit message.
    pub title: Option<String>,
    /// Description. Default: the rest of the commit message.
    pub body: Option<String>,
    /// Target branch. Default: the branch that was cloned.
    pub base: Option<String>,
    /// True for a draft.
    pub is_draft: bool,
}

/// Final title and description.
pub(super) struct PullRequestContent {
    pub(super) title: String,
    pub(super) body: String,
    pub(super) is_draft: bool,
}

/// Reasons why a pull request can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No forge is configured for the host.
    #[error("no forge is known for the host of {remote}, so there can be no pull request")]
    NoForge {
        /// The repository.
        remote: Remote,
    },
    /// The repository is not a project of the forge.
    #[error("{remote} is no project of its host's forge")]
    NoProject {
        /// The repository.
        remote: Remote,
        /// The cause.
        #[source]
        source: NoProject,
    },
    /// The forge's connection is not configured.
    #[error("there is no connection {name:?} to call the forge by")]
    NoConnection {
        /// Its name.
        name: String,
    },
    /// The connection doesn't permit the required calls.
    #[error("the connection {name:?} is not for {method} {path}, which a pull request takes")]
    NotFor {
        /// Its name.
        name: String,
        /// The method.
        method: &'static str,
        /// The path below the connection's.
        path: String,
    },
    /// The target is not a valid branch name.
    #[error("{name:?} is no name of a branch")]
    Base {
        /// The name.
        name: String,
    },
}

/// Maximum lengths in characters that all forges accept.
const LONGEST_TITLE: usize = 240;
const LONGEST_BODY: usize = 60_000;

// === impl PullRequestPlan ===

impl PullRequestPlan {
    /// Checks that a pull request could be opened. Calls nothing.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn plan(
        remote: &Remote,
        (rules, connections): (&GitRules, &Connections),
        words: PullRequestTexts,
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

    /// Returns the target branch that the user named.
    pub(crate) fn base(&self) -> Option<&str> {
        self.words.base.as_deref()
    }

    pub(super) fn connection(&self) -> &str {
        &self.forge.connection
    }

    /// Returns the texts, for that commit message and branch.
    pub(super) fn says(&self, commit: &str, branch: &str) -> PullRequestContent {
        let PullRequestTexts { title, body, is_draft, .. } = &self.words;
        let (first, rest) = commit.trim().split_once('\n').unwrap_or((commit.trim(), ""));
        let title = title.as_deref().unwrap_or(first);
        let is_plain = |char: &char| !char.is_control();
        let title: String = title.trim().chars().filter(is_plain).take(LONGEST_TITLE).collect();
        let body = body.as_deref().unwrap_or(rest).trim();
        PullRequestContent {
            title: if title.is_empty() { branch.to_owned() } else { title },
            body: body.chars().take(LONGEST_BODY).collect(),
            is_draft: *is_draft,
        }
    }
}
