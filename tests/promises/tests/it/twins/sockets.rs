//! The program's own sockets: Unix sockets, loopback, and the list of interfaces.

use crate::case::{Case, Handle, Script, args, internet, local, local_length, numbers, room, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::Argument;
use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, IPPROTO_TCP, IPPROTO_UDP, SO_ERROR, SO_REUSEADDR, SOCK_CLOEXEC,
    SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET,
};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let path = place.path(&format!("/tmp/{}-socket", scene.mark));
    let hidden = format!("@{}-twin", scene.mark);
    let streams = |family: i32, kind: i32, protocol: i32| {
        let any = match family {
            AF_INET => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
            _ => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0),
        };
        let what = format!("loopback of family {family}, protocol {protocol}");
        Case::twin(&what, move |s| on_loopback(s, any, (family, kind, protocol)))
    };
    vec![
        Case::twin("a pair", |s| pair(s, SOCK_STREAM)),
        Case::twin("a pair that keeps messages apart", |s| pair(s, SOCK_SEQPACKET | SOCK_CLOEXEC)),
        Case::twin("a local socket at a path", |s| at_path(s, &path, SOCK_STREAM)),
        Case::twin("a local socket at a path that keeps messages apart", |s| {
            at_path(s, &(path + "-apart"), SOCK_SEQPACKET);
        }),
        Case::twin("a local socket with an abstract name", |s| at_path(s, &hidden, SOCK_STREAM)),
        streams(AF_INET, SOCK_STREAM, 0),
        streams(AF_INET, SOCK_STREAM, IPPROTO_TCP),
        streams(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0),
        streams(AF_INET6, SOCK_STREAM, IPPROTO_TCP),
        Case::twin("datagrams on loopback", |s| datagrams(s, AF_INET, 0)),
        Case::twin("datagrams on loopback, by protocol", |s| datagrams(s, AF_INET, IPPROTO_UDP)),
        Case::twin("datagrams on loopback 6", |s| datagrams(s, AF_INET6, 0)),
        Case::twin("datagrams on loopback 6, by protocol", |s| datagrams(s, AF_INET6, IPPROTO_UDP)),
        Case::twin("the list of interfaces", interfaces),
        Case::twin("an interface", an_interface),
        Case::twin("options that programs set", options),
        Case::twin("a descriptor passed on", pass_descriptor),
    ]
}

/// Sets the options that runtimes, clients and servers use.
fn options(s: &mut Script) {
    let stream = s.call("socket", args![AF_INET, SOCK_STREAM, 0]);
    let stream6 = s.call("socket", args![AF_INET6, SOCK_STREAM, 0]);
    let datagram = s.call("socket", args![AF_INET, SOCK_DGRAM, 0]);
    let netlink = s.call("socket", args![AF_NETLINK, SOCK_RAW, libc::NETLINK_ROUTE]);
    let mut set = |socket: Handle, level: i32, options: &[i32]| {
        for option in options {
            s.call("setsockopt", args![socket, level, *option, numbers(&[1, 0]), 8]);
        }
    };
    let of_sockets = [
        SO_REUSEADDR,
        libc::SO_REUSEPORT,
        libc::SO_KEEPALIVE,
        libc::SO_BROADCAST,
        libc::SO_LINGER,
        libc::SO_OOBINLINE,
        libc::SO_RCVLOWAT,
        libc::SO_SNDBUF,
        libc::SO_RCVBUF,
        libc::SO_PRIORITY,
        libc::SO_TIMESTAMP,
    ];
    set(stream, SOL_SOCKET, &of_sockets);
    let of_tcp = [
        libc::TCP_NODELAY,
        libc::TCP_KEEPIDLE,
        libc::TCP_KEEPINTVL,
        libc::TCP_KEEPCNT,
        libc::TCP_USER_TIMEOUT,
        libc::TCP_CORK,
        libc::TCP_QUICKACK,
        libc::TCP_DEFER_ACCEPT,
        libc::TCP_SYNCNT,
        libc::TCP_NOTSENT_LOWAT,
        libc::TCP_LINGER2,
    ];
    set(stream, IPPROTO_TCP, &of_tcp);
    set(
        stream,
        libc::IPPROTO_IP,
        &[libc::IP_TOS, libc::IP_TTL, libc::IP_RECVERR, libc::IP_BIND_ADDRESS_NO_PORT],
    );
    set(
        datagram,
        libc::IPPROTO_IP,
        &[libc::IP_PKTINFO, libc::IP_MTU_DISCOVER, libc::IP_RECVTOS, libc::IP_MULTICAST_TTL],
    );
    set(
        stream6,
        libc::IPPROTO_IPV6,
        &[libc::IPV6_V6ONLY, libc::IPV6_TCLASS, libc::IPV6_UNICAST_HOPS, libc::IPV6_RECVERR],
    );
    set(datagram, IPPROTO_UDP, &[libc::UDP_GRO]);
    set(netlink, libc::SOL_NETLINK, &[libc::NETLINK_ADD_MEMBERSHIP, libc::NETLINK_EXT_ACK]);
}

fn pair(s: &mut Script, kind: i32) {
    let pair = s.call("socketpair", args![AF_UNIX, kind, 0, room(8)]);
    s.call("write", args![pair.stored(3, 0), "text", 4]);
    s.call("read", args![pair.stored(3, 4), room(4), 4]);
    s.call("shutdown", args![pair.stored(3, 0), libc::SHUT_WR]);
}

/// Listens, connects, and sends a message, all in one process.
fn at_path(s: &mut Script, path: &str, kind: i32) {
    let listener = s.call("socket", args![AF_UNIX, kind, 0]);
    s.call("bind", args![listener, local(path), local_length(path)]);
    s.call("listen", args![listener, 4]);
    let client = s.call("socket", args![AF_UNIX, kind, 0]);
    s.call("connect", args![client, local(path), local_length(path)]);
    let server = s.call("accept", args![listener, 0, 0]);
    s.call("getpeername", args![client, room(128), numbers(&[128])]);
    speak(s, client, server);
}

fn on_loopback(s: &mut Script, any: SocketAddr, (family, kind, protocol): (i32, i32, i32)) {
    let listener = s.call("socket", args![family, kind, protocol]);
    s.call("setsockopt", args![listener, SOL_SOCKET, SO_REUSEADDR, numbers(&[1]), 4]);
    s.call("setsockopt", args![listener, IPPROTO_TCP, libc::TCP_NODELAY, numbers(&[1]), 4]);
    let (address, length) = internet(any);
    s.call("bind", args![listener, address, length]);
    s.call("listen", args![listener, 4]);
    let bound = s.call("getsockname", args![listener, room(28), numbers(&[28])]);
    let client = s.call("socket", args![family, kind, protocol]);
    s.call("connect", args![client, bound.memory(1), length]);
    s.call("getsockopt", args![client, SOL_SOCKET, SO_ERROR, room(4), numbers(&[4])]);
    s.call("getsockopt", args![client, IPPROTO_TCP, libc::TCP_NODELAY, room(4), numbers(&[4])]);
    let server = s.call("accept4", args![listener, 0, 0, SOCK_CLOEXEC]);
    speak(s, client, server);
}

fn speak(s: &mut Script, client: Handle, server: Handle) {
    s.call("sendto", args![client, "text", 4, 0, 0, 0]);
    s.call("recvfrom", args![server, room(4), 4, 0, 0, 0]);
    s.call("sendmsg", args![server, message("text"), 0]);
    s.call("recvmsg", args![client, empty_message(), 0]);
}

fn datagrams(s: &mut Script, family: i32, protocol: i32) {
    let any = match family {
        AF_INET => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
        _ => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0),
    };
    let receiver = s.call("socket", args![family, SOCK_DGRAM, protocol]);
    let (address, length) = internet(any);
    s.call("bind", args![receiver, address, length]);
    let bound = s.call("getsockname", args![receiver, room(28), numbers(&[28])]);
    let sender = s.call("socket", args![family, SOCK_DGRAM, protocol]);
    s.call("sendto", args![sender, "text", 4, 0, bound.memory(1), length]);
    s.call("recvfrom", args![receiver, room(4), 4, 0, 0, 0]);
    // Several messages at once, like resolvers. struct mmsghdr is a message and a length.
    s.call("connect", args![sender, bound.memory(1), length]);
    s.call("sendmmsg", args![sender, several(message("text")), 1, 0]);
    s.call("recvmmsg", args![receiver, several(empty_message()), 1, 0, 0]);
}

/// struct msghdr: no name, one piece, no further data
fn message(text: &str) -> Argument {
    words(vec![0.into(), 0.into(), words(args![text, text.len()]), 1.into(), 0.into(), 0.into(), 0.into()])
}

fn empty_message() -> Argument {
    words(vec![0.into(), 0.into(), words(args![room(16), 16]), 1.into(), 0.into(), 0.into(), 0.into()])
}

fn several(message: Argument) -> Argument {
    let Argument::Words(mut one) = message else { return message };
    one.push(0.into());
    words(one)
}

/// Lists the interfaces like `getifaddrs`.
fn interfaces(s: &mut Script) {
    let socket = s.call("socket", args![AF_NETLINK, SOCK_RAW, libc::NETLINK_ROUTE]);
    // struct nlmsghdr: length, RTM_GETLINK with REQUEST and DUMP; then any family
    let question = numbers(&[20, 18 | (0x301 << 16), 1, 0, 0]);
    s.call("sendto", args![socket, question, 20, 0, 0, 0]);
    s.call("recvfrom", args![socket, room(4096), 4096, 0, 0, 0]);
    let socket = s.call("socket", args![AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, libc::NETLINK_ROUTE]);
    s.call("close", args![socket]);
}

/// Makes every request about an interface that the policy lists.
fn an_interface(s: &mut Script) {
    const SIOCGPGRP: u64 = 0x8904;
    // struct ifreq: a name of sixteen bytes, and room for the answer.
    let named = || {
        let mut interface = b"lo".to_vec();
        interface.resize(40, 0);
        Argument::Bytes(interface)
    };
    let socket = s.call("socket", args![AF_INET, SOCK_DGRAM, 0]);
    for request in [
        libc::SIOCGIFFLAGS,
        libc::SIOCGIFMETRIC,
        libc::SIOCGIFMTU,
        libc::SIOCGIFHWADDR,
        libc::SIOCGIFINDEX,
        libc::SIOCGIFTXQLEN,
        libc::SIOCGIFMAP,
        libc::SIOCGIFADDR,
        libc::SIOCGIFDSTADDR,
        libc::SIOCGIFBRDADDR,
        libc::SIOCGIFNETMASK,
    ] {
        s.call("ioctl", args![socket, request, named()]);
    }
    // The first interface is loopback.
    s.call("ioctl", args![socket, libc::SIOCGIFNAME, numbers(&[0, 0, 0, 0, 1, 0, 0, 0, 0, 0])]);
    s.call("ioctl", args![socket, libc::SIOCGIFCONF, words(args![0, 0])]);
    s.call("ioctl", args![socket, SIOCGPGRP, room(4)]);
    // The request pointer is invalid, so every kernel returns EFAULT.
    s.call_or("ioctl", args![socket, libc::SIOCETHTOOL, named()], &[libc::EFAULT]);
}

/// struct cmsghdr: length, SOL_SOCKET, SCM_RIGHTS, one descriptor
fn pass_descriptor(s: &mut Script) {
    let pair = s.call("socketpair", args![AF_UNIX, SOCK_STREAM, 0, room(8)]);
    s.call("dup2", args![0, 100]);
    let rights = words(args![20, 1 | (1_u64 << 32), 100]);
    let message =
        words(vec![0.into(), 0.into(), words(args!["x", 1]), 1.into(), rights, 24.into(), 0.into()]);
    s.call("sendmsg", args![pair.stored(3, 0), message, 0]);
    s.call("recvmsg", args![pair.stored(3, 4), empty_message(), 0]);
}
