//! Identity of the sandboxed processes: one user and one group, mapped to one of the host's; no further groups, and no way
//! to gain more.

use super::{ErrorContext, WallError};
use crate::plan::Identity;
use crate::wall;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{DumpableBehavior, Gid, Uid, set_dumpable_behavior};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

/// Writes the maps of the user namespace that this process is the first in, and becomes that user.
pub(crate) fn take(identity: Identity) -> Result<(), WallError> {
    // A process that changed its user before it came here does not own its files in /proc until it makes itself
    // dumpable.
    set_dumpable_behavior(DumpableBehavior::Dumpable).about("prctl")?;
    let inside_uid = wall!(InsideUser: identity.inside_uid, else 0);
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{inside_uid} {} 1", identity.host_uid))?;
    write("/proc/self/gid_map", &format!("{} {} 1", identity.inside_gid, identity.host_gid))?;
    let gid = Gid::from_raw(identity.inside_gid);
    let uid = Uid::from_raw(inside_uid);
    set_thread_res_gid(gid, gid, gid).about("setresgid")?;
    set_thread_res_uid(uid, uid, uid).about("setresuid")
}

fn write(path: &str, text: &str) -> Result<(), WallError> {
    let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).about(path)?;
    rustix::io::write(&file, text.as_bytes()).about(path).map(drop)
}
