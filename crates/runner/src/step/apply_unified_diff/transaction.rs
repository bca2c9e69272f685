//! Changing many files at once, or none.
//!
//! All new content is written first, beside the places it is meant for; until then nothing has changed and nothing
//! can be left behind but those drafts, which dropping the transaction removes. Then follow only renames and new
//! directories, each of which can be undone: what a file replaces is swapped with its draft, what is removed moves
//! aside. If one of them fails, those before it are undone in reverse.

mod placing;
mod undoing;

use super::parents::Parents;
use super::workspace_tree::open_file;
use crate::directory::{Directory, PathError};
use crate::failure_code::{Fault, code_of_io};
use crate::patch::RelativeName;
use crate::patch::plan::Content;
use belljar_contract::failure::FailureCode;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

/// A set of changes that is made whole or not at all.
pub(super) struct Transaction<'d> {
    parents: Parents<'d>,
    /// Prefix of all names of this transaction.
    prefix: String,
    named: usize,
    /// Permission bits that the umask removes from new files.
    umask: u32,
    drafts: Vec<StagedFile>,
    done: Vec<AppliedChange>,
}

/// Reason why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransactionError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("cannot {action} {path}")]
    Io {
        action: &'static str,
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot roll back the change of {path} after a failure: {cause}")]
    NotUndone {
        path: String,
        cause: Box<TransactionError>,
        #[source]
        source: io::Error,
    },
}

/// New content that is written but not yet in its place.
struct StagedFile {
    /// Present path.
    path: String,
    /// Path that it is meant for.
    target: String,
}

/// A completed change that may have to be undone.
enum AppliedChange {
    Moved { from: String, to: String },
    Swapped { draft: String, target: String },
    MadeDirectory { path: String },
}

// === impl Transaction ===

impl<'d> Transaction<'d> {
    pub(super) fn new(root: &'d Directory) -> Self {
        let prefix = format!(".belljar-{}-", uuid::Uuid::new_v4().simple());
        // It can only be read by setting it. No other thread is there to see that.
        let umask = rustix::process::umask(Mode::empty());
        rustix::process::umask(umask);
        Self {
            parents: Parents::new(root),
            prefix,
            named: 0,
            umask: umask.bits(),
            drafts: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Returns a transaction that stages for this one in another thread.
    pub(super) fn helper(&self) -> Self {
        // Larger than the number of names that a transaction takes itself.
        const BEYOND_OWN_NAMES: usize = 1 << 31;
        Self {
            parents: self.parents.anew(),
            prefix: self.prefix.clone(),
            named: self.named + BEYOND_OWN_NAMES,
            umask: self.umask,
            drafts: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Takes over the staged files of a helper.
    pub(super) fn absorb(&mut self, mut helper: Self) {
        self.drafts.append(&mut helper.drafts);
    }

    /// Writes the new content of the file at `target`.
    pub(super) fn stage(
        &mut self,
        target: &RelativeName,
        content: &Content,
        mode: u32,
    ) -> Result<(), TransactionError> {
        let target = target.as_str();
        let path = self.draft_path(target)?;
        let mut draft = File::from(self.create(&path, mode)?);
        self.drafts.push(StagedFile { path, target: target.to_owned() });
        let written = match content {
            Content::Bytes(bytes) => draft.write_all(bytes),
            Content::Before(source) => self.copy_into(&mut draft, source.as_str()),
        };
        let finished = written.and_then(|()| match mode & self.umask {
            0 => Ok(()),
            _ => Ok(rustix::fs::fchmod(&draft, Mode::from_raw_mode(mode))?),
        });
        finished.map_err(|source| io_error("write", target, source))
    }

    /// Removes files and puts all staged ones in their places.
    pub(super) fn commit(mut self, removed: &[RelativeName]) -> Result<(), TransactionError> {
        if let Err(cause) = self.make_changes(removed) {
            return Err(self.undo(cause));
        }
        self.sweep(removed);
        Ok(())
    }

    /// A fresh name in the directory of `target`, or in the nearest one above it that is there.
    fn draft_path(&mut self, target: &str) -> Result<String, TransactionError> {
        let mut beside = target;
        loop {
            let path = self.fresh_name_beside(beside);
            match (self.parents.of(&path), beside.rsplit_once('/')) {
                (Ok(_), _) => return Ok(path),
                (Err(error), Some((above, _))) if error.is_absent() || error.is_no_directory() => {
                    beside = above;
                }
                (Err(error), _) => return Err(error.into()),
            }
        }
    }

    fn fresh_name_beside(&mut self, path: &str) -> String {
        self.named += 1;
        let directory = directory_of(path);
        let separator = if directory.is_empty() { "" } else { "/" };
        format!("{directory}{separator}{}{}", self.prefix, self.named)
    }

    fn create(&mut self, path: &str, mode: u32) -> Result<OwnedFd, TransactionError> {
        let (parent, name) = self.parents.of(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(mode))
            .map_err(|error| io_error("create a file beside", path, error.into()))
    }

    fn copy_into(&mut self, draft: &mut File, source: &str) -> io::Result<()> {
        let (parent, name) = self.parents.of(source).map_err(io::Error::other)?;
        let (file, _) = open_file(parent, name)?;
        io::copy(&mut File::from(file), draft).map(drop)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        for draft in std::mem::take(&mut self.drafts) {
            self.remove(&draft.path);
        }
    }
}

fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

// === impl AppliedChange ===

impl AppliedChange {
    fn into_path(self) -> String {
        match self {
            Self::Moved { from: path, .. }
            | Self::Swapped { target: path, .. }
            | Self::MadeDirectory { path } => path,
        }
    }
}

// === impl TransactionError ===

fn io_error(action: &'static str, path: &str, source: io::Error) -> TransactionError {
    TransactionError::Io { action, path: path.to_owned(), source }
}

impl Fault for TransactionError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Path(error) => error.code(),
            Self::Io { source, .. } => code_of_io(source),
            Self::NotUndone { .. } => FailureCode::InternalError,
        }
    }
}
