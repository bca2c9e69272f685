//! POSIX access control lists of files that are replaced.
//!
//! The group bits of a file that has a list are the mask of the list, and what the owning group may do is an entry of it. A file that
//! replaces one gets its list. Where that can't be, its group gets nothing, as the mask alone would give it too much.

use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{Mode, XattrFlags, fchmod, fremovexattr, fsetxattr, getxattr};
use rustix::io::Errno;
use std::fs::File;

/// The attribute that holds the list of a file.
const ATTRIBUTE: &std::ffi::CStr = c"system.posix_acl_access";

/// Maximum size of a list. The kernel allows no attribute to be larger.
const LARGEST_BYTES: usize = 64 << 10;

/// The list of a file or directory.
#[derive(Debug)]
pub(super) struct AccessList {
    bytes: Vec<u8>,
}

/// Size of the version of a list, before its entries.
const HEAD_BYTES: usize = 4;

/// Size of an entry: its tag and its permissions, two bytes each, and the id of its user or group.
const ENTRY_BYTES: usize = 8;

/// The tag of the entry for the owning group, and that for the mask.
const OWNING_GROUP: u16 = 0x04;
const MASK: u16 = 0x10;

// === impl AccessList ===

impl AccessList {
    /// Returns the access control list of an open file, also one opened with `O_PATH`; `None` if its permission bits are
    /// complete.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn of(opened: impl AsFd) -> Result<Option<Self>, Errno> {
        // No descriptor of a mere place has attributes, but its path has.
        let itself = format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd());
        let mut bytes = vec![0; LARGEST_BYTES];
        match getxattr(itself, ATTRIBUTE, &mut bytes[..]) {
            Ok(length) => {
                bytes.truncate(length);
                Ok(Some(Self { bytes }))
            }
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Permissions of the owning group, as the three lowest bits. `None` for a list that can't be read.
    pub(super) fn of_owning_group(&self) -> u32 {
        let permissions = |tag| self.permissions(tag);
        permissions(OWNING_GROUP).unwrap_or(0) & permissions(MASK).unwrap_or(0o7)
    }

    fn permissions(&self, tag: u16) -> Option<u32> {
        let entries = self.bytes.get(HEAD_BYTES..)?.chunks_exact(ENTRY_BYTES);
        let mut entries = entries.filter_map(|entry| {
            let number = |at: usize| Some(u16::from_le_bytes([*entry.get(at)?, *entry.get(at + 1)?]));
            Some((number(0)?, number(2)?))
        });
        entries.find(|(found, _)| *found == tag).map(|(_, permissions)| u32::from(permissions) & 0o7)
    }
}

/// Gives a new file the permissions of the file that it replaces: `mode`, and its access control list, if it has one. The
/// new file must not be wider open than `mode` before.
///
/// # Errors
/// The kernel's error. A list that can't be set is no error: the group gets nothing then.
pub(super) fn give(to: &File, list: Option<&AccessList>, mode: u32) -> Result<(), Errno> {
    let mode = match list {
        Some(list) => match fsetxattr(to, ATTRIBUTE, &list.bytes, XattrFlags::empty()) {
            Ok(()) => mode,
            Err(_) => mode & !0o070,
        },
        // It may have got one from its directory.
        None => match fremovexattr(to, ATTRIBUTE) {
            Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => mode,
            Err(errno) => return Err(errno),
        },
    };
    fchmod(to, Mode::from_raw_mode(mode))
}
