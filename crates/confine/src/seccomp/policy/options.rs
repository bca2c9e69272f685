//! Options of sockets that programs may set: an allowlist for each level.
//!
//! Several options that are not listed have the kernel keep memory that it charges to no control group, or use tables
//! that it has once for all programs: filters, IPv6 flow labels, TCP-MD5 and TCP-AO keys, IP options, multicast memberships and their
//! source lists. Others fill a queue that no program has to read (time stamps of what is sent, `SO_ZEROCOPY`), or load
//! parts of the kernel (`TCP_ULP`).

use super::{Rule, Verdict, allow, allow_if, is, is_not, one_of};

pub(super) const RULES: &[Rule] = &[allow_if(
    "setsockopt",
    libc::SYS_setsockopt,
    &[
        &[is(1, libc::SOL_SOCKET as u32), one_of(2, OF_SOCKETS)],
        &[is(1, libc::IPPROTO_TCP as u32), one_of(2, OF_TCP)],
        &[is(1, libc::IPPROTO_IP as u32), one_of(2, OF_IP)],
        &[is(1, libc::IPPROTO_IPV6 as u32), one_of(2, OF_IPV6)],
        &[is(1, libc::IPPROTO_UDP as u32), one_of(2, OF_UDP)],
        &[is(1, libc::SOL_NETLINK as u32), one_of(2, OF_NETLINK)],
    ],
    libc::ENOPROTOOPT,
    "sets a socket's options; none for which the kernel keeps memory that no limit counts, and no filter program",
)];

/// For the guard, which asks PID 1 about two options.
///
/// A buffer keeps the kernel's default size, as if the kernel's limit (`net.core.rmem_max`) were no higher: the request
/// succeeds without effect. The kernel shortens larger sizes without an error, too. It charges queues of netlink sockets and
/// what UDP sockets send to no control group, so that the number of sockets times this size is what they can hold.
///
/// With `SO_LINGER` a process that closes a socket waits, for a time that lies in memory.
pub(super) const BUFFERS_AND_LINGER: Rule = Rule {
    verdict: Verdict::AskUnless {
        any_of: &[
            &[is_not(1, libc::SOL_SOCKET as u32)],
            &[
                is_not(2, libc::SO_SNDBUF as u32),
                is_not(2, libc::SO_RCVBUF as u32),
                is_not(2, libc::SO_LINGER as u32),
            ],
        ],
    },
    ..allow("setsockopt", libc::SYS_setsockopt, "buffer sizes stay as they are; no close waits")
};

const OF_SOCKETS: &[u32] = &[
    libc::SO_REUSEADDR as u32,
    libc::SO_DONTROUTE as u32,
    libc::SO_BROADCAST as u32,
    libc::SO_SNDBUF as u32,
    libc::SO_RCVBUF as u32,
    libc::SO_KEEPALIVE as u32,
    libc::SO_OOBINLINE as u32,
    libc::SO_PRIORITY as u32,
    libc::SO_LINGER as u32,
    libc::SO_REUSEPORT as u32,
    libc::SO_PASSCRED as u32,
    libc::SO_RCVLOWAT as u32,
    libc::SO_SNDLOWAT as u32,
    libc::SO_RCVTIMEO as u32,
    libc::SO_SNDTIMEO as u32,
    libc::SO_BINDTODEVICE as u32,
    libc::SO_TIMESTAMP as u32,
    libc::SO_PASSSEC as u32,
    libc::SO_TIMESTAMPNS as u32,
    libc::SO_RXQ_OVFL as u32,
    libc::SO_PEEK_OFF as u32,
    libc::SO_LOCK_FILTER as u32,
    libc::SO_INCOMING_CPU as u32,
    SO_TIMESTAMP_NEW,
    SO_TIMESTAMPNS_NEW,
    SO_RCVTIMEO_NEW,
    SO_SNDTIMEO_NEW,
    SO_PASSPIDFD,
    SO_PASSRIGHTS,
];

const OF_TCP: &[u32] = &[
    libc::TCP_NODELAY as u32,
    libc::TCP_MAXSEG as u32,
    libc::TCP_CORK as u32,
    libc::TCP_KEEPIDLE as u32,
    libc::TCP_KEEPINTVL as u32,
    libc::TCP_KEEPCNT as u32,
    libc::TCP_SYNCNT as u32,
    libc::TCP_LINGER2 as u32,
    libc::TCP_DEFER_ACCEPT as u32,
    libc::TCP_WINDOW_CLAMP as u32,
    libc::TCP_QUICKACK as u32,
    libc::TCP_CONGESTION as u32,
    libc::TCP_THIN_LINEAR_TIMEOUTS as u32,
    libc::TCP_USER_TIMEOUT as u32,
    libc::TCP_FASTOPEN as u32,
    libc::TCP_NOTSENT_LOWAT as u32,
    libc::TCP_FASTOPEN_CONNECT as u32,
    TCP_INQ,
];

const OF_IP: &[u32] = &[
    libc::IP_TOS as u32,
    libc::IP_TTL as u32,
    libc::IP_PKTINFO as u32,
    libc::IP_MTU_DISCOVER as u32,
    // The C library's resolver gives up without it.
    libc::IP_RECVERR as u32,
    libc::IP_RECVTTL as u32,
    libc::IP_RECVTOS as u32,
    libc::IP_FREEBIND as u32,
    libc::IP_RECVORIGDSTADDR as u32,
    libc::IP_BIND_ADDRESS_NO_PORT as u32,
    libc::IP_MULTICAST_IF as u32,
    libc::IP_MULTICAST_TTL as u32,
    libc::IP_MULTICAST_LOOP as u32,
    IP_MULTICAST_ALL,
    IP_UNICAST_IF,
    IP_LOCAL_PORT_RANGE,
];

const OF_IPV6: &[u32] = &[
    libc::IPV6_UNICAST_HOPS as u32,
    libc::IPV6_MULTICAST_IF as u32,
    libc::IPV6_MULTICAST_HOPS as u32,
    libc::IPV6_MULTICAST_LOOP as u32,
    libc::IPV6_MTU_DISCOVER as u32,
    libc::IPV6_RECVERR as u32,
    libc::IPV6_V6ONLY as u32,
    IPV6_MULTICAST_ALL,
    IPV6_FLOWINFO_SEND,
    libc::IPV6_RECVPKTINFO as u32,
    libc::IPV6_RECVHOPLIMIT as u32,
    libc::IPV6_DONTFRAG as u32,
    libc::IPV6_RECVTCLASS as u32,
    libc::IPV6_TCLASS as u32,
    IPV6_AUTOFLOWLABEL,
    IPV6_ADDR_PREFERENCES,
    IPV6_RECVORIGDSTADDR,
    IPV6_UNICAST_IF,
    IPV6_FREEBIND,
];

const OF_UDP: &[u32] = &[libc::UDP_CORK as u32, libc::UDP_SEGMENT as u32, libc::UDP_GRO as u32];

const OF_NETLINK: &[u32] = &[
    libc::NETLINK_ADD_MEMBERSHIP as u32,
    libc::NETLINK_DROP_MEMBERSHIP as u32,
    libc::NETLINK_PKTINFO as u32,
    libc::NETLINK_CAP_ACK as u32,
    libc::NETLINK_EXT_ACK as u32,
    NETLINK_GET_STRICT_CHK,
];

const SO_TIMESTAMP_NEW: u32 = 63;
const SO_TIMESTAMPNS_NEW: u32 = 64;
const SO_RCVTIMEO_NEW: u32 = 66;
const SO_SNDTIMEO_NEW: u32 = 67;
const SO_PASSPIDFD: u32 = 76;
const SO_PASSRIGHTS: u32 = 83;
const TCP_INQ: u32 = 36;
const IP_MULTICAST_ALL: u32 = 49;
const IP_UNICAST_IF: u32 = 50;
const IP_LOCAL_PORT_RANGE: u32 = 51;
const IPV6_MULTICAST_ALL: u32 = 29;
const IPV6_FLOWINFO_SEND: u32 = 33;
const IPV6_AUTOFLOWLABEL: u32 = 70;
const IPV6_ADDR_PREFERENCES: u32 = 72;
const IPV6_RECVORIGDSTADDR: u32 = 74;
const IPV6_UNICAST_IF: u32 = 76;
const IPV6_FREEBIND: u32 = 78;
const NETLINK_GET_STRICT_CHK: u32 = 12;
