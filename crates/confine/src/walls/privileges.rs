//! Privileges: none, in any set, and no way to get one.

use super::{ErrorContext, WallError};
use crate::plan::Limits;
use crate::supervised::User;
use crate::wall;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Gid, Resource, Rlimit, Uid, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

/// Sets the limits that every process of the sandbox inherits.
pub(crate) fn limit(limits: Limits) -> Result<(), WallError> {
    let resources = [
        // No file is as small as one byte; and unlike 0, it also keeps the kernel from starting a program of the host's
        // that collects cores.
        (Resource::Core, wall!(LimitCore: 1, else u64::MAX), "core size"),
        (Resource::Nofile, wall!(LimitOpenFiles: limits.open_files, else u64::MAX), "open files"),
        (Resource::Nproc, wall!(LimitProcesses: limits.processes, else u64::MAX), "processes"),
        (
            Resource::Memlock,
            wall!(LimitLockedMemory: limits.locked_memory_bytes, else u64::MAX),
            "locked memory",
        ),
        (
            Resource::Sigpending,
            wall!(LimitPendingSignals: limits.pending_signals, else u64::MAX),
            "pending signals",
        ),
        (
            Resource::Msgqueue,
            wall!(LimitMessageQueues: limits.message_queue_bytes, else u64::MAX),
            "message queues",
        ),
        (Resource::Rtprio, wall!(LimitRealTime: 0, else u64::MAX), "real-time priority"),
        (Resource::Nice, wall!(LimitNiceness: 0, else u64::MAX), "niceness"),
    ];
    for (resource, most, name) in resources {
        // A host that allows less already keeps its own limit.
        let most = rustix::process::getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).about(name)?;
    }
    Ok(())
}

/// Drops every capability from every set, and closes the ways back.
pub(crate) fn drop_all() -> Result<(), WallError> {
    wall!(BoundingSet: close_bounding_set().about("bounding set")?, else ());
    drop_held()
}

/// Lets no program that is run gain a capability. Takes one.
pub(crate) fn close_bounding_set() -> Result<(), Errno> {
    for bit in 0..u64::BITS {
        // Also those that are newer than the library's list of names.
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Ok(()) => {}
            // One more than the kernel knows.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Verifies that the capability bounding set is empty, and drops the capabilities that are still held.
pub(crate) fn hold_none() -> Result<(), WallError> {
    for bit in 0..u64::BITS {
        match capability_is_in_bounding_set(CapabilitySet::from_bits_retain(1 << bit)) {
            Ok(false) => {}
            Ok(true) => return Err(Errno::PERM).about("bounding set"),
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno).about("bounding set"),
        }
    }
    drop_held()
}

/// Drops all groups and every capability except the one without which some of `/proc` can't be seen. For a process that
/// acts in the place of one without any.
pub(crate) fn keep_none_but_sight() -> Result<(), WallError> {
    if !rustix::process::getuid().is_root() {
        return Ok(());
    }
    set_thread_groups(&[]).about("groups")?;
    keep_sight()
}

fn keep_sight() -> Result<(), WallError> {
    let sight = CapabilitySet::SYS_PTRACE;
    let kept = CapabilitySets { effective: sight, permitted: sight, inheritable: CapabilitySet::empty() };
    set_capabilities(None, kept).about("capabilities")
}

/// Makes root act for another user, with the same capability kept: files are opened and changed as that user. No process of
/// the user may signal it, because its real user is still root.
pub(crate) fn act_for(User { uid, gid }: User) -> Result<(), WallError> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&[]).about("groups")?;
    set_thread_res_gid(gid, gid, gid).about("setresgid")?;
    set_thread_res_uid(Uid::ROOT, uid, Uid::ROOT).about("setresuid")?;
    keep_sight()
}

/// Becomes that user for good.
pub(crate) fn become_user(User { uid, gid }: User) -> Result<(), WallError> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(&[]).about("groups")?;
    set_thread_res_gid(gid, gid, gid).about("setresgid")?;
    set_thread_res_uid(uid, uid, uid).about("setresuid")
}

/// Drops every capability that is held, and closes the ways to new ones that need none to be closed.
pub(crate) fn drop_held() -> Result<(), WallError> {
    clear_ambient_capability_set().about("ambient set")?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    let drop = || set_capabilities(None, none).about("capabilities");
    // A process that may gain privileges must have some to confine itself.
    wall!(Capabilities: wall!(NoNewPrivileges: drop()?, else ()), else ());
    wall!(NoNewPrivileges: set_no_new_privs(true).about("no_new_privs")?, else ());
    // From here on nothing inside can trace PID 1 or read its memory, descriptors or environment.
    let dumpable = wall!(NotDumpable: DumpableBehavior::NotDumpable, else DumpableBehavior::Dumpable);
    set_dumpable_behavior(dumpable).about("dumpable")
}
