//! NT5: sockets of families that ignore network namespaces, or that mainly add attack surface.

use crate::case::{Case, ControlPlacement, InsideExpectation, OutsideExpectation, Script, args, numbers};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::{Argument, AttemptResult, KernelEntry, SpecialAct};
use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, EAFNOSUPPORT, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_STREAM,
};

/// Families that sandboxes may use.
const ALLOWED: [i32; 4] = [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK];

/// Every family number that Linux assigns.
const FAMILIES: std::ops::RangeInclusive<i32> = 1..=45;

/// Families with names by which this kernel lists them without loading their modules.
const KNOWN_BY_NAME: [(&str, i32); 6] =
    [("PACKET", 17), ("AF_VSOCK", 40), ("XDP", 44), ("KEY", 15), ("ALG", 38), ("TIPC", 30)];

/// Netlink protocols other than route netlink.
const NETLINK: [(&str, i32); 16] = [
    ("usersock", 2),
    ("sock_diag", 4),
    ("nflog", 5),
    ("xfrm", 6),
    ("selinux", 7),
    ("iscsi", 8),
    ("audit", 9),
    ("fib_lookup", 10),
    ("connector", 11),
    ("netfilter", 12),
    ("dnrtmsg", 14),
    ("kobject_uevent", 15),
    ("generic", 16),
    ("scsi", 18),
    ("ecryptfs", 19),
    ("crypto", 21),
];

/// IP protocols other than TCP and UDP.
const PROTOCOLS: [(&str, i32, i32); 9] = [
    ("ping", SOCK_DGRAM, libc::IPPROTO_ICMP),
    ("raw ICMP", SOCK_RAW, libc::IPPROTO_ICMP),
    ("raw TCP", SOCK_RAW, libc::IPPROTO_TCP),
    ("raw anything", SOCK_RAW, libc::IPPROTO_RAW),
    ("MPTCP", SOCK_STREAM, 262),
    ("UDP-Lite", SOCK_DGRAM, libc::IPPROTO_UDPLITE),
    ("SCTP", SOCK_STREAM, libc::IPPROTO_SCTP),
    ("SCTP messages", SOCK_SEQPACKET, libc::IPPROTO_SCTP),
    ("DCCP", 6, libc::IPPROTO_DCCP),
];

pub(crate) fn cases(scene: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let mut cases = Vec::new();
    for family in FAMILIES.filter(|family| !ALLOWED.contains(family)) {
        let known = KNOWN_BY_NAME.iter().find(|(name, number)| *number == family && is_known(name));
        let case = socket(&format!("family {family}"), family, SOCK_RAW, 0);
        cases.push(match known {
            // The case tries one socket type of the family, which is enough to show that the family exists.
            Some(_) => case.outside(OutsideExpectation::Reaches(NO_SUCH_KIND)).by(ControlPlacement::Root),
            None => not_asked_for(case),
        });
    }
    let vsock = socket("a stream to the machine's host", libc::AF_VSOCK, SOCK_STREAM, 0);
    cases.push(if is_known("AF_VSOCK") { vsock } else { not_asked_for(vsock) });
    for (name, protocol) in NETLINK {
        let case = socket(&format!("netlink {name}"), AF_NETLINK, SOCK_RAW, protocol);
        let case = case.fails(&[EAFNOSUPPORT, libc::EPROTONOSUPPORT]);
        cases.push(case.needs("that part of netlink"));
    }
    for family in [AF_INET, AF_INET6] {
        for (name, kind, protocol) in PROTOCOLS {
            let case = socket(&format!("{name} of family {family}"), family, kind, protocol);
            cases.push(match name {
                // Asking for them could make the kernel load their modules.
                "SCTP" | "SCTP messages" | "DCCP" => not_asked_for(case),
                "UDP-Lite" => case.needs("UDP-Lite"),
                "MPTCP" => case.needs("MPTCP"),
                "ping" => case.outside(OutsideExpectation::Reaches(&[libc::EACCES])).needs("that protocol"),
                _ => case.by(ControlPlacement::Root).needs("that protocol"),
            });
        }
    }
    let pair = Case::call(
        "NT5",
        "a pair of another family",
        "socketpair",
        args![AF_INET, SOCK_STREAM, 0, Argument::Room(8)],
    );
    cases.push(pair.fails(&[EAFNOSUPPORT]).outside(OutsideExpectation::Reaches(&[libc::EOPNOTSUPP])));
    cases.push(write_routes());
    cases.push(by_the_old_entry(scene));
    cases
}

const NO_SUCH_KIND: &[i32] = &[libc::ESOCKTNOSUPPORT, libc::EPROTONOSUPPORT, libc::EPERM];

fn socket(what: &str, family: i32, kind: i32, protocol: i32) -> Case {
    Case::call("NT5", what, "socket", args![family, kind, protocol]).fails(&[EAFNOSUPPORT])
}

/// Removes the control: it could make the kernel load a module, which a test must not do.
fn not_asked_for(mut case: Case) -> Case {
    case.control = ControlPlacement::None;
    case.needs("that family, as far as it tells, and asking for it might have it loaded")
}

fn is_known(name: &str) -> bool {
    std::fs::read_to_string("/proc/net/protocols")
        .is_ok_and(|known| known.lines().any(|line| line.split_whitespace().next() == Some(name)))
}

/// Returns a case that writes to route netlink. It may be read; bringing an interface down requires a capability.
fn write_routes() -> Case {
    let mut script = Script::one("socket", args![AF_NETLINK, SOCK_RAW, libc::NETLINK_ROUTE]);
    let socket = script.first();
    // nlmsghdr (length, type RTM_NEWLINK, flags REQUEST|ACK, sequence, pid), ifinfomsg (family, index 1, no flags)
    let message = numbers(&[32, 16 | (5 << 16), 1, 0, 0, 1, 0, 1]);
    script.call("sendto", args![socket, message, 32, 0, 0, 0]);
    // nlmsgerr: the errno follows the header.
    script.call("recvfrom", args![socket, Argument::Room(64), 64, 0, 0, 0]);
    Case::denied("NT5", "bring loopback down", script)
        .inside(InsideExpectation::Learns(|answer| error_of(answer) == -libc::EPERM))
        .outside(OutsideExpectation::Learns(|answer| error_of(answer) == 0 && answer.succeeded()))
        .by(ControlPlacement::Free)
}

fn error_of(answer: &AttemptResult) -> i32 {
    let bytes: Vec<u8> = answer.bytes.chars().map(|character| character as u8).collect();
    let mut four = [0; 4];
    for (to, from) in four.iter_mut().zip(bytes.iter().skip(16)) {
        *to = *from;
    }
    i32::from_ne_bytes(four)
}

/// Returns a case with `socketcall`, which hides its arguments from every seccomp filter. It exists only at the entry point
/// for 32-bit programs.
fn by_the_old_entry(scene: &PreparedHost<'_>) -> Case {
    let call = SpecialAct::Foreign { entry: KernelEntry::I386, number: 102, arguments: [1, 1, 0] };
    Case::denied("NT5", "socketcall by int 0x80", Script::of(call))
        .inside(InsideExpectation::of_foreign_call(scene))
        .outside(OutsideExpectation::Reaches(&[libc::EFAULT]))
        .needs("the entry for 32-bit programs")
}
