//! What the probe stands on: what is mounted where and how, and how many locks of Landlock there are already.

use super::kernel::{self, call_named};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where a sandbox has a mount, or may have one.
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

/// Kinds of file systems that are a sandbox's own, by the numbers that the kernel gives them.
const KINDS: [(u64, &str); 4] =
    [(0x0102_1994, "tmpfs"), (0x794c_7630, "overlay"), (0x9fa0, "proc"), (0x1cd1, "devpts")];

/// Attributes of a mount: `ST_RDONLY` and the like.
const ATTRIBUTES: [(u64, &str); 4] = [(1, "read-only"), (2, "nosuid"), (4, "nodev"), (8, "noexec")];

/// What is at each place: the kind of file system, its attributes, and how many bytes may be in it if that is limited.
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

/// How many more domains of Landlock may be entered, each in the one before. Every kernel allows sixteen, so it tells
/// how many there are. Whoever asks is in all of them then, so it is a child that does.
pub(super) fn domains_left() -> i64 {
    /// An access that every version knows: reading a file.
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
    // The exit code is above the signal.
    kernel::wait_for(child).map_or(-1, |status| i64::from(status >> 8))
}
