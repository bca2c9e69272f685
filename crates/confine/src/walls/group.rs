//! The control group: PID 1 moves in, and everything that it starts is born there.

use super::{ErrorContext, WallError};
use crate::group::{CgroupJoin, LaunchDescriptor};
use crate::wall;
use rustix::thread::UnshareFlags;

/// Moves in, unless PID 1 was born there, and takes the group for the root of all control groups.
pub(crate) fn enter(entrance: Option<&CgroupJoin>) -> Result<(), WallError> {
    if let Some(CgroupJoin::Joins { lists, .. }) = entrance {
        for LaunchDescriptor(list) in lists {
            // "0" is the writing process. The permission was checked when the host opened the file.
            rustix::io::write(list, b"0").about("control group")?;
        }
    }
    let flags = wall!(CgroupNamespace: UnshareFlags::NEWCGROUP, else UnshareFlags::empty());
    // SAFETY: leaves memory and descriptors as they are; only what control groups are called changes.
    unsafe { rustix::thread::unshare_unsafe(flags) }.about("control groups")
}
