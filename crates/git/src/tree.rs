//! Reads a sandbox's directory as files: by descriptors, without following links, with vetted names, and without git.

use belljar_files::directory::{Directory, DirectoryError, Name};
use belljar_files::tree::TreeLimits;
use belljar_policy::git::{InvalidTreePath, TreePath, is_dot_git};
use belljar_policy::handoff::TELLING_BYTES;
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The files and links below a directory.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) entries: Vec<GitTreeEntry>,
    /// Skipped paths: repositories, and entries that are neither file, link nor directory.
    pub(super) left_out: Vec<String>,
}

/// A file or a link.
#[derive(Debug)]
pub(super) struct GitTreeEntry {
    pub(super) path: TreePath,
    pub(super) kind: GitTreeEntryKind,
}

/// Kind of an entry, as in git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GitTreeEntryKind {
    File { is_executable: bool, size: u64 },
    Link { target: String },
}

/// Reasons why a directory can't be read as a tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A name is not allowed in a tree.
    #[error("{path:?} can't be in a repository")]
    Name {
        /// The path.
        path: String,
        /// The cause.
        #[source]
        source: InvalidTreePath,
    },
    /// Git obeys files of that name, so they must not be links.
    #[error("{path:?} is a link, and git would go by it")]
    Link {
        /// The path.
        path: String,
    },
    /// A limit is exceeded.
    #[error("there is more than may be pushed: {what}")]
    TooMuch {
        /// The limited quantity.
        what: &'static str,
    },
    /// A file changed while it was read.
    #[error("{path:?} was changed while it was read")]
    Changed {
        /// The path.
        path: String,
    },
    /// A directory can't be read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The caller canceled, or the time limit passed.
    #[error("reading the files was canceled")]
    Canceled,
}

/// Factor by which the number of files may exceed its limit before ignored files are left out.
const MORE: usize = 5;

/// Maximum length of all paths and targets of links together, in bytes.
const MOST_PATH_BYTES: usize = 128 << 20;

/// Maximum length of a link's target, in bytes.
const LONGEST_LINK: usize = 4096;

// === impl Tree ===

impl Tree {
    /// Lists all files below a directory, within the limits. Opens no file yet.
    pub(super) fn read(
        top: &Directory,
        limits: TreeLimits,
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<Self, TreeError> {
        let tree = Self::read_names(top, limits, is_canceled)?;
        tree.check(limits)?;
        Ok(tree)
    }

    /// Lists all files below a directory, for a caller that leaves some out and then [checks](Self::check) the limits: more
    /// are listed.
    pub(super) fn read_more(
        top: &Directory,
        limits: TreeLimits,
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<Self, TreeError> {
        Self::read_names(top, TreeLimits { files: limits.files * MORE, ..limits }, is_canceled)
    }

    /// Checks the limits.
    pub(super) fn check(&self, limits: TreeLimits) -> Result<(), TreeError> {
        let too_much = |what| Err(TreeError::TooMuch { what });
        let mut bytes = 0;
        for entry in &self.entries {
            let size = entry.kind.size();
            bytes += size;
            if size > limits.file_bytes {
                return too_much("bytes in one file");
            }
        }
        match (self.entries.len() > limits.files, bytes > limits.bytes) {
            (true, _) => too_much("files"),
            (_, true) => too_much("bytes"),
            _ => Ok(()),
        }
    }

    /// Removes the entries at these paths and below. Each path that had entries is added to the skipped ones.
    pub(super) fn leave_out_below<'p>(&mut self, paths: impl Iterator<Item = &'p str>) {
        for path in paths {
            let before = self.entries.len();
            self.entries.retain(|entry| {
                let rest = entry.path.as_str().strip_prefix(path);
                !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            if self.entries.len() < before {
                self.left_out.push(path.to_owned());
            }
        }
    }

    fn read_names(
        top: &Directory,
        limits: TreeLimits,
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<Self, TreeError> {
        let mut tree = Self { entries: Vec::new(), left_out: Vec::new() };
        let mut pending = vec![PathBuf::new()];
        // Directories count, too: an attacker could make endlessly many.
        let mut seen = 0;
        // All paths are held in memory, also those that are skipped: hard links make many long ones at no cost of disk space.
        let mut path_bytes = 0;
        while let Some(below) = pending.pop() {
            if is_canceled() {
                return Err(TreeError::Canceled);
            }
            let names = match below.as_os_str().is_empty() {
                true => top.names(limits.files)?,
                false => top.open(&below)?.names(limits.files)?,
            };
            seen += names.len();
            if seen > limits.files * 2 {
                return Err(TreeError::TooMuch { what: "names" });
            }
            for name in names {
                let path = below.join(OsStr::from_bytes(name.name.as_bytes()));
                path_bytes += path.as_os_str().len();
                if let Some(kind) = tree.note(top, &path, &name)? {
                    if let GitTreeEntryKind::Link { target } = &kind {
                        path_bytes += target.len();
                    }
                    let path = vetted(&path)?;
                    tree.entries.push(GitTreeEntry { path, kind });
                } else if name.kind == FileType::Directory && !is_own_repository(&name) {
                    pending.push(path);
                }
                if tree.entries.len() > limits.files {
                    return Err(TreeError::TooMuch { what: "files" });
                }
                if path_bytes > MOST_PATH_BYTES {
                    return Err(TreeError::TooMuch { what: "bytes in paths" });
                }
            }
        }
        tree.entries.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(tree)
    }

    /// Returns the kind of an entry that belongs in the tree.
    fn note(
        &mut self,
        top: &Directory,
        path: &Path,
        name: &Name,
    ) -> Result<Option<GitTreeEntryKind>, TreeError> {
        let shown = || path.display().to_string();
        if is_own_repository(name) {
            // A repository, or a file that names one: it is skipped. The one at the top is expected.
            if path.components().count() > 1 || name.kind != FileType::Directory {
                self.left_out.push(shown());
            }
            return Ok(None);
        }
        // Skipped entries are vetted, too: such a name suggests an attack.
        vetted(path)?;
        match name.kind {
            FileType::Directory => Ok(None),
            FileType::Symlink => {
                if is_heeded(name) {
                    return Err(TreeError::Link { path: shown() });
                }
                let target = top.read_link(path)?;
                let target = target
                    .into_string()
                    .ok()
                    .filter(|target| target.len() <= LONGEST_LINK && !target.chars().any(char::is_control));
                let source = InvalidTreePath::Control;
                target
                    .map(|target| Some(GitTreeEntryKind::Link { target }))
                    .ok_or_else(|| TreeError::Name { path: shown(), source })
            }
            FileType::RegularFile => {
                // The file may be gone meanwhile.
                let Some(stat) = top.stat(path)? else { return Ok(None) };
                let (is_executable, size) = (stat.st_mode & 0o100 != 0, stat.st_size.unsigned_abs());
                Ok(Some(GitTreeEntryKind::File { is_executable, size }))
            }
            _ => {
                self.left_out.push(shown());
                Ok(None)
            }
        }
    }
}

// === impl GitTreeEntry ===

impl GitTreeEntry {
    /// Returns git's mode.
    pub(super) fn mode(&self) -> &'static str {
        match self.kind {
            GitTreeEntryKind::File { is_executable: false, .. } => "100644",
            GitTreeEntryKind::File { is_executable: true, .. } => "100755",
            GitTreeEntryKind::Link { .. } => "120000",
        }
    }

    /// Writes its length and content, as `git fast-import` reads it. Returns the first bytes of a file.
    pub(super) fn write(&self, top: &Directory, to: &mut dyn Write) -> io::Result<Vec<u8>> {
        let (mut content, length): (Box<dyn Read>, u64) = match &self.kind {
            GitTreeEntryKind::Link { target } => (Box::new(target.as_bytes()), target.len() as u64),
            GitTreeEntryKind::File { .. } => {
                let file = top.open_file(Path::new(self.path.as_str()))?;
                let length = file.metadata()?.len();
                // The size was checked against the limits before, so it must not have changed.
                if !matches!(self.kind, GitTreeEntryKind::File { size, .. } if size == length) {
                    return Err(changed(&self.path));
                }
                (Box::new(file), length)
            }
        };
        writeln!(to, "data {length}")?;
        let mut begin = Vec::new();
        content.by_ref().take(length.min(TELLING_BYTES as u64)).read_to_end(&mut begin)?;
        to.write_all(&begin)?;
        let begun = begin.len() as u64;
        let written = begun + io::copy(&mut content.by_ref().take(length - begun), to)?;
        if written != length {
            return Err(changed(&self.path));
        }
        to.write_all(b"\n")?;
        match self.kind {
            GitTreeEntryKind::Link { .. } => Ok(Vec::new()),
            GitTreeEntryKind::File { .. } => Ok(begin),
        }
    }
}

// === impl GitTreeEntryKind ===

impl GitTreeEntryKind {
    fn size(&self) -> u64 {
        match self {
            Self::File { size, .. } => *size,
            Self::Link { target } => target.len() as u64,
        }
    }
}

fn changed(path: &TreePath) -> io::Error {
    io::Error::other(TreeError::Changed { path: path.as_str().to_owned() })
}

fn vetted(path: &Path) -> Result<TreePath, TreeError> {
    TreePath::parse(path.as_os_str().as_bytes())
        .map_err(|source| TreeError::Name { path: path.display().to_string(), source })
}

/// Returns true for `.git` in exactly that spelling. Other spellings are rejected by [`vetted`].
fn is_own_repository(name: &Name) -> bool {
    name.name.as_bytes() == b".git"
}

/// Returns true for files that git itself obeys, and doesn't follow links for.
fn is_heeded(name: &Name) -> bool {
    let folded = belljar_policy::git::folded(&name.name.to_string_lossy());
    matches!(folded.as_str(), ".gitmodules" | ".gitattributes" | ".gitignore" | ".mailmap")
        || is_dot_git(&folded)
}

#[cfg(test)]
mod tests;
