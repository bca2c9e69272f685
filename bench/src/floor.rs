//! The minimum cost of a sandbox: one `clone3` with the same namespaces and mounts as ours, `/bin/true`, and its end. It has
//! no Landlock, no seccomp filter, full capabilities, no supervisor, no reports and no loopback. It is a measure without any
//! security.

use rustix::fs::{CWD, FileType, Mode, mkdirat, mknodat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount, unmount,
};
use std::ffi::CStr;

/// Paths of the host that are mounted, if they exist.
const SHOWN: [(&CStr, &CStr); 6] = [
    (c"/usr", c"usr"),
    (c"/etc/alternatives", c"etc/alternatives"),
    (c"/etc/ld.so.cache", c"etc/ld.so.cache"),
    (c"/etc/ssl/certs", c"etc/ssl/certs"),
    (c"/etc/ssl/openssl.cnf", c"etc/ssl/openssl.cnf"),
    (c"/etc/fonts", c"etc/fonts"),
];

const LINKS: [(&CStr, &CStr); 4] =
    [(c"usr/bin", c"bin"), (c"usr/sbin", c"sbin"), (c"usr/lib", c"lib"), (c"usr/lib64", c"lib64")];

const DIRECTORIES: [&CStr; 10] =
    [c"usr", c"etc", c"etc/ssl", c"proc", c"dev", c"dev/pts", c"dev/shm", c"tmp", c"home", c"workspace"];

const DEVICES: [(&CStr, &CStr); 6] = [
    (c"/dev/null", c"dev/null"),
    (c"/dev/zero", c"dev/zero"),
    (c"/dev/full", c"dev/full"),
    (c"/dev/random", c"dev/random"),
    (c"/dev/urandom", c"dev/urandom"),
    (c"/dev/tty", c"dev/tty"),
];

const WRITABLE: [&CStr; 4] = [c"tmp", c"home", c"workspace", c"dev/shm"];

const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Data for the child, prepared before it exists: the child shares this process's memory, and must not allocate.
struct ChildData {
    uid_map: String,
    gid_map: String,
    failed: Option<Errno>,
}

/// Runs one from creation to its end.
pub(crate) fn once() {
    const STACK_BYTES: usize = 64 << 10;
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mut birth = ChildData { uid_map: format!("0 {uid} 1"), gid_map: format!("0 {gid} 1"), failed: None };
    let mut stack = vec![0_u128; STACK_BYTES / size_of::<u128>()];
    let flags = NAMESPACES | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: stack and argument outlive the child's use of them, because this thread is suspended (CLONE_VFORK). The child's
    // code in this memory is in `child`, which doesn't allocate.
    let pid =
        unsafe { libc::clone(child, stack.as_mut_ptr_range().end.cast(), flags, (&raw mut birth).cast()) };
    assert!(pid > 0, "no sandbox: {}", std::io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: takes a process id, and a pointer to a local integer.
    let reaped = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert!(birth.failed.is_none() && reaped == pid && status == 0, "{:?}, {status}", birth.failed);
}

extern "C" fn child(birth: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the pointer is the one passed to clone, and the passing thread is suspended.
    let birth = unsafe { &mut *birth.cast::<ChildData>() };
    birth.failed = build(birth).err();
    if birth.failed.is_none() {
        let argv = [c"/bin/true".as_ptr(), std::ptr::null()];
        // SAFETY: both arrays end in a null pointer and hold NUL-terminated strings.
        unsafe { libc::execve(argv[0], argv.as_ptr(), argv[1..].as_ptr()) };
    }
    // SAFETY: runs no exit handlers of this program.
    unsafe { libc::_exit(1) }
}

fn build(birth: &ChildData) -> Result<(), Errno> {
    write(c"/proc/self/setgroups", b"deny")?;
    write(c"/proc/self/uid_map", birth.uid_map.as_bytes())?;
    write(c"/proc/self/gid_map", birth.gid_map.as_bytes())?;
    mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let common = MountFlags::NOSUID | MountFlags::NODEV;
    mount(c"floor", c"/tmp", c"tmpfs", common, c"size=64m,mode=755")?;
    rustix::process::chdir(c"/tmp")?;
    for directory in DIRECTORIES {
        mkdirat(CWD, directory, Mode::from_raw_mode(0o755))?;
    }
    for (target, link) in LINKS {
        symlinkat(target, CWD, link)?;
    }
    for (source, place) in SHOWN {
        show(source, place, common)?;
    }
    mount(c"proc", c"proc", c"proc", common | MountFlags::NOEXEC | MountFlags::RDONLY, None)?;
    for (source, place) in DEVICES {
        mknodat(CWD, place, FileType::RegularFile, Mode::from_raw_mode(0o644), 0)?;
        mount_bind(source, place)?;
    }
    mount(
        c"devpts",
        c"dev/pts",
        c"devpts",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        c"ptmxmode=666,mode=620",
    )?;
    for place in WRITABLE {
        mount_bind(place, place)?;
    }
    rustix::process::pivot_root(c".", c".")?;
    unmount(c".", UnmountFlags::DETACH)?;
    mount_remount(c"/", MountFlags::BIND | MountFlags::RDONLY | common, c"")
}

/// Mounts a path of the host read-only, if it exists.
fn show(source: &CStr, place: &CStr, common: MountFlags) -> Result<(), Errno> {
    use rustix::fs::{FileType as Type, stat};
    let Ok(found) = stat(source) else { return Ok(()) };
    if Type::from_raw_mode(found.st_mode) == Type::Directory {
        let _ = mkdirat(CWD, place, Mode::from_raw_mode(0o755));
    } else {
        mknodat(CWD, place, Type::RegularFile, Mode::from_raw_mode(0o644), 0)?;
    }
    mount_bind_recursive(source, place)?;
    mount_remount(place, MountFlags::BIND | MountFlags::RDONLY | common, c"")
}

fn write(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    use rustix::fs::{OFlags, openat};
    let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text).map(drop)
}
