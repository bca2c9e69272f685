//! Requests to devices and file systems (`ioctl`): an allowlist, because every file system has requests of its own.
//!
//! Among those that file systems know: reservations of space, which are `fallocate` under another name
//! (`FS_IOC_RESVSP`, `FS_IOC_ZERO_RANGE`); exchange of two files' content; inode flags and project numbers, on which quotas
//! rest; snapshots; subvolumes; encryption keys; where on the disk a file lies (`FS_IOC_FIEMAP`), since a flag in memory, where no
//! filter sees it, has the file written back. What is not listed fails with `ENOTTY`, as on a file system that doesn't know
//! the request.
//!
//! Listed requests to sockets are those by which C libraries, language runtimes and `ifconfig` read the state of a socket
//! and of the sandbox's own interfaces, and those by which a process subscribes to a socket's events. Others of the family
//! make the kernel start a program of the host that loads a module, before it checks any right (`SIOCGIFBR`: bridges,
//! `SIOCGIFVLAN`: VLANs), need rights that no program inside has, or belong to a driver.

use super::{Condition, Rule, allow_if, is, is_not, masked, one_of};

/// Requests on terminals and files that are allowed everywhere, and more.
macro_rules! of_terminals_and_files {
    ($($more:expr),*) => {
        &[
            TERMINALS,
            &[is(1, FICLONE)],
            &[is(1, FICLONERANGE)],
            &[is(1, FIGETBSZ)],
            &[is(1, FS_IOC_GETFLAGS)],
            &[is(1, FS_IOC_FSGETXATTR)],
            $($more),*
        ]
    };
}

/// Requests that are allowed in a sandbox with namespaces, and more.
macro_rules! in_namespaces {
    ($($more:expr),*) => {
        of_terminals_and_files![&[one_of(1, SOCKETS)], &[is(1, RNDGETENTCNT)] $(, $more)*]
    };
}

pub(super) const RULES: &[Rule] = &[allow_if("ioctl", libc::SYS_ioctl, in_namespaces![], libc::ENOTTY, WHY)];

/// For PID 1, which answers the guard. Programs are let through as well, but have nothing to answer: the kernel has one
/// listener for all filters of a process, and that is the guard's.
pub(super) const WITH_ANSWERS: Rule = allow_if(
    "ioctl",
    libc::SYS_ioctl,
    in_namespaces![&[is(1, NOTIF_RECV)], &[is(1, NOTIF_SEND)], &[is(1, NOTIF_ID_VALID)]],
    libc::ENOTTY,
    WHY,
);

/// Rule in a sandbox without namespaces: there are no sockets but pairs, and the requests would reveal the names of the
/// host's interfaces.
pub(super) const SUPERVISED: Rule = allow_if(
    "ioctl",
    libc::SYS_ioctl,
    of_terminals_and_files![],
    libc::ENOTTY,
    "terminals, pipes, and copies that share what they hold; nothing by which a file system changes files or makes a copy of itself: for some of that a descriptor that only reads is enough",
);

/// Never to type into a terminal, paste into the console, or load a line discipline.
const TERMINALS: &[Condition] = &[
    masked(1, FAMILY, 0x5400),
    is_not(1, libc::TIOCSTI as u32),
    is_not(1, TIOCLINUX),
    is_not(1, TIOCSETD),
    is_not(1, TIOCCONS),
];
/// Which family a request belongs to.
const FAMILY: u32 = 0xff00;
/// Requests that read sockets and interfaces. The fill level of a socket is read as that of a terminal (`FIONREAD`,
/// `TIOCOUTQ`).
const SOCKETS: &[u32] = &[
    // Which process gets a socket's signals, as by F_SETOWN and F_GETOWN.
    FIOSETOWN,
    SIOCSPGRP,
    FIOGETOWN,
    SIOCGPGRP,
    // Where urgent data are.
    SIOCATMARK,
    // When the last datagram came, as by SO_TIMESTAMP.
    SIOCGSTAMP,
    SIOCGSTAMPNS,
    // How much is not sent yet.
    SIOCOUTQNSD,
    // The interfaces: glibc and musl (`if_nametoindex`, `if_indextoname`, `if_nameindex`), Java (`NetworkInterface`), Python, `ifconfig`.
    libc::SIOCGIFNAME as u32,
    libc::SIOCGIFCONF as u32,
    libc::SIOCGIFFLAGS as u32,
    libc::SIOCGIFADDR as u32,
    libc::SIOCGIFDSTADDR as u32,
    libc::SIOCGIFBRDADDR as u32,
    libc::SIOCGIFNETMASK as u32,
    libc::SIOCGIFMETRIC as u32,
    libc::SIOCGIFMTU as u32,
    libc::SIOCGIFHWADDR as u32,
    libc::SIOCGIFINDEX as u32,
    libc::SIOCGIFTXQLEN as u32,
    libc::SIOCGIFMAP as u32,
    // An interface's speed: psutil and libpcap fail on any answer that the kernel wouldn't give. For loopback it gives EOPNOTSUPP, and all
    // that changes something takes rights over the network.
    libc::SIOCETHTOOL as u32,
];
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;
const FIOGETOWN: u32 = 0x8903;
const SIOCGPGRP: u32 = 0x8904;
const SIOCATMARK: u32 = 0x8905;
const SIOCGSTAMP: u32 = 0x8906;
const SIOCGSTAMPNS: u32 = 0x8907;
const SIOCOUTQNSD: u32 = 0x894b;
const NOTIF_RECV: u32 = libc::SECCOMP_IOCTL_NOTIF_RECV as u32;
const NOTIF_SEND: u32 = libc::SECCOMP_IOCTL_NOTIF_SEND as u32;
const NOTIF_ID_VALID: u32 = libc::SECCOMP_IOCTL_NOTIF_ID_VALID as u32;
const TIOCLINUX: u32 = 0x541c;
const TIOCCONS: u32 = 0x541d;
const TIOCSETD: u32 = 0x5423;
const FICLONE: u32 = 0x4004_9409;
const FICLONERANGE: u32 = 0x4020_940d;
const FIGETBSZ: u32 = 2;
const FS_IOC_GETFLAGS: u32 = 0x8008_6601;
const FS_IOC_FSGETXATTR: u32 = 0x801c_581f;
/// Returns the amount of entropy of the kernel, on `/dev/random`.
const RNDGETENTCNT: u32 = 0x8004_5200;
const WHY: &str = "terminals, pipes, sockets, copies that share what they hold, and what only reads; nothing by which a file \
                   system reserves space or changes files";
