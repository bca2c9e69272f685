//! Pushes a sandbox's work as a new branch, exactly once.
//!
//! ```text
//! noted (when) ─► files read ─► commit, here ─► handed off? ─► recorded ─► remote branch? ─┬─ none ─► pushed, if still none
//!                                                                                          ├─ same commit ─► done before
//!                                                                                          └─ another ─► refused
//! ```
//! If the process is killed at any point, a repeated push makes the same commit: its time is noted before it is made. The
//! server creates the branch only if it doesn't exist, so a second push finds the first one's result. A requested pull request is
//! opened afterwards (`pull_request`).

mod attempt;
mod error;
mod note;
mod server;

pub use error::PushError;
pub(super) use note::PullRequestNote;

use super::base::HostClone;
use super::commit::{
    self, Attribution, CommitContent, CommitError, CommitMetadata, DifferingPath, LocalCommit,
};
use super::environment::HostEnv;
use super::ignored::{self, IgnoredFiles};
use super::journal::Journal;
use super::pull_request::{OpenPullRequest, PullRequestError, PullRequestPlan};
use super::quarantine::Quarantine;
use super::tree::Tree;
use belljar_contract::git::{GitOutcome, PushRecord};
use belljar_contract::id::RunId;
use belljar_contract::inference::{Excerpt, ReasonCode};
use belljar_egress::upstream::names::NameSource;
use belljar_files::directory::Directory;
use belljar_files::lock_file::open_lock;
use belljar_files::tree::TreeLimits;
use belljar_policy::git::{BranchName, GitRules, Remote};
use belljar_policy::handoff::{ApprovedPaths, Finding};
use jiff::Timestamp;
use note::PushNote;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

/// Parameters of a push.
pub struct PushParams<'p> {
    /// The clone that the work began with.
    pub base: &'p HostClone,
    /// The directory with the work.
    pub directory: &'p Directory,
    /// The remote to push to.
    pub remote: Remote,
    /// The destinations that git may connect to.
    pub rules: &'p GitRules,
    /// Resolves hostnames.
    pub names: NameSource,
    /// The new branch.
    pub branch: BranchName,
    /// The commit message.
    pub message: &'p str,
    /// The commit's origin.
    pub attribution: Attribution,
    /// Limits of the tree.
    pub limits: TreeLimits,
    /// If true, files that the cloned commit ignores are pushed, too.
    pub includes_ignored: bool,
    /// The requested pull request, if any.
    pub pull_request: Option<&'p PullRequestPlan>,
    /// The environment that git is started with.
    pub env: &'p HostEnv,
    /// The state directory, which has the audit log.
    pub state: &'p Path,
    /// Returns true once the push is canceled.
    pub is_canceled: &'p dyn Fn() -> bool,
}

/// A commit that is ready to be pushed. It holds a lock, so no other push from the same clone runs meanwhile.
pub struct PreparedPush<'p> {
    pub(super) order: PushParams<'p>,
    pub(super) made: LocalCommit,
    left_out: Vec<String>,
    ignored: IgnoredFiles,
    pub(super) note: PushNote,
    // Declared before the lock, so that it is removed before another push may begin.
    quarantine: Quarantine,
    _lock: File,
}

/// Result of a push.
#[derive(Debug)]
pub struct GitPushResult {
    /// The commit.
    pub commit: String,
    /// True if the branch existed before.
    pub standing: RefOrigin,
    /// The requested pull request, if any.
    pub pull_request: Option<RequestedPullRequest>,
}

/// A requested pull request.
#[derive(Debug)]
pub struct RequestedPullRequest {
    /// Its target branch.
    pub base: String,
    /// The result. The branch is pushed in any case.
    pub opened: Result<OpenPullRequest, PullRequestError>,
}

/// Origin of a branch or pull request: this attempt, or an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefOrigin {
    /// It was created now.
    New,
    /// An earlier attempt has created it, with the same commit.
    AlreadyThere,
}

/// Lock file, held during a push.
pub(super) const LOCK: &str = "pushing";

// === impl PushParams ===

impl<'p> PushParams<'p> {
    /// Makes the commit, and reviews its files. Sends nothing.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn prepare(self) -> Result<PreparedPush<'p>, PushError> {
        let folder = self.base.folder();
        let lock = open_lock(&folder.join(LOCK)).map_err(note_failed)?;
        lock.try_lock().map_err(|_| PushError::Busy)?;
        let mut note = PushNote::of(self.base, self.remote.to_string(), self.branch.to_string())?;
        let quarantine = Quarantine::make(self.base).map_err(note_failed)?;
        let git = quarantine.git(self.env, self.is_canceled);
        let (mut tree, ignored) = match self.includes_ignored {
            true => (Tree::read(self.directory, self.limits, self.is_canceled)?, IgnoredFiles::default()),
            false => ignored::without(
                Tree::read_more(self.directory, self.limits, self.is_canceled)?,
                (&git, self.base),
            )?,
        };
        tree.check(self.limits)?;
        let submodules = commit::submodules(&git)?;
        tree.leave_out_below(submodules.iter().map(|submodule| submodule.path.as_str()));
        let words = self.words(note.at);
        let content =
            CommitContent { base: self.base, top: self.directory, tree: &tree, submodules: &submodules };
        let made = match commit::make(&git, &content, &words) {
            Err(CommitError::Unchanged) if ignored.files > 0 || !tree.left_out.is_empty() => {
                return Err(PushError::OnlyLeftOut { left_out: tree.left_out, ignored });
            }
            made => made?,
        };
        belljar_failpoint::reached("git_commit.made");
        note.commit = Some(made.commit.clone());
        Ok(PreparedPush {
            made,
            left_out: tree.left_out,
            ignored,
            note,
            quarantine,
            order: self,
            _lock: lock,
        })
    }

    pub(super) fn words(&self, at: Timestamp) -> CommitMetadata<'_> {
        CommitMetadata { attribution: &self.attribution, message: self.message, at }
    }
}

// === impl PreparedPush ===

impl PreparedPush<'_> {
    /// Returns the commit.
    pub fn commit(&self) -> &str {
        &self.made.commit
    }

    /// Returns the id of the commit's tree: equal files have equal ids.
    pub fn tree(&self) -> &str {
        &self.made.tree
    }

    /// Returns the paths that differ from the cloned commit, each with its kind of change.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, &'static str)> {
        self.made.files.iter().map(|file: &DifferingPath| (file.path.as_str(), file.change()))
    }

    /// Returns the paths that were skipped: repositories, files in the place of submodules, pipes and the like.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Returns the files that were left out because the cloned commit ignores them.
    pub fn ignored(&self) -> &IgnoredFiles {
        &self.ignored
    }

    /// Returns the files with ignore rules that the commit changes. The changed rules had no effect on what was left out.
    pub fn changed_rules(&self) -> impl Iterator<Item = &str> {
        let paths = self.made.files.iter().map(|file| file.path.as_str());
        paths.filter(|path| path.rsplit('/').next() == Some(ignored::RULES_FILE))
    }

    /// Returns the findings that need an approval and don't have one.
    pub fn asks(&self, trust: &ApprovedPaths) -> Vec<Finding> {
        trust.without(self.made.findings.clone())
    }

    /// Pushes the commit, if every finding is approved.
    ///
    /// # Errors
    /// [`PushError`]. After [`PushError::Git`] the branch may exist nevertheless; a repeated push finds out.
    pub fn push(mut self, trust: &ApprovedPaths) -> Result<GitPushResult, PushError> {
        let begun = Instant::now();
        let pushed = self.attempt(trust);
        let outcome = match &pushed {
            Ok((RefOrigin::New, _)) => GitOutcome::Completed,
            Ok((RefOrigin::AlreadyThere, _)) => GitOutcome::AlreadyThere,
            Err(error) if error.is_denial() => GitOutcome::Denied { reason: ReasonCode::of(error.code()) },
            Err(error) => GitOutcome::Failed { code: ReasonCode::of(error.code()) },
        };
        let record = PushRecord {
            run_id: self.run_id(),
            remote: Excerpt::of(&self.order.remote.to_string()),
            branch: Excerpt::of(self.order.branch.as_str()),
            commit: Some(Excerpt::of(&self.made.commit)),
            outcome,
            total_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        };
        belljar_failpoint::before("git_push_record");
        let recorded = Journal::of(self.order.state).pushed(&record);
        belljar_failpoint::after("git_push_record");
        // An earlier error is more informative than a failure to record it.
        let (standing, base) = pushed?;
        recorded?;
        self.note.is_there = true;
        self.note.keep(self.order.base).map_err(note_failed)?;
        let wanted = self.order.pull_request.zip(base);
        let pull_request =
            wanted.map(|(order, base)| RequestedPullRequest { opened: self.open(order, &base), base });
        Ok(GitPushResult { commit: self.made.commit.clone(), standing, pull_request })
    }

    pub(super) fn run_id(&self) -> Option<RunId> {
        self.order.attribution.run_id.clone()
    }
}

fn note_failed(source: io::Error) -> PushError {
    PushError::Note { source }
}
