//! Privileges: none, in any set, and no way to get one.

use super::{About, Fault};
use crate::plan::Limits;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

/// Sets the limits that every process of the sandbox inherits.
pub(crate) fn limit(limits: Limits) -> Result<(), Fault> {
    let resources = [
        // No file is as small as one byte; and unlike 0, it also keeps the kernel from starting a program of the host's
        // that collects cores.
        (Resource::Core, 1, "core size"),
        (Resource::Nofile, limits.open_files, "open files"),
        (Resource::Nproc, limits.processes, "processes"),
        (Resource::Memlock, limits.locked_memory_bytes, "locked memory"),
        (Resource::Rtprio, 0, "real-time priority"),
        (Resource::Nice, 0, "niceness"),
    ];
    for (resource, most, name) in resources {
        // A host that allows less already keeps its own limit.
        let most = rustix::process::getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).about(name)?;
    }
    Ok(())
}

/// Drops every capability from every set, and closes the ways back.
pub(crate) fn drop_all() -> Result<(), Fault> {
    close_bounding_set().about("bounding set")?;
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

/// Drops every capability that is held, and closes the ways to new ones that need none to be closed.
pub(crate) fn drop_held() -> Result<(), Fault> {
    clear_ambient_capability_set().about("ambient set")?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).about("capabilities")?;
    set_no_new_privs(true).about("no_new_privs")?;
    // From here on nothing inside can trace PID 1 or read its memory, descriptors or environment.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).about("dumpable")
}
