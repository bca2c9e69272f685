//! Report of a push, for people and for programs (docs/reference/git.md).

use super::requested::PullRequestReport;
use crate::error::{CliError, DENIED, OWN_FAILURE};
use crate::progress::harmless;
use crate::trust_review::listed;
use belljar_contract::agent::{AgentPush, PathNeedingApproval};
use belljar_contract::text::with_causes;
use belljar_git::{CommitError, GitPushResult, IgnoredFiles, PreparedPush, PushError, RefOrigin};
use belljar_sandbox::session::PathApproval;
use serde::{Serialize, Serializer};

/// Report of a push.
#[derive(Debug, Serialize)]
pub(crate) struct PushReport {
    outcome: PushStatus,
    /// A stable code; null where nothing was refused and nothing failed.
    reason: Option<&'static str>,
    /// The reason in words.
    message: Option<String>,
    remote: String,
    branch: String,
    base: String,
    commit: Option<String>,
    files: Vec<PushedFile>,
    left_out: Vec<String>,
    /// Paths that the cloned commit's ignore rules match; a directory stands for everything in it.
    ignored: Vec<String>,
    /// Files with rules for that which are changed. They didn't count.
    ignore_rules_changed: Vec<String>,
    handoff: Vec<PathApproval>,
    /// Null where none was wanted, or nothing was pushed.
    pull_request: Option<PullRequestReport>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PushStatus {
    Pushed,
    AlreadyThere,
    NothingToPush,
    Refused,
    Taken,
    Failed,
}

#[derive(Debug, Serialize)]
struct PushedFile {
    path: String,
    change: &'static str,
}

/// Maximum number of paths that were left out, and of ignored ones, that are printed one by one.
const MOST_SHOWN: usize = 20;

/// Exit code where there is such a branch already, and it is something else.
const TAKEN: u8 = 4;
/// Exit code where the branch is there, and its pull request isn't.
const NOT_REQUESTED: u8 = 5;

// === impl PushStatus ===

impl PushStatus {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pushed => "pushed",
            Self::AlreadyThere => "already_there",
            Self::NothingToPush => "nothing_to_push",
            Self::Refused => "refused",
            Self::Taken => "taken",
            Self::Failed => "failed",
        }
    }
}

impl Serialize for PushStatus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

// === impl PushReport ===

impl PushReport {
    pub(super) fn begin(remote: String, branch: String, base: String) -> Self {
        Self {
            outcome: PushStatus::Failed,
            reason: None,
            message: None,
            remote,
            branch,
            base,
            commit: None,
            files: Vec::new(),
            left_out: Vec::new(),
            ignored: Vec::new(),
            ignore_rules_changed: Vec::new(),
            handoff: Vec::new(),
            pull_request: None,
        }
    }

    /// Notes what was to be pushed.
    pub(super) fn note(&mut self, prepared: &PreparedPush<'_>) {
        self.commit = Some(prepared.commit().to_owned());
        let files = prepared.files().map(|(path, change)| PushedFile { path: path.to_owned(), change });
        self.files = files.collect();
        self.left_out = prepared.left_out().to_vec();
        self.note_ignored(prepared.ignored());
        self.ignore_rules_changed = prepared.changed_rules().map(str::to_owned).collect();
    }

    fn note_ignored(&mut self, ignored: &IgnoredFiles) {
        self.ignored.clone_from(&ignored.paths);
    }

    /// Notes how it ended.
    pub(super) fn end(&mut self, pushed: &Result<GitPushResult, PushError>) {
        self.outcome = match pushed {
            Ok(GitPushResult { standing: RefOrigin::New, .. }) => PushStatus::Pushed,
            Ok(GitPushResult { standing: RefOrigin::AlreadyThere, .. }) => PushStatus::AlreadyThere,
            Err(PushError::Commit(CommitError::Unchanged) | PushError::OnlyLeftOut { .. }) => {
                PushStatus::NothingToPush
            }
            Err(PushError::Taken { .. }) => PushStatus::Taken,
            Err(error) if error.is_denial() => PushStatus::Refused,
            Err(_) => PushStatus::Failed,
        };
        let error = match pushed {
            Ok(pushed) => {
                self.pull_request = pushed.pull_request.as_ref().map(PullRequestReport::of);
                return;
            }
            Err(error) => error,
        };
        self.reason = Some(error.code());
        self.message = Some(with_causes(error));
        match error {
            PushError::Handoff { findings } => self.handoff = findings.iter().map(PathApproval::of).collect(),
            PushError::OnlyLeftOut { left_out, ignored } => {
                self.left_out.clone_from(left_out);
                self.note_ignored(ignored);
            }
            _ => {}
        }
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_done(&self) -> bool {
        let is_requested = self.pull_request.as_ref().is_none_or(PullRequestReport::is_done);
        is_requested
            && matches!(
                self.outcome,
                PushStatus::Pushed | PushStatus::AlreadyThere | PushStatus::NothingToPush
            )
    }

    /// Whether there is something that was not pushed: it is ignored, a repository, or no file.
    pub(crate) fn has_left_out(&self) -> bool {
        !self.left_out.is_empty() || !self.ignored.is_empty()
    }

    /// Returns the report as part of an agent's run result.
    pub(crate) fn as_contract(&self) -> AgentPush {
        let handoff = self.handoff.iter().cloned();
        AgentPush {
            outcome: self.outcome.as_str().to_owned(),
            reason: self.reason.map(str::to_owned),
            remote: self.remote.clone(),
            branch: self.branch.clone(),
            commit: self.commit.clone(),
            left_out: self.left_out.clone(),
            ignored: self.ignored.clone(),
            handoff: handoff
                .map(|PathApproval { path, kind, reason }| PathNeedingApproval { path, kind, reason })
                .collect(),
            pull_request: self.pull_request.as_ref().map(PullRequestReport::as_contract),
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self.outcome {
            PushStatus::Pushed | PushStatus::AlreadyThere | PushStatus::NothingToPush if self.is_done() => 0,
            PushStatus::Pushed | PushStatus::AlreadyThere | PushStatus::NothingToPush => NOT_REQUESTED,
            PushStatus::Refused => DENIED,
            PushStatus::Taken => TAKEN,
            PushStatus::Failed => OWN_FAILURE,
        }
    }

    pub(crate) fn print_json(&self) -> Result<(), CliError> {
        let text = crate::output::json(self);
        crate::output::outln!("{text}");
        Ok(())
    }

    /// Tells it on standard error; the commit that is there on standard output.
    pub(crate) fn tell(&self) {
        for path in self.left_out.iter().take(MOST_SHOWN) {
            crate::output::errln!("belljar: {} was left out: it is a repository, or no file", harmless(path));
        }
        if let Some(more) = self.left_out.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
            crate::output::errln!("belljar: {more} more were left out; --json lists them");
        }
        self.tell_ignored();
        let (branch, remote) = (&self.branch, &self.remote);
        let commit = self.commit.as_deref().unwrap_or_default();
        match self.outcome {
            PushStatus::Pushed => {
                crate::output::outln!("{commit} is {branch} at {remote}, with {} files", self.files.len());
            }
            PushStatus::AlreadyThere => crate::output::outln!("{commit} was {branch} at {remote} already"),
            PushStatus::NothingToPush => crate::output::outln!("Nothing to push."),
            PushStatus::Refused | PushStatus::Taken | PushStatus::Failed => {
                crate::output::errln!(
                    "belljar: {}",
                    self.message.as_deref().map(harmless).unwrap_or_default()
                );
                crate::output::err!("{}", listed(&self.handoff));
                if let Some(hint) = self.hint() {
                    crate::output::errln!("\nHint: {hint}");
                }
            }
        }
        self.pull_request.iter().for_each(PullRequestReport::tell);
    }

    fn tell_ignored(&self) {
        let shown = self.ignored.iter().take(MOST_SHOWN);
        for path in shown {
            crate::output::errln!(
                "belljar: {} was left out: it is ignored (--include-ignored)",
                harmless(path)
            );
        }
        if let Some(more) = self.ignored.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
            crate::output::errln!("belljar: {more} more were left out, which are ignored; --json lists them");
        }
        for path in &self.ignore_rules_changed {
            let path = harmless(path);
            crate::output::errln!("belljar: {path} differs; what is ignored was decided as it was cloned");
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self.reason? {
            "handoff_not_trusted" => {
                Some("review the files, then approve them with --trust PATH for each, or --trust-all")
            }
            "branch_taken" => {
                Some("--branch NAME pushes to another one; nothing that is there is ever replaced")
            }
            "base_unknown" => Some("name the target branch with --pr-base NAME"),
            "private_address" | "loopback_address" | "shared_address" | "reserved_address"
            | "own_address" => Some(
                "--allow-host HOST or --allow-network NETWORK, or `git` in the configuration, lets git go there",
            ),
            _ => None,
        }
    }
}
