//! The guard: a second policy, on top of the first, for every program but PID 1.
//!
//! It asks PID 1 about calls that a filter can't decide:
//! - `connect`: a local socket in a directory of the host may lead out of the network namespace. The path lies in memory,
//!   where no filter sees it, so PID 1 connects in the caller's place, if the socket is the sandbox's own.
//! - `inotify_add_watch`: a watch on a file that other processes of the machine use tells what they do. PID 1 opens the
//!   path and adds the watch in the caller's place, if the file lies in a mount of the sandbox's own.
//! - `setxattr` and its kin: the name of an attribute lies in memory. PID 1 sets those of users, and no access control
//!   lists.
//! - `fallocate`: one call could take a whole disk. PID 1 reserves space in the caller's place, no faster than a disk is written.
//! - `SO_LINGER`: its time lies in memory. PID 1 sets it where no close waits for it.
//! - `poll` and `select` for many descriptors: the kernel charges its tables to nothing. PID 1 counts the descriptors and lets
//!   the call through, up to a limit for each sandbox.
//! - seccomp filters: the kernel compiles them into memory that the whole machine shares. PID 1 counts them and lets the
//!   call through, up to a limit for each sandbox.

use super::files::PUNCHING;
use super::network::{AF_NETLINK, AF_UNIX, NETLINK_SOCK_DIAG, SOCK_STREAM, SOCKET_TYPE, SOCKETS_OF_PID_1};
use super::{
    Condition, Rule, Verdict, allow, allow_if, ask, below, ioctl, is, is_not, masked, options, refuse,
};
use crate::plan::MOST_POLLED_UNCOUNTED;

/// Rules of the guard. It allows everything that no rule names; the policy below it decides about that.
pub const RULES: &[Rule] = &[
    allow_if(
        "socket",
        libc::SYS_socket,
        SOCKETS,
        libc::EPROTONOSUPPORT,
        "local datagrams name their receiver in every message, past any connect; lists of sockets are for PID 1 alone",
    ),
    ask("connect", libc::SYS_connect, "PID 1 looks at where it leads"),
    ask(
        "inotify_add_watch",
        libc::SYS_inotify_add_watch,
        "PID 1 adds it where only the sandbox's own files are",
    ),
    Rule {
        verdict: Verdict::AskUnless { any_of: &[&[is_not(0, SECCOMP_SET_MODE_FILTER)]] },
        ..allow("seccomp", libc::SYS_seccomp, FILTERS)
    },
    Rule {
        verdict: Verdict::AskUnless {
            any_of: &[&[is_not(0, PR_SET_SECCOMP)], &[is_not(1, SECCOMP_MODE_FILTER)]],
        },
        ..allow("prctl", libc::SYS_prctl, FILTERS)
    },
    options::BUFFERS_AND_LINGER,
    Rule {
        verdict: Verdict::AskUnless { any_of: &[&[is(1, PUNCHING)]] },
        ..allow("fallocate", libc::SYS_fallocate, "PID 1 reserves space, no faster than a disk is written")
    },
    ask_unless("poll", libc::SYS_poll, FEW_POLLED),
    ask_unless("ppoll", libc::SYS_ppoll, FEW_POLLED),
    ask_unless("select", libc::SYS_select, FEW_SELECTED),
    ask_unless("pselect6", libc::SYS_pselect6, FEW_SELECTED),
    ask("setxattr", libc::SYS_setxattr, ATTRIBUTES),
    ask("lsetxattr", libc::SYS_lsetxattr, ATTRIBUTES),
    ask("fsetxattr", libc::SYS_fsetxattr, ATTRIBUTES),
    allow_if("socketpair", libc::SYS_socketpair, STREAMS, libc::EPROTONOSUPPORT, "as for socket"),
    refuse("pidfd_getfd", libc::SYS_pidfd_getfd, libc::EPERM, "for PID 1 alone"),
    refuse("kcmp", libc::SYS_kcmp, libc::EPERM, "for PID 1 alone"),
];

const FEW_POLLED: &[&[Condition]] = &[&[below(1, MOST_POLLED_UNCOUNTED)], &[is(1, MOST_POLLED_UNCOUNTED)]];
const FEW_SELECTED: &[&[Condition]] = &[&[below(0, MOST_POLLED_UNCOUNTED)], &[is(0, MOST_POLLED_UNCOUNTED)]];

const fn ask_unless(
    name: &'static str,
    number: libc::c_long,
    any_of: &'static [&'static [Condition]],
) -> Rule {
    let why = "PID 1 counts the descriptors that threads wait for, where they are many";
    Rule { verdict: Verdict::AskUnless { any_of }, ..allow(name, number, why) }
}

const KEEP_SIZE: u32 = libc::FALLOC_FL_KEEP_SIZE as u32;
const FILTERS: &str = "PID 1 counts the filters that programs install";
const ATTRIBUTES: &str = "PID 1 sets user attributes; the kernel charges access control lists to nothing";
pub(crate) const SECCOMP_SET_MODE_FILTER: u32 = libc::SECCOMP_SET_MODE_FILTER;
pub(crate) const PR_SET_SECCOMP: u32 = libc::PR_SET_SECCOMP as u32;
pub(crate) const SECCOMP_MODE_FILTER: u32 = libc::SECCOMP_MODE_FILTER;

/// Calls of PID 1 that no program may make: the policy allows them, the guard refuses them again where a program could make
/// them.
pub(super) const ONLY_PID_1: &[Rule] = &[
    allow("pidfd_getfd", libc::SYS_pidfd_getfd, "PID 1 takes the socket that it is asked to connect"),
    allow("kcmp", libc::SYS_kcmp, "PID 1 looks at each table of descriptors once"),
    allow_if(
        "socket",
        libc::SYS_socket,
        SOCKETS_OF_PID_1,
        libc::EAFNOSUPPORT,
        "those of any program, and one by which PID 1 learns which local sockets are the sandbox's own",
    ),
    allow_if(
        "fallocate",
        libc::SYS_fallocate,
        &[&[is(1, PUNCHING)], &[is(1, 0)], &[is(1, KEEP_SIZE)]],
        libc::EOPNOTSUPP,
        "gives space back; reserves it for programs, which PID 1 does in their place",
    ),
    ioctl::WITH_ANSWERS,
];

/// Local sockets that are connected before they are used, and sockets of all other families but PID 1's own.
const SOCKETS: &[&[Condition]] = &[
    &[is_not(0, AF_UNIX), is_not(0, AF_NETLINK)],
    &[is(0, AF_NETLINK), is_not(2, NETLINK_SOCK_DIAG)],
    &[is(0, AF_UNIX), masked(1, SOCKET_TYPE, SOCK_STREAM)],
    &[is(0, AF_UNIX), masked(1, SOCKET_TYPE, libc::SOCK_SEQPACKET as u32)],
];

/// The conditions on `socket`, for `socketpair`.
const STREAMS: &[&[Condition]] = &[
    &[is_not(0, AF_UNIX)],
    &[masked(1, SOCKET_TYPE, SOCK_STREAM)],
    &[masked(1, SOCKET_TYPE, libc::SOCK_SEQPACKET as u32)],
];
