//! Directories of a sandbox that has no root of its own: they lie anywhere on the host, and callers name them as in any
//! other sandbox: `/workspace`, `/tmp`, `/home/agent`.

use crate::backend::BackendError;
use crate::run::WorkspaceChoice;
use crate::state::RunFolder;
use crate::workspace::imprint::Imprint;
use crate::workspace::{COPY, copy};
use belljar_confine::plan::Identity;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::host_path::HostPath;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

/// The directories of one sandbox.
#[derive(Debug)]
pub(crate) struct SandboxDirectories {
    workspace: NamedDirectory,
    home: NamedDirectory,
    temporary: NamedDirectory,
    /// State of the workspace when it was made, if it is a copy.
    imprint: Option<Imprint>,
    /// True if the workspace is read-only.
    is_seen: bool,
}

/// A directory of the host that has another name for callers.
#[derive(Debug)]
pub(crate) struct NamedDirectory {
    name: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) directory: Directory,
}

/// A place that a caller has named.
#[derive(Debug)]
pub(crate) struct ResolvedPath<'r> {
    pub(crate) directory: &'r Directory,
    /// Below the directory; empty for the directory itself.
    pub(crate) path: PathBuf,
}

/// Writes a file that every user may read, into a home that no program has used yet.
fn put(path: &Path, content: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, content)
}

// === impl SandboxDirectories ===

impl SandboxDirectories {
    /// Makes them in the run's folder, except for a workspace that is worked on in place; with these files in the home.
    pub(crate) fn make(
        folder: &RunFolder,
        workspace: &WorkspaceChoice,
        files: &BTreeMap<String, String>,
        owner: Identity,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let make = |name| folder.make(name, owner);
        let (path, imprint) = match workspace {
            WorkspaceChoice::Direct(path) | WorkspaceChoice::Seen(path) => (path.clone(), None),
            WorkspaceChoice::Empty => (make(COPY)?, None),
            WorkspaceChoice::Copy(source) => {
                let made = make(COPY)?;
                let imprint =
                    copy::tree(&Directory::open_meant(source)?, &Directory::open_meant(&made)?, owner)?;
                (made, Some(imprint))
            }
        };
        let home = make("home")?;
        for (path, content) in files {
            put(&home.as_path().join(path), content)?;
        }
        Ok(Self {
            workspace: NamedDirectory::open("/workspace", &path)?,
            home: NamedDirectory::open("/home/agent", &home)?,
            temporary: NamedDirectory::open("/tmp", &make("tmp")?)?,
            imprint,
            is_seen: matches!(workspace, WorkspaceChoice::Seen(_)),
        })
    }

    pub(crate) fn workspace(&self) -> &NamedDirectory {
        &self.workspace
    }

    pub(crate) fn imprint(&self) -> Option<&Imprint> {
        self.imprint.as_ref()
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home.path
    }

    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary.path
    }

    /// Returns all rooms.
    pub(crate) fn all(&self) -> [&NamedDirectory; 3] {
        [&self.workspace, &self.home, &self.temporary]
    }

    /// Returns the rooms that programs may write in.
    pub(crate) fn writable(&self) -> impl Iterator<Item = &NamedDirectory> {
        self.all().into_iter().skip(usize::from(self.is_seen))
    }

    /// Returns the rooms that programs may only read.
    pub(crate) fn readable(&self) -> impl Iterator<Item = &NamedDirectory> {
        self.is_seen.then_some(&self.workspace).into_iter()
    }

    /// Finds a place that is named as in any sandbox.
    pub(crate) fn find(&self, inside: &str) -> Result<ResolvedPath<'_>, BackendError> {
        let failed = |errno: rustix::io::Errno| crate::archive::failed(inside)(errno.into());
        let plain =
            crate::archive::relative(Path::new(inside)).ok_or_else(|| failed(rustix::io::Errno::XDEV))?;
        let plain = Path::new("/").join(plain);
        let found = self.all().into_iter().find_map(|room| {
            let path = plain.strip_prefix(room.name).ok()?.to_owned();
            Some(ResolvedPath { directory: &room.directory, path })
        });
        found.ok_or_else(|| failed(rustix::io::Errno::NOENT))
    }

    /// Returns a working directory in the supervisor's form: below the workspace, so that the kernel checks that it really
    /// is. The workspace may be named as in any sandbox or by its path on the host.
    pub(crate) fn working_directory(&self, inside: &str) -> PathBuf {
        let path = Path::new(inside);
        let below = [Path::new(self.workspace.name), &self.workspace.path]
            .into_iter()
            .find_map(|workspace| path.strip_prefix(workspace).ok());
        match below {
            Some(below) if below.as_os_str().is_empty() => PathBuf::from("."),
            Some(below) => below.to_owned(),
            None => path.to_owned(),
        }
    }
}

// === impl NamedDirectory ===

impl NamedDirectory {
    fn open(name: &'static str, path: &HostPath) -> Result<Self, DirectoryError> {
        Ok(Self { name, path: path.as_path().to_owned(), directory: Directory::open_meant(path)? })
    }
}

// === impl ResolvedPath ===

impl ResolvedPath<'_> {
    /// Returns the path in a form that can be opened.
    pub(crate) fn openable(&self) -> &Path {
        if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path }
    }
}

/// Returns the owner of files where the user isn't changed: the user who runs this, inside and outside.
pub(crate) fn owner() -> Identity {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Identity { inside_uid: uid, inside_gid: gid, host_uid: uid, host_gid: gid }
}
