//! Sockets. The network namespace decides where they lead: nowhere but the sandbox's own loopback.
//!
//! Address families are an allowlist, because some don't care about namespaces: a socket of `AF_VSOCK` opened in a
//! fresh network namespace reaches the machine's host (tried on Linux 6.18).

use super::{Condition, Rule, allow, allow_if, is, is_not, masked};

pub(super) const RULES: &[Rule] = &[
    allow_if(
        "socket",
        libc::SYS_socket,
        SOCKETS,
        libc::EAFNOSUPPORT,
        "local and IP sockets; route netlink because getifaddrs() reads interfaces there; no raw or other family, no protocol but TCP and UDP: the kernel would load it",
    ),
    allow_if(
        "socketpair",
        libc::SYS_socketpair,
        &[&[is(0, AF_UNIX)]],
        libc::EAFNOSUPPORT,
        "a pair of local sockets; other families have none that programs need",
    ),
    allow("connect", libc::SYS_connect, "connects a socket"),
    allow("accept", libc::SYS_accept, "takes a connection"),
    allow("accept4", libc::SYS_accept4, "the same with flags"),
    allow("bind", libc::SYS_bind, "names a socket"),
    allow("listen", libc::SYS_listen, "waits for connections, inside"),
    allow("getsockname", libc::SYS_getsockname, "asks for a socket's name"),
    allow("getpeername", libc::SYS_getpeername, "asks for the other end's name"),
    allow_if(
        "getsockopt",
        libc::SYS_getsockopt,
        &[
            &[is_not(1, libc::SOL_SOCKET as u32)],
            &[is_not(2, libc::SO_COOKIE as u32), is_not(2, SO_NETNS_COOKIE)],
        ],
        libc::ENOPROTOOPT,
        "reads a socket's options; not the two counters of all sockets and network namespaces of the machine",
    ),
    allow("shutdown", libc::SYS_shutdown, "closes one direction"),
    allow("sendto", libc::SYS_sendto, "sends"),
    allow("recvfrom", libc::SYS_recvfrom, "receives"),
    allow("sendmsg", libc::SYS_sendmsg, "sends with descriptors, inside"),
    allow("recvmsg", libc::SYS_recvmsg, "receives with descriptors"),
    allow("sendmmsg", libc::SYS_sendmmsg, "sends several, as resolvers do"),
    allow("recvmmsg", libc::SYS_recvmmsg, "receives several"),
];

const SO_NETNS_COOKIE: u32 = 71;
/// Sockets that any program may have, and one that only PID 1 may have: by it the kernel lists the sockets that exist.
pub(super) const SOCKETS_OF_PID_1: &[&[Condition]] = &[
    &[is(0, AF_UNIX)],
    &[is(0, AF_INET), masked(1, SOCKET_TYPE, SOCK_STREAM), is(2, 0)],
    &[is(0, AF_INET), masked(1, SOCKET_TYPE, SOCK_STREAM), is(2, TCP)],
    &[is(0, AF_INET), masked(1, SOCKET_TYPE, SOCK_DGRAM), is(2, 0)],
    &[is(0, AF_INET), masked(1, SOCKET_TYPE, SOCK_DGRAM), is(2, UDP)],
    &[is(0, AF_INET6), masked(1, SOCKET_TYPE, SOCK_STREAM), is(2, 0)],
    &[is(0, AF_INET6), masked(1, SOCKET_TYPE, SOCK_STREAM), is(2, TCP)],
    &[is(0, AF_INET6), masked(1, SOCKET_TYPE, SOCK_DGRAM), is(2, 0)],
    &[is(0, AF_INET6), masked(1, SOCKET_TYPE, SOCK_DGRAM), is(2, UDP)],
    &[is(0, AF_NETLINK), is(2, NETLINK_ROUTE)],
    &[is(0, AF_NETLINK), is(2, NETLINK_SOCK_DIAG)],
];
const SOCKETS: &[&[Condition]] = SOCKETS_OF_PID_1.split_at(SOCKETS_OF_PID_1.len() - 1).0;

pub(super) const AF_UNIX: u32 = libc::AF_UNIX as u32;
const AF_INET: u32 = libc::AF_INET as u32;
const AF_INET6: u32 = libc::AF_INET6 as u32;
pub(super) const AF_NETLINK: u32 = libc::AF_NETLINK as u32;
const TCP: u32 = libc::IPPROTO_TCP as u32;
const UDP: u32 = libc::IPPROTO_UDP as u32;
const NETLINK_ROUTE: u32 = libc::NETLINK_ROUTE as u32;
pub(super) const NETLINK_SOCK_DIAG: u32 = libc::NETLINK_SOCK_DIAG as u32;
pub(super) const SOCK_STREAM: u32 = libc::SOCK_STREAM as u32;
const SOCK_DGRAM: u32 = libc::SOCK_DGRAM as u32;
/// The type is the low four bits; above them stand flags such as `SOCK_CLOEXEC`.
pub(super) const SOCKET_TYPE: u32 = 0xf;
