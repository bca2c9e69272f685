//! Atomic replacement of a file's content: a reader sees the old content or the new, never a mixture.

use super::{Directory, PathError, require_regular};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

/// New content of a file, with options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replacement<'c> {
    pub(crate) content: &'c [u8],
    /// Permission bits; unset for those of the file that is replaced, else 0644.
    pub(crate) mode: Option<u32>,
    /// Create missing directories.
    pub(crate) create_parents: bool,
    /// Allow that the file exists.
    pub(crate) overwrite: bool,
}

/// Result of a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplacedFile {
    /// True if the file is new.
    pub(crate) created: bool,
    /// Its permission bits.
    pub(crate) mode: u32,
}

const MODE_OF_NEW_FILES: u32 = 0o644;

/// A file beside the one that is to be replaced; gone when dropped, unless it was published.
struct TemporaryFile<'d> {
    directory: &'d OwnedFd,
    name: String,
    published: bool,
}

// === impl Directory ===

impl Directory {
    /// Replaces or creates the file at `path`.
    pub(crate) fn replace_file(
        &self,
        path: &Path,
        replacement: &Replacement<'_>,
    ) -> Result<ReplacedFile, PathError> {
        let (parent, name) = match self.locate_parent(path) {
            Err(PathError::Io { source, .. })
                if replacement.create_parents && source.kind() == std::io::ErrorKind::NotFound =>
            {
                self.make_parents(path)?;
                self.locate_parent(path)?
            }
            other => other?,
        };
        let existing = existing_file(&parent, name, path)?;
        if existing.is_some() && !replacement.overwrite {
            return Err(PathError::Exists { path: path.to_owned() });
        }
        let kept_mode = existing.map_or(MODE_OF_NEW_FILES, |stat| stat.st_mode & 0o777);
        let mode = replacement.mode.unwrap_or(kept_mode);
        let mut draft = TemporaryFile::write(&parent, replacement.content, mode)
            .map_err(|error| PathError::io("write", path, error))?;
        match draft.publish(name, replacement.overwrite) {
            Ok(()) => Ok(ReplacedFile { created: existing.is_none(), mode }),
            Err(Errno::EXIST) => Err(PathError::Exists { path: path.to_owned() }),
            Err(Errno::ISDIR) => Err(PathError::IsDirectory { path: path.to_owned() }),
            Err(error) => Err(PathError::io("replace", path, error)),
        }
    }
}

/// The regular file of that name, if there is one; anything else there is refused. A name that changes its meaning
/// after this does no harm: renaming onto a link replaces the link.
fn existing_file(parent: &OwnedFd, name: &Path, path: &Path) -> Result<Option<Stat>, PathError> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => require_regular(&stat, path).map(|()| Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(PathError::io("inspect", path, error)),
    }
}

// === impl TemporaryFile ===

impl<'d> TemporaryFile<'d> {
    fn write(directory: &'d OwnedFd, content: &[u8], mode: u32) -> std::io::Result<Self> {
        let name = format!(".belljar-{}", uuid::Uuid::new_v4().simple());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Permissions are set at creation, with the umask cleared. Under a backend where only a supervisor changes
        // permissions on behalf of programs, it can't do that for a process that is not dumpable, such as this one. No
        // other thread creates files or starts a program meanwhile.
        let umask = rustix::process::umask(Mode::empty());
        let opened = rustix::fs::openat(directory, &name, flags, Mode::from_raw_mode(mode));
        rustix::process::umask(umask);
        let mut file = File::from(opened?);
        let draft = Self { directory, name, published: false };
        file.write_all(content)?;
        Ok(draft)
    }

    fn publish(&mut self, name: &Path, overwrite: bool) -> Result<(), Errno> {
        if overwrite {
            rustix::fs::renameat(self.directory, &self.name, self.directory, name)?;
            self.published = true;
            return Ok(());
        }
        let renamed = rustix::fs::renameat_with(
            self.directory,
            &self.name,
            self.directory,
            name,
            RenameFlags::NOREPLACE,
        );
        match renamed {
            // The file system can't rename without replacing; a second link to the draft, which dropping it leaves
            // alone, has the same effect.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::linkat(self.directory, &self.name, self.directory, name, AtFlags::empty())
            }
            other => other.map(|()| self.published = true),
        }
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.published {
            // A draft that can't be removed is left behind.
            let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}
