//! Identity of the sandboxed processes on the host.
//!
//! An ordinary user's sandbox runs as that user; no other is possible. Root's runs as a user that exists for nothing else,
//! owns nothing, and differs for each sandbox: a process that ever got out would have no rights of any user.

use belljar_confine::plan::Identity;
use belljar_confine::wall;
use rustix::process::{getegid, geteuid};

/// User of a sandbox, and the choice to show lent files as that user's.
#[derive(Debug, Clone, Copy)]
pub struct HostUser {
    pub(super) identity: Identity,
    /// True if lent directories need their owners mapped, because the user is not the one who lends them.
    pub(super) maps_files: bool,
}

/// The user and group inside.
pub(super) const INSIDE: u32 = 1000;

/// Above everything that systems hand out, to people, services or containers (systemd's "Users, Groups, UIDs and GIDs"
/// lists this range as unused).
const FIRST_RESERVED: u32 = 0x7000_0000;

/// Number of reserved ids: up to the highest that is positive everywhere.
const RESERVED: u32 = 0x0fff_ffff;

fn identity(host_uid: u32, host_gid: u32) -> Identity {
    Identity { inside_uid: INSIDE, inside_gid: INSIDE, host_uid, host_gid }
}

/// Returns true if all ids exist here. In a container, root may know only some ids and none of the reserved ones.
fn has_all_ids() -> bool {
    std::fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]))
}

/// Returns one of the reserved ids, at random: of a thousand sandboxes at once, two are the same user once in five hundred
/// times, and then the other walls still stand between them.
fn reserved() -> u32 {
    let random = uuid::Uuid::new_v4().as_u128();
    FIRST_RESERVED + u32::try_from(random % u128::from(RESERVED)).unwrap_or_default()
}

// === impl HostUser ===

impl HostUser {
    /// Decides for one sandbox of this process.
    pub fn choose() -> Self {
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        if wall!(HostUser: uid == 0 && has_all_ids(), else false) {
            let reserved = reserved();
            return Self { identity: identity(reserved, reserved), maps_files: true };
        }
        Self { identity: identity(uid, gid), maps_files: false }
    }

    /// A user that a sandbox of this process was before; `None` for one that it could not have been.
    pub(crate) fn again(uid: u32, gid: u32) -> Option<Self> {
        let now = Self::choose();
        let is_reserved =
            uid == gid && uid.checked_sub(FIRST_RESERVED).is_some_and(|number| number < RESERVED);
        match now.maps_files {
            true => is_reserved.then_some(Self { identity: identity(uid, gid), maps_files: true }),
            false => ((uid, gid) == (now.identity.host_uid, now.identity.host_gid)).then_some(now),
        }
    }

    /// The user and group that own what the host makes for the sandbox, such as `/job`.
    pub fn identity(&self) -> Identity {
        self.identity
    }
}
