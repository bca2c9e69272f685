//! `/dev`: a fixed set. The six harmless devices of the host, terminals of the sandbox's own, and shared memory.

use super::root::{MountPointKind, attach, directory, scratch, symlink};
use super::{ErrorContext, WallError};
use crate::kernel::set_mount_attributes;
use crate::wall;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen, open_tree,
};

/// Devices of the host's `/dev` that are lent; no others are.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Directories of terminals and of shared memory.
const TERMINALS: &str = "dev/pts";
pub(crate) const SHARED_MEMORY: &str = "dev/shm";

/// Puts `/dev` up.
pub(crate) fn put_up(root: BorrowedFd<'_>, most_terminals: u64) -> Result<(), WallError> {
    put_up_fixed(root)?;
    put_up_terminals(root, most_terminals)?;
    wall!(FixedDevices: scratch(root, SHARED_MEMORY), else Ok(()))
}

/// Puts up what is the same everywhere.
pub(crate) fn put_up_fixed(root: BorrowedFd<'_>) -> Result<(), WallError> {
    wall!(FixedDevices: put_up_lent(root), else super::root::copy_of_hosts("/dev").and_then(|all| attach(&all, root, "dev", MountPointKind::Directory)))
}

fn put_up_lent(root: BorrowedFd<'_>) -> Result<(), WallError> {
    let devices = directory(root, "dev").about("dev")?;
    let devices = devices.as_fd();
    for name in DEVICES {
        let mount = device(name)?;
        attach(&mount, devices, name, MountPointKind::File)?;
    }
    LINKS.iter().try_for_each(|(link, target)| symlink(devices, link, target))
}

/// A device of the host, mounted read-only: it can be written to as before. Its times are the host's and stay as they are, so that
/// no sandbox leaves something in them.
fn device(name: &str) -> Result<OwnedFd, WallError> {
    let host = format!("/dev/{name}");
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(CWD, &host, flags).about(&host)?;
    let read_only = wall!(ReadOnlyBinds: MountAttrFlags::MOUNT_ATTR_RDONLY, else MountAttrFlags::empty());
    set_mount_attributes(mount.as_fd(), read_only, false).about(&host)?;
    Ok(mount)
}

/// Makes the places in it for what is each sandbox's own.
pub(crate) fn make_places(root: BorrowedFd<'_>) -> Result<(), WallError> {
    [TERMINALS, SHARED_MEMORY].into_iter().try_for_each(|place| directory(root, place).about(place).map(drop))
}

/// Puts up terminals of the sandbox's own.
pub(crate) fn put_up_terminals(root: BorrowedFd<'_>, most: u64) -> Result<(), WallError> {
    let terminals = wall!(OwnTerminals: terminals(most)?, else super::root::copy_of_hosts("/dev/pts")?);
    wall!(FixedDevices: attach(&terminals, root, TERMINALS, MountPointKind::Directory), else Ok(()))
}

/// Mounts pseudo-terminals (PTYs) that no other sandbox sees, limited to a sandbox's share: the machine has one limit for
/// all of them (`kernel.pty.max`).
fn terminals(most: u64) -> Result<OwnedFd, WallError> {
    let subject = "dev/pts";
    let context = fsopen(c"devpts", FsOpenFlags::FSOPEN_CLOEXEC).about(subject)?;
    fsconfig_set_string(&context, c"ptmxmode", c"666").about(subject)?;
    fsconfig_set_string(&context, c"mode", c"620").about(subject)?;
    wall!(TerminalLimit: fsconfig_set_string(&context, c"max", most.to_string()).about(subject)?, else ());
    fsconfig_create(&context).about(subject)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).about(subject)
}
