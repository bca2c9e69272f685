//! The guard: a second policy, on top, where a directory that others also use is bound into a sandbox.
//!
//! A local socket in such a directory leads out, network namespace or not: whoever listens there is reached, and may
//! pass descriptors in. Which path a `connect` names lies in memory, where no filter sees it. So PID 1 is asked, and
//! connects in the caller's place.

use super::network::{AF_UNIX, SOCK_STREAM, SOCKET_TYPE};
use super::{Rule, allow, allow_if, is_not, masked, refuse};

/// Everything that no rule names is allowed: by the guard, and decided by the policy below it.
pub const RULES: &[Rule] = &[
    allow_if(
        "socket",
        libc::SYS_socket,
        STREAMS,
        libc::EPROTONOSUPPORT,
        "local datagrams name their receiver in every message, past any connect",
    ),
    Rule {
        verdict: super::Verdict::Ask,
        ..allow("connect", libc::SYS_connect, "PID 1 looks at where it leads")
    },
    allow_if("socketpair", libc::SYS_socketpair, STREAMS, libc::EPROTONOSUPPORT, "as for socket"),
    refuse("pidfd_getfd", libc::SYS_pidfd_getfd, libc::EPERM, "for PID 1 alone"),
];

/// What PID 1 does and nobody else may: the policy allows it, the guard refuses it again.
pub(super) const ONLY_PID_1: &[Rule] =
    &[allow("pidfd_getfd", libc::SYS_pidfd_getfd, "PID 1 takes the socket that it is asked to connect")];

/// Local sockets that are connected before they are used, and sockets of all other families.
const STREAMS: &[&[super::Condition]] = &[
    &[is_not(0, AF_UNIX)],
    &[masked(1, SOCKET_TYPE, SOCK_STREAM)],
    &[masked(1, SOCKET_TYPE, libc::SOCK_SEQPACKET as u32)],
];
