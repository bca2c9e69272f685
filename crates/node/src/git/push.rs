//! A sandbox's work becomes a branch somewhere else: a new one, once, or none.
//!
//! ```text
//! noted (when) ─► files read ─► commit, here ─► handed off? ─► recorded ─► what is there? ─┬─ nothing ─► pushed, if still nothing
//!                                                                                          ├─ the very same ─► done before
//!                                                                                          └─ another ─► refused
//! ```
//! Killed anywhere on the way, the same again makes the same commit: its time was noted before it was made. And the server
//! takes the branch only where there is none, so whoever comes second finds what the first has done. A pull request comes after
//! that, if one is wanted (`pull_request`).

mod attempt;
mod error;
mod note;
mod server;

pub use error::PushError;
pub(super) use note::NotedRequest;

use super::base::Base;
use super::commit::{self, Attribution, CommitError, Differing, Made, Words};
use super::environment::HostEnv;
use super::ignored::{self, Ignored};
use super::journal::Journal;
use super::pull_request::{Opened, PullRequestError, PullRequestOrder};
use super::quarantine::Quarantine;
use super::tree::{Tree, TreeLimits};
use belljar_contract::git::{GitOutcome, PushRecord};
use belljar_contract::id::RunId;
use belljar_contract::inference::{Excerpt, ReasonCode};
use belljar_egress::upstream::names::NameSource;
use belljar_policy::git::{BranchName, GitRules, Remote};
use belljar_policy::handoff::{Finding, Trust};
use belljar_sandbox::directory::Directory;
use belljar_sandbox::lock_file::open_lock;
use jiff::Timestamp;
use note::Note;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

/// What is to be pushed, and where to.
pub struct PushOrder<'p> {
    /// What the work began with.
    pub base: &'p Base,
    /// Where the work is.
    pub directory: &'p Directory,
    /// Where it goes.
    pub remote: Remote,
    /// Where git may go.
    pub rules: &'p GitRules,
    /// Where it stands what names lead to.
    pub names: NameSource,
    /// The branch that it becomes.
    pub branch: BranchName,
    /// What the commit says.
    pub message: &'p str,
    /// Who has made it.
    pub attribution: Attribution,
    /// How much there may be.
    pub limits: TreeLimits,
    /// Whether files go along that what was cloned says are ignored.
    pub includes_ignored: bool,
    /// The pull request that is wanted for it, if one is.
    pub pull_request: Option<&'p PullRequestOrder>,
    /// What git is started from.
    pub env: &'p HostEnv,
    /// Where the audit is.
    pub state: &'p Path,
    /// Whether somebody wants it to stop.
    pub is_canceled: &'p dyn Fn() -> bool,
}

/// A commit that is ready to go, and has gone nowhere yet. Nobody else pushes from the same clone meanwhile.
pub struct Prepared<'p> {
    pub(super) order: PushOrder<'p>,
    pub(super) made: Made,
    left_out: Vec<String>,
    ignored: Ignored,
    pub(super) note: Note,
    // Gone before somebody else may push.
    quarantine: Quarantine,
    _lock: File,
}

/// Where it is now.
#[derive(Debug)]
pub struct Pushed {
    /// The commit.
    pub commit: String,
    /// Whether it was there before.
    pub standing: Standing,
    /// What became of the pull request, if one was wanted.
    pub pull_request: Option<Wanted>,
}

/// A pull request that was wanted.
#[derive(Debug)]
pub struct Wanted {
    /// The branch that it is to get into.
    pub base: String,
    /// What became of it. The branch is there however that ended.
    pub opened: Result<Opened, PullRequestError>,
}

/// Whether it was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It wasn't.
    New,
    /// The very same commit was, by an earlier attempt.
    AlreadyThere,
}

/// Held by whoever pushes.
pub(super) const LOCK: &str = "pushing";

// === impl PushOrder ===

impl<'p> PushOrder<'p> {
    /// Makes the commit, and looks at what is in it. Nothing goes out.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn prepare(self) -> Result<Prepared<'p>, PushError> {
        let folder = self.base.folder();
        let lock = open_lock(&folder.join(LOCK)).map_err(note_failed)?;
        lock.try_lock().map_err(|_| PushError::Busy)?;
        let mut note = Note::of(self.base, self.remote.to_string(), self.branch.to_string())?;
        let quarantine = Quarantine::make(self.base).map_err(note_failed)?;
        let git = quarantine.git(self.env, self.is_canceled);
        let (mut tree, ignored) = match self.includes_ignored {
            true => (Tree::read(self.directory, self.limits)?, Ignored::default()),
            false => ignored::without(Tree::read_more(self.directory, self.limits)?, (&git, self.base))?,
        };
        tree.check(self.limits)?;
        let submodules = commit::submodules(&git)?;
        tree.leave_out_below(submodules.iter().map(|submodule| submodule.path.as_str()));
        let words = self.words(note.at);
        let made = match commit::make(&git, self.base, (self.directory, &tree), &submodules, &words) {
            Err(CommitError::Unchanged) if ignored.files > 0 || !tree.left_out.is_empty() => {
                return Err(PushError::OnlyLeftOut { left_out: tree.left_out, ignored });
            }
            made => made?,
        };
        belljar_failpoint::reached("git_commit.made");
        note.commit = Some(made.commit.clone());
        Ok(Prepared { made, left_out: tree.left_out, ignored, note, quarantine, order: self, _lock: lock })
    }

    pub(super) fn words(&self, at: Timestamp) -> Words<'_> {
        Words { attribution: &self.attribution, message: self.message, at }
    }
}

// === impl Prepared ===

impl Prepared<'_> {
    /// The commit.
    pub fn commit(&self) -> &str {
        &self.made.commit
    }

    /// The id of the commit's tree: equal files have equal ids.
    pub fn tree(&self) -> &str {
        &self.made.tree
    }

    /// The paths that differ from what was cloned, each with what has become of it.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, &'static str)> {
        self.made.files.iter().map(|file: &Differing| (file.path.as_str(), file.change()))
    }

    /// What was passed over: repositories, what is in the place of submodules, pipes and the like.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// What was left out because what was cloned says so.
    pub fn ignored(&self) -> &Ignored {
        &self.ignored
    }

    /// The files with rules for what is ignored that it changes. They didn't count for what was left out.
    pub fn changed_rules(&self) -> impl Iterator<Item = &str> {
        let paths = self.made.files.iter().map(|file| file.path.as_str());
        paths.filter(|path| path.rsplit('/').next() == Some(ignored::RULES_FILE))
    }

    /// What gains trust, and nobody has said yes to.
    pub fn asks(&self, trust: &Trust) -> Vec<Finding> {
        trust.without(self.made.findings.clone())
    }

    /// Pushes it, if somebody has said yes to all that takes one.
    ///
    /// # Errors
    /// [`PushError`]. After [`PushError::Git`] it may be there all the same: the same again tells.
    pub fn push(mut self, trust: &Trust) -> Result<Pushed, PushError> {
        let begun = Instant::now();
        let pushed = self.attempt(trust);
        let outcome = match &pushed {
            Ok((Standing::New, _)) => GitOutcome::Completed,
            Ok((Standing::AlreadyThere, _)) => GitOutcome::AlreadyThere,
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
        // What went wrong before tells more than that it can't be recorded.
        let (standing, base) = pushed?;
        recorded?;
        self.note.is_there = true;
        self.note.keep(self.order.base).map_err(note_failed)?;
        let wanted = self.order.pull_request.zip(base);
        let pull_request = wanted.map(|(order, base)| Wanted { opened: self.open(order, &base), base });
        Ok(Pushed { commit: self.made.commit.clone(), standing, pull_request })
    }

    pub(super) fn run_id(&self) -> Option<RunId> {
        self.order.attribution.run_id.clone()
    }
}

fn note_failed(source: io::Error) -> PushError {
    PushError::Note { source }
}
