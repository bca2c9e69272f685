//! `/dev`: a fixed set. The six harmless devices of the host, terminals of the sandbox's own, and shared memory.

use super::root::{Kind, attach, scratch, symlink};
use super::{About, Fault};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen, open_tree,
};

/// The devices that are lent, and nothing else of the host's `/dev`.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: [(&str, &str); 5] = [
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
    ("dev/ptmx", "pts/ptmx"),
];

/// Puts `/dev` up.
pub(crate) fn put_up(root: BorrowedFd<'_>) -> Result<(), Fault> {
    for name in DEVICES {
        let host = format!("/dev/{name}");
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let mount = open_tree(CWD, &host, flags).about(&host)?;
        attach(&mount, root, &host[1..], Kind::File)?;
    }
    for (link, target) in LINKS {
        symlink(root, link, target)?;
    }
    attach(&terminals()?, root, "dev/pts", Kind::Directory)?;
    scratch(root, "dev/shm")
}

/// Pseudo-terminals that no other sandbox sees.
fn terminals() -> Result<OwnedFd, Fault> {
    let subject = "dev/pts";
    let context = fsopen(c"devpts", FsOpenFlags::FSOPEN_CLOEXEC).about(subject)?;
    fsconfig_set_string(&context, c"ptmxmode", c"666").about(subject)?;
    fsconfig_set_string(&context, c"mode", c"620").about(subject)?;
    fsconfig_create(&context).about(subject)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).about(subject)
}
