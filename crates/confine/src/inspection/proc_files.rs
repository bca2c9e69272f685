//! Files of a process in `/proc`, held open: a process that may open them once may read them again later.

use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// Files of one process.
#[derive(Debug)]
pub(super) struct ProcFiles {
    status: OwnedFd,
    uid_map: OwnedFd,
    /// Opened only where it matters.
    groups: Option<OwnedFd>,
}

/// Contents of a status file: lines `name: value`.
pub(super) struct ProcStatus(String);

/// A status is about 1.5 KB long, and not twice that with thousands of processors; the others are shorter.
const LONGEST: usize = 8 << 10;

fn open(process: &str, name: &str) -> Result<OwnedFd, Errno> {
    openat(CWD, format!("/proc/{process}/{name}"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

fn read(file: &OwnedFd) -> Result<String, Errno> {
    let mut text = Vec::with_capacity(LONGEST);
    // In one piece, or what is missing is found missing.
    rustix::io::pread(file, rustix::buffer::spare_capacity(&mut text), 0)?;
    String::from_utf8(text).map_err(|_| Errno::ILSEQ)
}

// === impl ProcFiles ===

impl ProcFiles {
    pub(super) fn open(pid: i32, with_groups: bool) -> Result<Self, Errno> {
        let open = |name| open(&pid.to_string(), name);
        Ok(Self {
            status: open("status")?,
            uid_map: open("uid_map")?,
            groups: if with_groups { Some(open("cgroup")?) } else { None },
        })
    }

    pub(super) fn status(&self) -> Result<ProcStatus, Errno> {
        read(&self.status).map(ProcStatus)
    }

    pub(super) fn uid_map(&self) -> Result<String, Errno> {
        read(&self.uid_map)
    }

    pub(super) fn groups(&self) -> Result<String, Errno> {
        self.groups.as_ref().map_or(Ok(String::new()), read)
    }
}

// === impl ProcStatus ===

impl ProcStatus {
    /// Reads the status of this process.
    pub(super) fn own() -> Result<Self, Errno> {
        open("self", "status").and_then(|status| read(&status)).map(Self)
    }

    /// Returns the value of a field; empty if there is none.
    pub(super) fn field(&self, name: &str) -> &str {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.unwrap_or_default().trim()
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.field(name).parse().ok()
    }
}

#[cfg(test)]
impl From<&str> for ProcStatus {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
