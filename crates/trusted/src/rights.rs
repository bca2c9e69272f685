//! Which users could write a file or directory, by its owner, mode and access control list.

mod access_list;

use rustix::fs::Stat;
use rustix::process::{getegid, geteuid};
use std::path::{Path, PathBuf};

/// Permission bits by which others could write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Returns true if the file at a path belongs to this user or to root.
pub fn is_ours(stat: &Stat, at: &Path) -> bool {
    let is_ours = stat.st_uid == 0 || stat.st_uid == geteuid().as_raw();
    is_ours || (is_unmapped(stat.st_uid) && is_of_system(at))
}

/// Returns true if no other user can write the file. `place` gives a path of the same file; its access control list is read
/// if its group may write.
pub fn is_closed(stat: &Stat, place: impl FnOnce() -> PathBuf) -> bool {
    let by_others = stat.st_mode & WRITABLE_BY_OTHERS;
    // A group that has its user's number and no other use is that user's own.
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let is_own_group = uid != 0 && uid == gid && stat.st_gid == gid;
    by_others == 0 || (by_others == 0o020 && is_own_group && !access_list::lets_others_write(&place()))
}

/// Returns true if a user id stands for an unmapped user: in a user namespace, the host's own files belong to such a user.
fn is_unmapped(uid: u32) -> bool {
    const OVERFLOW: u32 = 65534;
    uid == OVERFLOW
        && std::fs::read_to_string("/proc/self/uid_map")
            .is_ok_and(|map| !map.split_whitespace().eq(["0", "0", "4294967295"]))
}

/// Returns true if a path of the host belongs to root. Where root's files can't be recognised by a user id, the path alone
/// decides.
fn is_of_system(at: &Path) -> bool {
    const BELOW: [&str; 11] =
        ["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu"];
    const ITSELF: [&str; 3] = ["/run/user", "/var/lib", "/var/home"];
    let is_top = at.parent().is_none_or(|parent| parent.parent().is_none());
    is_top
        || BELOW.iter().any(|place| at.starts_with(place))
        || ITSELF.iter().any(|place| at == Path::new(place))
}
