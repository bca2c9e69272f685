//! Who the sandboxed processes are on the host.
//!
//! An ordinary user's sandbox runs as that user, who is the only one it could be. Root's runs as a user that exists
//! for nothing else, owns nothing, and is another one for each process that launches: should a sandbox ever get out,
//! it is nobody.

use belljar_confine::plan::Identity;
use belljar_confine::wall;
use rustix::process::{getegid, geteuid, getpid};

/// Who it is, and whether files are to be shown as that user's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    pub(super) identity: Identity,
    /// Whether lent directories need their owners mapped, because the user is not the one who lends them.
    pub(super) maps_files: bool,
}

/// The user and group inside.
pub(super) const INSIDE: u32 = 1000;

/// Above everything that systems hand out, to people, services or containers (systemd's "Users, Groups, UIDs and GIDs"
/// lists this range as unused).
const FIRST_RESERVED: u32 = 0x7000_0000;

/// Decides for this process.
pub(super) fn choose() -> Chosen {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let reserved = FIRST_RESERVED + (getpid().as_raw_nonzero().get().unsigned_abs() & 0x3f_ffff);
    match wall!(HostUser: uid == 0 && has_all_ids(), else false) {
        true => Chosen { identity: identity(reserved, reserved), maps_files: true },
        false => Chosen { identity: identity(uid, gid), maps_files: false },
    }
}

fn identity(host_uid: u32, host_gid: u32) -> Identity {
    Identity { inside_uid: INSIDE, inside_gid: INSIDE, host_uid, host_gid }
}

/// In a container, root may know only some ids and none of the reserved ones.
fn has_all_ids() -> bool {
    std::fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}
