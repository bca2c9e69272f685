//! Restricts a program to the paths that its job allows (`constraints.allowed_paths`), by a Landlock domain of its own.
//!
//! The program may write in the allowed places and in the artifacts folder. It may read and run everything else, except
//! the rest of the workspace and of the job's folder. Devices and `/proc` are writable as far as the sandbox allows.

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, make_bitflags,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The places that a program may use.
#[derive(Debug)]
pub(crate) struct AllowedPaths {
    /// Files and directories that it may read, write and run.
    pub(crate) open: Vec<OwnedFd>,
    /// Directories that it can't use otherwise.
    pub(crate) closed: Vec<PathBuf>,
}

/// The oldest Landlock that knows every way to change a file (Linux 6.2).
const NEEDED: ABI = ABI::V3;

/// Write access for device and `/proc` files.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{WriteFile | Truncate});

/// Directories without data files: most programs need write access to devices and to their own `/proc`.
const NO_DATA: [&str; 2] = ["/dev", "/proc"];

// === impl AllowedPaths ===

impl AllowedPaths {
    /// Restricts the calling thread, and everything it starts from now on.
    pub(in crate::process) fn enter(&self) -> io::Result<()> {
        let mut readable = Vec::new();
        collect_readable(Path::new("/"), &self.closed, &mut readable)?;
        self.restrict(&readable).map_err(io::Error::other)
    }

    fn restrict(&self, readable: &[PathBuf]) -> Result<(), RulesetError> {
        let all = AccessFs::from_all(NEEDED);
        let level = CompatLevel::HardRequirement;
        let mut rules = Ruleset::default().set_compatibility(level).handle_access(all)?.create()?;
        for path in readable {
            // A path that can't be opened can't be used either.
            let Ok(place) = PathFd::new(path) else { continue };
            let is_no_data = NO_DATA.iter().any(|no_data| path.starts_with(no_data));
            let write = if is_no_data { WRITE } else { BitFlags::empty() };
            let access = AccessFs::from_read(NEEDED) | write;
            let access = applicable(access, place.as_fd());
            rules = rules.add_rule(PathBeneath::new(place, access))?;
        }
        for place in &self.open {
            let access = applicable(all, place.as_fd());
            rules = rules.add_rule(PathBeneath::new(place, access))?;
        }
        rules.restrict_self().map(drop)
    }
}

/// Returns the rights that exist for such a file.
fn applicable(access: BitFlags<AccessFs>, place: BorrowedFd<'_>) -> BitFlags<AccessFs> {
    let is_directory = rustix::fs::fstat(place).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory
    });
    if is_directory { access } else { access & AccessFs::from_file(NEEDED) }
}

/// Collects everything at or below a directory that is not in a closed one, in as few paths as possible.
fn collect_readable(path: &Path, closed: &[PathBuf], readable: &mut Vec<PathBuf>) -> io::Result<()> {
    if closed.iter().any(|closed| path == closed) {
        return Ok(());
    }
    if !closed.iter().any(|closed| closed.starts_with(path)) {
        readable.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        // The target of a link is covered by its own path.
        if !entry.file_type()?.is_symlink() {
            collect_readable(&entry.path(), closed, readable)?;
        }
    }
    Ok(())
}
