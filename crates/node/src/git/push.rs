//! A sandbox's work becomes a branch somewhere else: a new one, once, or none.
//!
//! ```text
//! noted (when) ─► files read ─► commit, here ─► handed off? ─► recorded ─► what is there? ─┬─ nothing ─► pushed, if still nothing
//!                                                                                          ├─ the very same ─► done before
//!                                                                                          └─ another ─► refused
//! ```
//! Killed anywhere on the way, the same again makes the same commit: its time was noted before it was made. And the server
//! takes the branch only where there is none, so whoever comes second finds what the first has done.

use super::base::{Base, BaseError, is_object_id, write_durably};
use super::commit::{self, Attribution, CommitError, Differing, Made, Words};
use super::environment::HostEnv;
use super::journal::Journal;
use super::runner::{Git, GitError};
use super::tree::{Tree, TreeError, TreeLimits};
use crate::book::BookError;
use belljar_contract::git::{GitOutcome, PushBegun, PushRecord};
use belljar_contract::id::RunId;
use belljar_contract::inference::{Excerpt, ReasonCode};
use belljar_egress::git::{PinError, Pinned};
use belljar_egress::upstream::names::NameSource;
use belljar_policy::git::{BranchName, GitRules, Remote};
use belljar_policy::handoff::{Finding, Trust};
use belljar_sandbox::directory::Directory;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
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
    /// What git is started from.
    pub env: &'p HostEnv,
    /// Where the audit is.
    pub state: &'p Path,
    /// Whether somebody wants it to stop.
    pub is_canceled: &'p dyn Fn() -> bool,
}

/// A commit that is ready to go, and has gone nowhere yet. Nobody else pushes from the same clone meanwhile.
pub struct Prepared<'p> {
    order: PushOrder<'p>,
    made: Made,
    left_out: Vec<String>,
    note: Note,
    _lock: File,
}

/// Where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// The commit.
    pub commit: String,
    /// Whether it was there before.
    pub standing: Standing,
}

/// Whether it was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It wasn't.
    New,
    /// The very same commit was, by an earlier attempt.
    AlreadyThere,
}

/// Why it isn't there.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// What was left can't be read as a tree.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// There is no commit.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// It may not go there.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// Somebody has to say yes first.
    #[error("{} of the paths gain trust where they go, and nobody has said yes to that", findings.len())]
    Handoff {
        /// Which, and why.
        findings: Vec<Finding>,
    },
    /// Others build on that branch.
    #[error("{branch} is the default branch of {remote}; nothing of a sandbox is pushed there")]
    Default {
        /// The branch.
        branch: BranchName,
        /// Where.
        remote: Remote,
    },
    /// There is such a branch, and it is something else.
    #[error("there is a branch {branch} already, at {found}; nothing was pushed")]
    Taken {
        /// The branch.
        branch: BranchName,
        /// What it is.
        found: String,
    },
    /// Git can't do its part.
    #[error("can't push")]
    Git(#[from] GitError),
    /// The clone can't be used.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// It can't be recorded, and so it doesn't go out.
    #[error(transparent)]
    Book(#[from] BookError),
    /// What is under way can't be noted.
    #[error("can't note what is under way")]
    Note {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Somebody else pushes from the same clone.
    #[error("somebody else is pushing from the same clone")]
    Busy,
}

/// What is known of a push before it begins. It stays: whoever does it again takes its time from there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    remote: String,
    branch: String,
    /// The time in the commit.
    at: Timestamp,
    /// The commit, once it is made.
    commit: Option<String>,
    /// Whether it is known to be there.
    is_there: bool,
}

/// What is at a remote.
struct Found {
    default: Option<String>,
    commit: Option<String>,
}

const LOCK: &str = "pushing";

/// So many paths that gained trust are recorded by name.
const MOST_NAMED: usize = 100;

// === impl PushOrder ===

impl<'p> PushOrder<'p> {
    /// Makes the commit, and looks at what is in it. Nothing goes out.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn prepare(self) -> Result<Prepared<'p>, PushError> {
        let folder = self.base.folder();
        let lock = File::options().create(true).append(true).open(folder.join(LOCK)).map_err(note_failed)?;
        lock.try_lock().map_err(|_| PushError::Busy)?;
        let mut note = self.noted()?;
        let tree = Tree::read(self.directory, self.limits)?;
        let git = Git::bare(&self.base.repository(), self.env, self.is_canceled);
        let words = Words { attribution: &self.attribution, message: self.message, at: note.at };
        let made = commit::make(&git, self.base, (self.directory, &tree), &words)?;
        belljar_failpoint::reached("git_commit.made");
        note.commit = Some(made.commit.clone());
        Ok(Prepared { made, left_out: tree.left_out, note, order: self, _lock: lock })
    }

    /// The note of an earlier attempt, or a new one.
    fn noted(&self) -> Result<Note, PushError> {
        let (remote, branch) = (self.remote.to_string(), self.branch.to_string());
        let name = note_name(&remote, &branch);
        if let Ok(bytes) = std::fs::read(self.base.folder().join(&name))
            && let Ok(note) = serde_json::from_slice(&bytes)
        {
            return Ok(note);
        }
        let note = Note { remote, branch, at: Timestamp::now(), commit: None, is_there: false };
        belljar_failpoint::before("git_note");
        write_durably(self.base.folder(), &name, &note).map_err(note_failed)?;
        belljar_failpoint::after("git_note");
        Ok(note)
    }
}

// === impl Prepared ===

impl Prepared<'_> {
    /// The commit.
    pub fn commit(&self) -> &str {
        &self.made.commit
    }

    /// The paths that differ from what was cloned, each with what has become of it.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&str, &'static str)> {
        self.made.files.iter().map(|file: &Differing| (file.path.as_str(), file.change()))
    }

    /// What was passed over: repositories, pipes and the like.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
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
            Ok(Pushed { standing: Standing::New, .. }) => GitOutcome::Completed,
            Ok(Pushed { standing: Standing::AlreadyThere, .. }) => GitOutcome::AlreadyThere,
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
        let pushed = pushed?;
        recorded?;
        self.note.is_there = true;
        let name = note_name(&self.note.remote, &self.note.branch);
        write_durably(self.order.base.folder(), &name, &self.note).map_err(note_failed)?;
        Ok(pushed)
    }

    fn attempt(&self, trust: &Trust) -> Result<Pushed, PushError> {
        let findings = self.asks(trust);
        if !findings.is_empty() {
            return Err(PushError::Handoff { findings });
        }
        let PushOrder { remote, rules, names, branch, env, state, is_canceled, .. } = &self.order;
        let pinned = Pinned::pin(remote.clone(), rules, names.clone())?;
        belljar_failpoint::before("git_push_begun");
        Journal::of(state).push_begun(&self.begun(&pinned))?;
        belljar_failpoint::after("git_push_begun");
        let git = Git::bare(&self.order.base.repository(), env, *is_canceled);
        let found = look(&git, &pinned, branch)?;
        if found.default.as_deref() == Some(branch.reference().as_str()) {
            return Err(PushError::Default { branch: branch.clone(), remote: remote.clone() });
        }
        if let Some(standing) = self.compared(found)? {
            return Ok(Pushed { commit: self.made.commit.clone(), standing });
        }
        belljar_failpoint::before("git_push");
        let sent = send(&git, &pinned, (branch, &self.made.commit));
        belljar_failpoint::after("git_push");
        if let Err(error) = sent {
            // Somebody may have come before, or the answer alone was lost.
            return match look(&git, &pinned, branch)
                .map_err(PushError::from)
                .and_then(|found| self.compared(found))
            {
                Ok(Some(_)) => Ok(Pushed { commit: self.made.commit.clone(), standing: Standing::New }),
                Err(taken @ PushError::Taken { .. }) => Err(taken),
                _ => Err(error.into()),
            };
        }
        Ok(Pushed { commit: self.made.commit.clone(), standing: Standing::New })
    }

    /// Whether what is there is the very same; nothing if nothing is.
    fn compared(&self, found: Found) -> Result<Option<Standing>, PushError> {
        match found.commit {
            None => Ok(None),
            Some(commit) if commit == self.made.commit => Ok(Some(Standing::AlreadyThere)),
            Some(found) => Err(PushError::Taken { branch: self.order.branch.clone(), found }),
        }
    }

    fn begun(&self, pinned: &Pinned) -> PushBegun {
        let trusted = self.made.findings.iter().take(MOST_NAMED);
        PushBegun {
            run_id: self.run_id(),
            remote: Excerpt::of(&self.order.remote.to_string()),
            branch: Excerpt::of(self.order.branch.as_str()),
            commit: Excerpt::of(&self.made.commit),
            base: Excerpt::of(&self.order.base.record().commit),
            addresses: pinned.addresses().to_vec(),
            files: self.made.files.len() as u64,
            trusted: trusted.map(|finding| Excerpt::of(&finding.path)).collect(),
            started_at: Timestamp::now(),
        }
    }

    fn run_id(&self) -> Option<RunId> {
        self.order.attribution.run_id.clone()
    }
}

/// What is at the remote: its default branch, and the branch that is meant.
fn look(git: &Git<'_>, pinned: &Pinned, branch: &BranchName) -> Result<Found, GitError> {
    let (url, reference) = (pinned.remote().to_string(), branch.reference());
    let said = git.reach(pinned, &["ls-remote", "--quiet", "--symref", "--", &url, "HEAD", &reference])?;
    let said = String::from_utf8_lossy(&said);
    let unreadable = || GitError::Unreadable { step: "ls-remote".to_owned() };
    let mut found = Found { default: None, commit: None };
    for line in said.lines() {
        let (what, name) = line.split_once('\t').ok_or_else(unreadable)?;
        match what.strip_prefix("ref: ") {
            Some(default) if name == "HEAD" => found.default = Some(default.to_owned()),
            None if name == reference && is_object_id(what) => found.commit = Some(what.to_owned()),
            None if name == reference => return Err(unreadable()),
            _ => {}
        }
    }
    Ok(found)
}

/// Sends it, for a branch that isn't there: the lease expects nothing, and the server is told so.
fn send(git: &Git<'_>, pinned: &Pinned, (branch, commit): (&BranchName, &str)) -> Result<(), GitError> {
    let (url, reference) = (pinned.remote().to_string(), branch.reference());
    let lease = format!("--force-with-lease={reference}:");
    let refspec = format!("{commit}:{reference}");
    let push = [
        "push",
        "--porcelain",
        "--quiet",
        "--no-verify",
        "--no-follow-tags",
        "--no-signed",
        "--recurse-submodules=no",
        "--atomic",
        &lease,
        "--",
        &url,
        &refspec,
    ];
    git.reach(pinned, &push).map(|_| ())
}

fn note_name(remote: &str, branch: &str) -> String {
    let hash = Sha256::digest(format!("{remote}\n{branch}").as_bytes());
    let hex: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("push-{hex}.json")
}

fn note_failed(source: io::Error) -> PushError {
    PushError::Note { source }
}

// === impl PushError ===

impl PushError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Tree(TreeError::Name { .. }) => "name_not_allowed",
            Self::Tree(TreeError::Link { .. }) => "link_not_allowed",
            Self::Tree(TreeError::TooMuch { .. }) => "too_much",
            Self::Tree(TreeError::Changed { .. } | TreeError::Directory(_)) => "files_unreadable",
            Self::Commit(CommitError::Unchanged) => "nothing_to_push",
            Self::Commit(CommitError::Git(error)) | Self::Git(error) => error.code(),
            Self::Pin(error) => error.code(),
            Self::Handoff { .. } => "handoff_not_trusted",
            Self::Default { .. } => "default_branch",
            Self::Taken { .. } => "branch_taken",
            Self::Base(_) => "not_cloned",
            Self::Book(_) => "recording_unavailable",
            Self::Note { .. } => "note_unavailable",
            Self::Busy => "busy",
        }
    }

    /// Whether it was refused here, by what is allowed.
    pub fn is_denial(&self) -> bool {
        matches!(
            self,
            Self::Tree(TreeError::Name { .. } | TreeError::Link { .. } | TreeError::TooMuch { .. })
                | Self::Pin(PinError::Denied(_))
                | Self::Handoff { .. }
                | Self::Default { .. }
        )
    }
}
