//! Location of a file in its file system, wherever that is mounted. A directory below a workspace may also be mounted
//! elsewhere, and a directory from elsewhere may be mounted below a workspace.

use rustix::fd::AsRawFd;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The mounts of a process, as `/proc/<pid>/mountinfo` has them.
pub(crate) struct Mounts(Vec<Mount>);

/// A mount.
pub(crate) struct Mount {
    id: u64,
    /// The file system, as the kernel numbers it: `st_dev` may differ within one.
    file_system: Vec<u8>,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    /// Mount point.
    pub(crate) point: PathBuf,
    /// True if the mount is read-only.
    pub(crate) is_read_only: bool,
}

/// A place in a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// The file system, as `major:minor`.
    pub(crate) file_system: Vec<u8>,
    path: PathBuf,
}

// === impl Mounts ===

impl Mounts {
    /// Reads the mounts of this process.
    ///
    /// # Errors
    /// The system's, such as where `/proc` isn't mounted.
    pub(crate) fn read() -> io::Result<Self> {
        Self::read_from(Path::new("/proc/self/mountinfo"))
    }

    /// Reads the mounts of another process, which may be in another namespace.
    ///
    /// # Errors
    /// The system's, such as when it has ended.
    pub(crate) fn of(process: u32) -> io::Result<Self> {
        Self::read_from(&PathBuf::from(format!("/proc/{process}/mountinfo")))
    }

    fn read_from(path: &Path) -> io::Result<Self> {
        let text = std::fs::read(path)?;
        Ok(Self(text.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect()))
    }

    /// Returns the location of an open file in its file system. `None` if it has no path in these mounts.
    pub(crate) fn location(&self, opened: &impl AsRawFd) -> Option<Location> {
        let number = opened.as_raw_fd();
        let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
        let id = about.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse::<u64>().ok()?;
        let path = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        let mount = self.0.iter().find(|mount| mount.id == id)?;
        let below = path.strip_prefix(&mount.point).ok()?;
        Some(Location { file_system: mount.file_system.clone(), path: mount.root.join(below) })
    }

    /// The mounts below a directory.
    pub(crate) fn below(&self, directory: &Path) -> impl Iterator<Item = &Mount> {
        let is_below = move |mount: &&Mount| mount.point.starts_with(directory) && mount.point != directory;
        self.0.iter().filter(is_below)
    }
}

// === impl Location ===

impl Location {
    /// Returns true if this location is `other` or below it.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.file_system == other.file_system && self.path.starts_with(&other.path)
    }
}

// === impl Mount ===

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let file_system = fields.nth(1)?.to_vec();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        let is_read_only = fields.next()?.split(|byte| *byte == b',').any(|option| option == b"ro");
        Some(Self { id, file_system, root, point, is_read_only })
    }
}

/// The kernel writes white space and backslashes as `\` and three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut left = field;
    while let Some((first, rest)) = left.split_first() {
        let digits = (*first == b'\\').then(|| rest.get(..3)).flatten();
        let value = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(value.unwrap_or(*first));
        left = if value.is_some() { rest.get(3..).unwrap_or_default() } else { rest };
    }
    Path::new(OsString::from_vec(bytes).as_os_str()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn mountinfo_line_is_parsed_with_escapes() {
        let line = b"36 35 98:0 /mnt\\0401 /media/a\\134b rw,noatime master:1 - ext3 /dev/root rw";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.id, mount.root, mount.point), (36, "/mnt 1".into(), "/media/a\\b".into()));
        assert_eq!((mount.file_system.as_slice(), mount.is_read_only), (b"98:0".as_slice(), false));
        let line = b"37 35 98:0 / /media ro,noatime - ext3 /dev/root rw";
        assert!(Mount::parse(line).unwrap().is_read_only);
        assert_eq!(unescaped(b"\\9\\04"), Path::new("\\9\\04"));
        assert_eq!(unescaped("/\u{e4}".as_bytes()).as_os_str().as_bytes(), "/\u{e4}".as_bytes());
    }
}
