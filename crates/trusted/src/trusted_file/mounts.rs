//! Where a directory lies in its file system, whatever it is mounted as: a directory below a workspace may be mounted elsewhere, too.

use rustix::fd::AsRawFd;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The mounts of this process, as `/proc/self/mountinfo` has them.
pub(super) struct Mounts(Vec<Mount>);

struct Mount {
    id: u64,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    /// Where.
    point: PathBuf,
}

// === impl Mounts ===

impl Mounts {
    /// Nothing where `/proc` isn't mounted.
    pub(super) fn read() -> Option<Self> {
        let text = std::fs::read("/proc/self/mountinfo").ok()?;
        Some(Self(text.split(|byte| *byte == b'\n').filter_map(Mount::parse).collect()))
    }

    /// The path in its file system of what a descriptor stands for.
    pub(super) fn within_file_system(&self, opened: &impl AsRawFd) -> Option<PathBuf> {
        let number = opened.as_raw_fd();
        let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
        let id = about.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse::<u64>().ok()?;
        let path = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        let mount = self.0.iter().find(|mount| mount.id == id)?;
        Some(mount.root.join(path.strip_prefix(&mount.point).ok()?))
    }
}

// === impl Mount ===

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ');
        let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let (root, point) = (fields.nth(2)?, fields.next()?);
        Some(Self { id, root: unescaped(root), point: unescaped(point) })
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
    fn a_line_is_read_with_its_escapes() {
        let line = b"36 35 98:0 /mnt\\0401 /media/a\\134b rw,noatime master:1 - ext3 /dev/root rw";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.id, mount.root, mount.point), (36, "/mnt 1".into(), "/media/a\\b".into()));
        assert_eq!(unescaped(b"\\9\\04"), Path::new("\\9\\04"));
        assert_eq!(unescaped("/\u{e4}".as_bytes()).as_os_str().as_bytes(), "/\u{e4}".as_bytes());
    }
}
