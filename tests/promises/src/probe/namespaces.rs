//! Namespaces of the probe's own, in which it has every capability.
//!
//! They are the control of attempts that would damage a host, or that an ordinary user may not make there.

use super::kernel::{self, call_named};
use std::fs;

const ALL: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Enters the namespaces as process 1 and user 0. The calling process waits for that process, and exits with its
/// status.
pub(super) fn enter() -> Result<(), String> {
    let (uid, gid) = (own_id(libc::SYS_geteuid), own_id(libc::SYS_getegid));
    call_named(libc::SYS_unshare, [ALL as u64, 0, 0, 0, 0, 0])
        .map_err(|errno| format!("unshare: {errno:?}"))?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {uid} 1"))?;
    write("/proc/self/gid_map", &format!("0 {gid} 1"))?;
    match kernel::fork().map_err(|errno| format!("fork: {errno:?}"))? {
        None => {
            // Mount a `/proc` of the new PID namespace. If that fails, attempts that need it fail and report so.
            let _ = mount("none", "/", "none", libc::MS_REC | libc::MS_PRIVATE);
            let _ = mount("proc", "/proc", "proc", 0);
            Ok(())
        }
        Some(child) => {
            let status = kernel::wait_for(child).map_err(|errno| format!("wait: {errno:?}"))?;
            kernel::end(i32::from(status != 0))
        }
    }
}

fn mount(source: &str, target: &str, kind: &str, flags: u64) -> Result<i64, kernel::Errno> {
    let texts = [source, target, kind].map(|text| format!("{text}\0"));
    let [source, target, kind] = texts.each_ref().map(|text| text.as_ptr().expose_provenance() as u64);
    call_named(libc::SYS_mount, [source, target, kind, flags, 0, 0])
}

fn own_id(call: libc::c_long) -> i64 {
    call_named(call, [0; 6]).unwrap_or_default()
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
