//! The file systems that the probe sees: mounts with their attributes, and the number of Landlock domains that it is
//! in.

use super::kernel::{self, call_named};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Paths at which a sandbox has a mount, or may have one.
const PLACES: [&str; 12] = [
    "/",
    "/dev",
    "/dev/pts",
    "/dev/shm",
    "/etc",
    "/home/agent",
    "/job",
    "/lent",
    "/proc",
    "/tmp",
    "/usr",
    "/workspace",
];

/// File systems that belong to a sandbox, by their magic numbers.
const KINDS: [(u64, &str); 4] =
    [(0x0102_1994, "tmpfs"), (0x794c_7630, "overlay"), (0x9fa0, "proc"), (0x1cd1, "devpts")];

/// Mount attributes: `ST_RDONLY` and similar flags.
const ATTRIBUTES: [(u64, &str); 4] = [(1, "read-only"), (2, "nosuid"), (4, "nodev"), (8, "noexec")];

/// Returns for each path the kind of file system, its attributes, and its capacity in bytes if that is limited.
pub(super) fn mounts() -> BTreeMap<&'static str, Value> {
    PLACES.into_iter().map(|place| (place, mount(place))).collect()
}

fn mount(place: &str) -> Value {
    // struct statfs
    let mut about = [0_u64; 15];
    let path = format!("{place}\0");
    let arguments =
        [path.as_ptr().expose_provenance() as u64, about.as_mut_ptr().expose_provenance() as u64, 0, 0, 0, 0];
    if call_named(libc::SYS_statfs, arguments).is_err() {
        return Value::Null;
    }
    let [kind, block_bytes, blocks, ..] = about;
    let name = KINDS.iter().find(|(number, _)| *number == kind).map_or("the host's", |(_, name)| name);
    let has = ATTRIBUTES.iter().filter(|(bit, _)| about[10] & bit != 0).map(|(_, name)| *name);
    let bytes = if name == "tmpfs" { json!(block_bytes * blocks) } else { Value::Null };
    json!({ "kind": name, "attributes": has.collect::<Vec<_>>(), "bytes": bytes })
}

/// Returns the number of Landlock domains that can still be entered, each nested in the one before. Every kernel allows
/// sixteen, so the result shows how many there are already. The process that counts stays in all of them, so a child
/// counts.
pub(super) fn domains_left() -> i64 {
    /// An access right that every version of Landlock knows: reading a file.
    const READ_FILE: u64 = 1 << 2;
    let Ok(Some(child)) = kernel::fork() else {
        let _ = call_named(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0, 0, 0]);
        let handled = [READ_FILE];
        let pointer = handled.as_ptr().expose_provenance() as u64;
        let rules = call_named(libc::SYS_landlock_create_ruleset, [pointer, 8, 0, 0, 0, 0]).unwrap_or(-1);
        let enter = || call_named(libc::SYS_landlock_restrict_self, [rules.cast_unsigned(), 0, 0, 0, 0, 0]);
        let entered = (0..64).take_while(|_| enter().is_ok()).count();
        kernel::end(entered as i32)
    };
    // The exit code is in the bits above the signal.
    kernel::wait_for(child).map_or(-1, |status| i64::from(status >> 8))
}
