//! Changing many files at once, or none.
//!
//! All new content is written first, beside the places it is meant for; until then nothing has changed and nothing
//! can be left behind but those drafts, which dropping the transaction removes. Then follow only renames and new
//! directories, each of which can be undone: what a file replaces is swapped with its draft, what is removed moves
//! aside. If one of them fails, those before it are undone in reverse.

use super::parents::Parents;
use super::workspace_tree::open_file;
use crate::directory::{Directory, PathError};
use crate::fault::{Fault, code_of_io};
use crate::patch::RelativeName;
use crate::patch::plan::Content;
use belljar_contract::failure::FailureCode;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A set of changes that is made whole or not at all.
pub(super) struct Transaction<'d> {
    parents: Parents<'d>,
    /// What all names that are ours begin with.
    prefix: String,
    named: usize,
    /// The permission bits that new files don't get by themselves.
    umask: u32,
    drafts: Vec<Draft>,
    done: Vec<Done>,
}

/// Why nothing was changed.
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
    #[error("cannot undo what was done to {path}, after this failed: {cause}")]
    NotUndone {
        path: String,
        cause: Box<TransactionError>,
        #[source]
        source: io::Error,
    },
}

/// New content, written but not yet in its place.
struct Draft {
    /// Where it is now.
    path: String,
    /// Where it is meant for.
    target: String,
}

/// One thing that was done and may have to be undone.
enum Done {
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

    /// Writes what is to be the file at `target`.
    pub(super) fn stage(
        &mut self,
        target: &RelativeName,
        content: &Content,
        mode: u32,
    ) -> Result<(), TransactionError> {
        let target = target.as_str();
        let path = self.draft_path(target)?;
        let mut draft = File::from(self.create(&path, mode)?);
        self.drafts.push(Draft { path, target: target.to_owned() });
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

    fn make_changes(&mut self, removed: &[RelativeName]) -> Result<(), TransactionError> {
        for path in removed {
            self.move_aside(path.as_str())?;
        }
        for number in 0..self.drafts.len() {
            let (draft, target) = (self.drafts[number].path.clone(), self.drafts[number].target.clone());
            self.put(draft, target)?;
        }
        Ok(())
    }

    /// Puts a draft in its place. What is there, an emptied directory perhaps, gets the draft's name.
    fn put(&mut self, draft: String, target: String) -> Result<(), TransactionError> {
        match self.rename(&draft, &target, RenameFlags::EXCHANGE) {
            Ok(()) => {
                self.done.push(Done::Swapped { draft, target });
                return Ok(());
            }
            Err(Errno::NOENT | Errno::NOTDIR) => self.make_parents(&target)?,
            // The file system can't swap.
            Err(Errno::INVAL) => match self.move_aside(&target) {
                Err(TransactionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    self.make_parents(&target)?;
                }
                other => other?,
            },
            Err(error) => return Err(io_error("replace", &target, error.into())),
        }
        self.rename(&draft, &target, RenameFlags::empty())
            .map_err(|error| io_error("create", &target, error.into()))?;
        self.done.push(Done::Moved { from: draft, to: target });
        Ok(())
    }

    fn move_aside(&mut self, path: &str) -> Result<(), TransactionError> {
        let aside = self.fresh_name_beside(path);
        self.rename(path, &aside, RenameFlags::empty())
            .map_err(|error| io_error("remove", path, error.into()))?;
        self.done.push(Done::Moved { from: path.to_owned(), to: aside });
        Ok(())
    }

    fn make_parents(&mut self, target: &str) -> Result<(), TransactionError> {
        for (end, _) in target.match_indices('/') {
            let path = &target[..end];
            let (parent, name) = self.parents.of(path)?;
            match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => self.done.push(Done::MadeDirectory { path: path.to_owned() }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(io_error("make directory", path, error.into())),
            }
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str, flags: RenameFlags) -> Result<(), Errno> {
        let as_errno = |error: PathError| error.errno().unwrap_or(Errno::IO);
        if directory_of(from) == directory_of(to) {
            let (parent, from) = self.parents.of(from).map_err(as_errno)?;
            return rustix::fs::renameat_with(parent, from, parent, name_of(to), flags);
        }
        let target = self.parents.open_parent(to).map_err(as_errno)?;
        let (source, from) = self.parents.of(from).map_err(as_errno)?;
        rustix::fs::renameat_with(source, from, target, name_of(to), flags)
    }

    /// Undoes everything, the last first, and returns why.
    fn undo(&mut self, cause: TransactionError) -> TransactionError {
        let mut not_undone = None;
        self.parents.forget();
        while let Some(done) = self.done.pop() {
            let undone = match &done {
                Done::Moved { from, to } => self.rename(to, from, RenameFlags::empty()),
                Done::Swapped { draft, target } => self.rename(draft, target, RenameFlags::EXCHANGE),
                Done::MadeDirectory { path } => self.remove_directory(path),
            };
            if let Err(error) = undone {
                not_undone = not_undone.or(Some((done.into_path(), error)));
            }
            self.parents.forget();
        }
        match not_undone {
            None => cause,
            Some((path, error)) => {
                TransactionError::NotUndone { path, cause: Box::new(cause), source: error.into() }
            }
        }
    }

    /// Removes what was replaced or moved aside, and the directories that are empty by that. The changes are made:
    /// what can't be removed stays, and does no harm.
    fn sweep(&mut self, removed: &[RelativeName]) {
        self.parents.forget();
        self.drafts.clear();
        for done in std::mem::take(&mut self.done) {
            match done {
                Done::Swapped { draft: path, .. } => self.remove(&path),
                Done::Moved { to: path, .. } if self.is_ours(&path) => self.remove(&path),
                Done::Moved { .. } | Done::MadeDirectory { .. } => {}
            }
        }
        for path in removed {
            let above: Vec<&str> =
                path.as_str().match_indices('/').map(|(end, _)| &path.as_str()[..end]).collect();
            for directory in above.into_iter().rev() {
                if self.remove_directory(directory).is_err() {
                    break;
                }
                self.parents.forget();
            }
        }
    }

    fn is_ours(&self, path: &str) -> bool {
        name_of(path).starts_with(&self.prefix)
    }

    fn remove(&mut self, path: &str) {
        let prefix = self.prefix.clone();
        if let Ok((parent, name)) = self.parents.of(path)
            && rustix::fs::unlinkat(parent, name, AtFlags::empty()) == Err(Errno::ISDIR)
        {
            let _ = remove_emptied(parent, name, &prefix);
        }
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), Errno> {
        let (parent, name) = self.parents.of(path).map_err(|error| error.errno().unwrap_or(Errno::IO))?;
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        for draft in std::mem::take(&mut self.drafts) {
            self.remove(&draft.path);
        }
    }
}

/// Removes a directory in which there is nothing but what was moved aside, and other such directories. Anything else
/// stays, and with it the directory.
fn remove_emptied(parent: &OwnedFd, name: &Path, prefix: &str) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes().starts_with(prefix.as_bytes()) {
            rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
        } else if !matches!(name.to_bytes(), b"." | b"..") && entry.file_type() == FileType::Directory {
            remove_emptied(&directory, Path::new(OsStr::from_bytes(name.to_bytes())), prefix)?;
        }
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

// === impl Done ===

impl Done {
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
