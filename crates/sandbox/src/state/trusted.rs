//! Decides whether a state directory is out of reach of other local users.
//!
//! A user who owns the directory, or can rename a directory on the way to it, can replace databases, the audit log and kept changes.
//! The path is walked by descriptor, one name at a time, as `trusted_file` walks to a file: each directory belongs to this user or
//! root and is writable by no other, except that a sticky directory may lead to it. Entries directly in the state directory are checked, too.

use belljar_trusted::rights;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, readlinkat, statat,
};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Why a state directory is refused.
#[derive(Debug, thiserror::Error)]
pub enum UntrustedStateError {
    /// Part of the path can't be inspected or created.
    #[error("can't use {}", at.display())]
    Look {
        /// Path at which the walk ended.
        at: PathBuf,
        /// Why.
        #[source]
        source: Errno,
    },
    /// Another user owns the directory, a directory on the way to it, or an entry in it.
    #[error(
        "{} belongs to user {owner}, who can replace files in the state directory {}; it must belong to \
         you or to root: set BELLJAR_STATE_DIR to a directory of your own, run belljar as that user, or chown it",
        at.display(),
        state.display()
    )]
    Owner {
        /// The state directory, as it was named.
        state: PathBuf,
        /// File that belongs to another user.
        at: PathBuf,
        /// Id of that user.
        owner: u32,
    },
    /// A link replaces one of the directories in it.
    #[error(
        "{} is a link to a directory; what belljar keeps in the state directory {} lies in directories of its own, whose permissions it \
         sets: mount (--bind) the other directory there, or move the whole state directory",
        at.display(),
        state.display()
    )]
    Link {
        /// The state directory, as it was named.
        state: PathBuf,
        /// The link.
        at: PathBuf,
    },
    /// Other users can write the directory, a directory on the way to it, or an entry in it.
    #[error(
        "other users can write {} (mode {mode:04o}), and so can replace files in the state directory {}; \
         remove that permission: chmod go-w {}",
        at.display(),
        state.display(),
        at.display()
    )]
    Mode {
        /// The state directory, as it was named.
        state: PathBuf,
        /// File that others can write.
        at: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
}

/// Maximum number of symbolic links on one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// In a directory with this bit only the owner of an entry can replace it.
const STICKY: u32 = 0o1000;

/// Mode of directories that are created on the way to a state directory, less the umask.
const ON_THE_WAY: u32 = 0o755;

/// Checks a state directory. If it doesn't exist, the part of its path that does is checked.
///
/// # Errors
/// [`UntrustedStateError`] if another user could replace it or anything in it.
pub(super) fn check(state: &Path) -> Result<(), UntrustedStateError> {
    walk(state, false).map(drop)
}

/// Creates a state directory if it doesn't exist, and checks it. Returns true if it was created.
///
/// # Errors
/// [`UntrustedStateError`] if another user could replace it or anything in it.
pub(super) fn create(state: &Path) -> Result<bool, UntrustedStateError> {
    walk(state, true)
}

fn walk(state: &Path, creates: bool) -> Result<bool, UntrustedStateError> {
    let absolute = std::path::absolute(state);
    let absolute =
        absolute.map_err(|error| look(state)(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    let mut walk = PathWalk::begin(state, &absolute, creates)?;
    if walk.walk_on()? {
        match walk.ends_at_file {
            true => return Err(look(state)(Errno::NOTDIR)),
            false => walk.check_end()?,
        }
    }
    Ok(walk.created_end)
}

/// A walk from the root to a directory or file.
struct PathWalk<'a> {
    state: &'a Path,
    creates: bool,
    /// The names that are still to be walked.
    left: VecDeque<OsString>,
    /// The directories that were walked, the root first, each with its path.
    directories: Vec<(OwnedFd, PathBuf)>,
    links: usize,
    created_end: bool,
    /// The path leads to something that is no directory.
    ends_at_file: bool,
}

// === impl PathWalk ===

impl<'a> PathWalk<'a> {
    fn begin(state: &'a Path, path: &Path, creates: bool) -> Result<Self, UntrustedStateError> {
        let (left, directories) = (VecDeque::new(), Vec::new());
        let mut walk =
            Self { state, creates, left, directories, links: 0, created_end: false, ends_at_file: false };
        walk.start_over()?;
        walk.prepend(path);
        Ok(walk)
    }

    fn start_over(&mut self) -> Result<(), UntrustedStateError> {
        let root = openat(CWD, "/", directory_flags(), Mode::empty()).map_err(look(Path::new("/")))?;
        self.directories = vec![(root, PathBuf::from("/"))];
        Ok(())
    }

    fn prepend(&mut self, path: &Path) {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.left.push_front(name.to_owned()),
                Component::ParentDir => self.left.push_front(OsString::from("..")),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    /// Walks until no name is left. Returns false if the rest of the path doesn't exist.
    fn walk_on(&mut self) -> Result<bool, UntrustedStateError> {
        while let Some(name) = self.left.pop_front() {
            if name == ".." {
                if self.directories.len() > 1 {
                    self.directories.pop();
                }
            } else if !self.step(&name)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn step(&mut self, name: &OsStr) -> Result<bool, UntrustedStateError> {
        let (directory, at) = self.directories.last().ok_or_else(|| look(self.state)(Errno::NOENT))?;
        let at = at.join(name);
        self.check_directory(true)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut found = openat(directory, name, flags, Mode::empty());
        if matches!(found, Err(Errno::NOENT)) {
            if !self.creates {
                return Ok(false);
            }
            // If another process has created it meanwhile, that one is checked below.
            match mkdirat(directory, name, Mode::from_raw_mode(ON_THE_WAY)) {
                Ok(()) => self.created_end = self.left.is_empty(),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(look(&at)(error)),
            }
            found = openat(directory, name, flags, Mode::empty());
        }
        let found = found.map_err(look(&at))?;
        let stat = fstat(&found).map_err(look(&at))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                self.check_owner(&stat, &at)?;
                self.follow(&found, &at)?;
            }
            FileType::Directory => self.directories.push((found, at)),
            _ if self.left.is_empty() => {
                self.check_owner(&stat, &at)?;
                self.check_mode(&stat, &at)?;
                self.ends_at_file = true;
            }
            _ => return Err(look(&at)(Errno::NOTDIR)),
        }
        Ok(true)
    }

    fn follow(&mut self, link: &OwnedFd, at: &Path) -> Result<(), UntrustedStateError> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(look(at)(Errno::LOOP));
        }
        let target = readlinkat(link, c"", Vec::new()).map_err(look(at))?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes())).to_owned();
        if target.is_absolute() {
            self.start_over()?;
        }
        self.prepend(&target);
        Ok(())
    }

    /// Checks the state directory itself, where a sticky bit is not enough, and its entries.
    fn check_end(&self) -> Result<(), UntrustedStateError> {
        self.check_directory(false)?;
        let Some((directory, at)) = self.directories.last() else { return Ok(()) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Where this user can't list it, it can't be the state directory of this user either.
        let readable = openat(directory, ".", flags, Mode::empty()).map_err(look(at))?;
        for entry in Dir::read_from(&readable).map_err(look(at))? {
            let name = entry.map_err(look(at))?.file_name().to_owned();
            if [b".".as_slice(), b".."].contains(&name.to_bytes()) {
                continue;
            }
            let path = at.join(OsStr::from_bytes(name.to_bytes()));
            match statat(&readable, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => self.check_entry(&stat, &path)?,
                // Databases and lists of other processes come and go.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(look(&path)(error)),
            }
        }
        Ok(())
    }

    fn check_entry(&self, stat: &Stat, path: &Path) -> Result<(), UntrustedStateError> {
        self.check_owner(stat, path)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let mut target = PathWalk::begin(self.state, path, false)?;
                match target.walk_on()? && !target.ends_at_file {
                    true => {
                        Err(UntrustedStateError::Link { state: self.state.to_owned(), at: path.to_owned() })
                    }
                    false => Ok(()),
                }
            }
            _ => self.check_mode(stat, path),
        }
    }

    /// Checks the directory that was walked to last.
    fn check_directory(&self, sticky_is_enough: bool) -> Result<(), UntrustedStateError> {
        let Some((directory, at)) = self.directories.last() else { return Ok(()) };
        let stat = fstat(directory).map_err(look(at))?;
        self.check_owner(&stat, at)?;
        match sticky_is_enough && stat.st_mode & STICKY != 0 {
            true => Ok(()),
            false => self.check_mode(&stat, at),
        }
    }

    fn check_owner(&self, stat: &Stat, at: &Path) -> Result<(), UntrustedStateError> {
        match rights::is_ours(stat, at) {
            true => Ok(()),
            false => {
                let (state, at) = (self.state.to_owned(), at.to_owned());
                Err(UntrustedStateError::Owner { state, at, owner: stat.st_uid })
            }
        }
    }

    fn check_mode(&self, stat: &Stat, at: &Path) -> Result<(), UntrustedStateError> {
        if rights::is_closed(stat, || at.to_owned()) {
            return Ok(());
        }
        let (state, at, mode) = (self.state.to_owned(), at.to_owned(), stat.st_mode & 0o7777);
        Err(UntrustedStateError::Mode { state, at, mode })
    }
}

// === impl UntrustedStateError ===

impl From<UntrustedStateError> for io::Error {
    fn from(error: UntrustedStateError) -> Self {
        let kind = match &error {
            UntrustedStateError::Look { source, .. } => io::Error::from(*source).kind(),
            _ => io::ErrorKind::PermissionDenied,
        };
        Self::new(kind, error)
    }
}

fn directory_flags() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn look(at: &Path) -> impl Fn(Errno) -> UntrustedStateError {
    let at = at.to_owned();
    move |source| UntrustedStateError::Look { at: at.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use tempfile::TempDir;

    fn place() -> (TempDir, PathBuf) {
        let place = TempDir::new().unwrap();
        let state = place.path().join("on-the-way/state");
        assert!(create(&state).unwrap());
        for folder in ["kept", "audit", "node"] {
            fs::create_dir(state.join(folder)).unwrap();
        }
        fs::write(state.join("agents.db"), "").unwrap();
        (place, state)
    }

    #[test]
    fn state_that_another_user_owns_or_can_replace_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return belljar_testkit::skip::skip(
                "state_that_another_user_owns_or_can_replace_is_refused",
                "root alone can act as another user",
            );
        }
        let (place, state) = place();
        for name in ["", "state", "state/kept", "state/audit", "state/node", "state/agents.db"] {
            let at = place.path().join("on-the-way").join(name);
            chown(&at, Some(4711), None).unwrap();
            let refused = check(&state);
            assert!(
                matches!(refused, Err(UntrustedStateError::Owner { owner: 4711, .. })),
                "{name}: {refused:?}"
            );
            assert!(matches!(create(&state), Err(UntrustedStateError::Owner { .. })), "{name}");
            chown(&at, Some(0), None).unwrap();
            check(&state).unwrap();
        }
    }

    #[test]
    fn state_that_other_users_can_write_is_refused() {
        let (place, state) = place();
        let set = |at: &Path, mode| fs::set_permissions(at, Permissions::from_mode(mode)).unwrap();
        for name in ["", "state", "state/kept", "state/agents.db"] {
            let at = place.path().join("on-the-way").join(name);
            let usual = at.metadata().unwrap().permissions().mode();
            set(&at, usual | 0o002);
            let refused = check(&state);
            assert!(matches!(refused, Err(UntrustedStateError::Mode { .. })), "{name}: {refused:?}");
            set(&at, usual);
            check(&state).unwrap();
        }
        // Others can replace nothing of ours in a sticky directory, but add an `agents.db` to a sticky state directory.
        set(&place.path().join("on-the-way"), 0o1777);
        check(&state).unwrap();
        set(&state, 0o1777);
        assert!(matches!(check(&state), Err(UntrustedStateError::Mode { .. })));
    }

    #[test]
    fn links_to_the_state_are_followed_and_links_to_directories_in_it_are_refused() {
        let (place, state) = place();
        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&state, place.path().join("link")).unwrap();
        let by_link = place.path().join("link/../state");
        check(&by_link).unwrap();
        for name in ["artifacts", "runs", "node"] {
            let at = state.join(name);
            let _ = fs::remove_dir(&at);
            symlink("../../elsewhere", &at).unwrap();
            let refused = check(&by_link);
            assert!(matches!(&refused, Err(UntrustedStateError::Link { .. })), "{name}: {refused:?}");
            fs::remove_file(&at).unwrap();
            // Control: a directory there is used.
            fs::create_dir(&at).unwrap();
            check(&by_link).unwrap();
        }
        symlink(place.path().join("loop"), place.path().join("loop")).unwrap();
        let refused = check(&place.path().join("loop"));
        assert!(matches!(refused, Err(UntrustedStateError::Look { source: Errno::LOOP, .. })), "{refused:?}");
    }

    #[test]
    fn missing_state_is_created_once() {
        let place = TempDir::new().unwrap();
        let state = place.path().join("a/b/state");
        check(&state).unwrap();
        assert!(!place.path().join("a").exists());
        assert!(create(&state).unwrap());
        assert!(!create(&state).unwrap());
        fs::write(place.path().join("file"), "").unwrap();
        let refused = create(&place.path().join("file"));
        assert!(
            matches!(refused, Err(UntrustedStateError::Look { source: Errno::NOTDIR, .. })),
            "{refused:?}"
        );
    }
}
