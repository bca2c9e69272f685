//! What a sandbox has left in a directory, read as files: by descriptors, through no link, names vetted, and git never asked.

use belljar_policy::git::{InvalidTreePath, TreePath, is_dot_git};
use belljar_policy::handoff::TELLING_BYTES;
use belljar_sandbox::directory::{Directory, DirectoryError, Name};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The files and links below a directory.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) entries: Vec<Entry>,
    /// What was passed over: repositories, and what is neither file, link nor directory.
    pub(super) left_out: Vec<String>,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) path: TreePath,
    pub(super) kind: Kind,
}

/// What it is, as git has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    File { is_executable: bool, size: u64 },
    Link { target: String },
}

/// How much there may be.
#[derive(Debug, Clone, Copy)]
pub struct TreeLimits {
    /// Files and links.
    pub files: usize,
    /// Bytes of all together.
    pub bytes: u64,
    /// Bytes of one.
    pub file_bytes: u64,
}

/// Why a directory can't be read as a tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A name can't be in a tree.
    #[error("{path:?} can't be in a repository")]
    Name {
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: InvalidTreePath,
    },
    /// Git goes by such a file, and by where a link leads.
    #[error("{path:?} is a link, and git would go by it")]
    Link {
        /// The path.
        path: String,
    },
    /// There is too much.
    #[error("there is more than may be pushed: {what}")]
    TooMuch {
        /// Of what.
        what: &'static str,
    },
    /// A file was written to while it was read.
    #[error("{path:?} was changed while it was read")]
    Changed {
        /// The path.
        path: String,
    },
    /// Something can't be read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

/// As many times more files there may be where some are left out.
const MORE: usize = 5;

/// The longest text of a link.
const LONGEST_LINK: usize = 4096;

// === impl TreeLimits ===

impl Default for TreeLimits {
    fn default() -> Self {
        Self { files: 200_000, bytes: 4 << 30, file_bytes: 256 << 20 }
    }
}

// === impl Tree ===

impl Tree {
    /// Looks at everything below a directory. No file is opened yet.
    pub(super) fn read(top: &Directory, limits: TreeLimits) -> Result<Self, TreeError> {
        let tree = Self::read_names(top, limits)?;
        tree.check(limits)?;
        Ok(tree)
    }

    /// The same where something of it is left out before it is [checked](Self::check): there may be more.
    pub(super) fn read_more(top: &Directory, limits: TreeLimits) -> Result<Self, TreeError> {
        Self::read_names(top, TreeLimits { files: limits.files * MORE, ..limits })
    }

    /// Whether there is no more of it than may be.
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

    /// Leaves out what is in the place of these paths, and below. Each of which there is something is noted as left out.
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

    fn read_names(top: &Directory, limits: TreeLimits) -> Result<Self, TreeError> {
        let mut tree = Self { entries: Vec::new(), left_out: Vec::new() };
        let mut pending = vec![PathBuf::new()];
        // Directories count, too: somebody may have made nothing else.
        let mut seen = 0;
        while let Some(below) = pending.pop() {
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
                if let Some(kind) = tree.note(top, &path, &name)? {
                    let path = vetted(&path)?;
                    tree.entries.push(Entry { path, kind });
                } else if name.kind == FileType::Directory && !is_own_repository(&name) {
                    pending.push(path);
                }
                if tree.entries.len() > limits.files {
                    return Err(TreeError::TooMuch { what: "files" });
                }
            }
        }
        tree.entries.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(tree)
    }

    /// What is there, if it comes into the tree.
    fn note(&mut self, top: &Directory, path: &Path, name: &Name) -> Result<Option<Kind>, TreeError> {
        let shown = || path.display().to_string();
        if is_own_repository(name) {
            // A repository, or the file that says where one is: nobody looks into it. That at the top is to be expected.
            if path.components().count() > 1 || name.kind != FileType::Directory {
                self.left_out.push(shown());
            }
            return Ok(None);
        }
        // Also of what is passed over: whoever makes such a name has something in mind.
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
                    .map(|target| Some(Kind::Link { target }))
                    .ok_or_else(|| TreeError::Name { path: shown(), source })
            }
            FileType::RegularFile => {
                // What has gone meanwhile is gone.
                let Some(stat) = top.stat(path)? else { return Ok(None) };
                let (is_executable, size) = (stat.st_mode & 0o100 != 0, stat.st_size.unsigned_abs());
                Ok(Some(Kind::File { is_executable, size }))
            }
            _ => {
                self.left_out.push(shown());
                Ok(None)
            }
        }
    }
}

// === impl Entry ===

impl Entry {
    /// Git's mode.
    pub(super) fn mode(&self) -> &'static str {
        match self.kind {
            Kind::File { is_executable: false, .. } => "100644",
            Kind::File { is_executable: true, .. } => "100755",
            Kind::Link { .. } => "120000",
        }
    }

    /// Writes its content behind its length, as `git fast-import` reads it. Returns the beginning of the content of a file.
    pub(super) fn write(&self, top: &Directory, to: &mut dyn Write) -> io::Result<Vec<u8>> {
        let (mut content, length): (Box<dyn Read>, u64) = match &self.kind {
            Kind::Link { target } => (Box::new(target.as_bytes()), target.len() as u64),
            Kind::File { .. } => {
                let file = top.open_file(Path::new(self.path.as_str()))?;
                let length = file.metadata()?.len();
                // It was looked at a while ago, and bounds hold.
                if !matches!(self.kind, Kind::File { size, .. } if size == length) {
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
            Kind::Link { .. } => Ok(Vec::new()),
            Kind::File { .. } => Ok(begin),
        }
    }
}

// === impl Kind ===

impl Kind {
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

/// `.git`, in that spelling alone: whoever writes it otherwise doesn't mean a repository.
fn is_own_repository(name: &Name) -> bool {
    name.name.as_bytes() == b".git"
}

/// Files that git itself goes by, and doesn't follow links for.
fn is_heeded(name: &Name) -> bool {
    let folded = belljar_policy::git::folded(&name.name.to_string_lossy());
    matches!(folded.as_str(), ".gitmodules" | ".gitattributes" | ".gitignore" | ".mailmap")
        || is_dot_git(&folded)
}

#[cfg(test)]
mod tests;
