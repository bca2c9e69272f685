//! Kernel memory of sockets that is charged to no control group: queues of netlink sockets, and data that UDP sockets have
//! not sent. Also closed TCP connections, of which the machine has one limit for all programs.
//!
//! The number of sockets is available from two short reads, however many there are. Lists of sockets take time with each
//! line, and with each socket of the machine: the kernel begins anew for each page of them. So the number of netlink
//! sockets is limited, and their list is never read. UDP sockets are limited in number, so that their list stays short. A
//! list is read line by line, with the other looks in between ([`ScanPace`]). A list that takes too long counts as too much.

use super::look_schedule::ScanPace;
use crate::plan::{
    MOST_NETLINK_SOCKETS, MOST_ORPHANS, MOST_QUEUED_BYTES, MOST_UDP_SOCKETS, MOST_UNLISTED_SOCKETS,
};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

/// Looks at the sockets of the sandbox's network namespace now and then.
pub(super) struct SocketWatch {
    next: Instant,
    /// Earliest time at which lists may be read again.
    next_lists: Instant,
    /// Maximum numbers of sockets. Read when they are first needed.
    most: Option<MaxSocketCounts>,
    /// True if there were too many unlisted sockets at the last look. It counts only if the next look finds the same: a
    /// program may be about to connect them.
    had_many_unlisted: bool,
}

/// Numbers of sockets, by the sizes of buffers that the kernel gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MaxSocketCounts {
    /// Number of sockets of any kind that can't hold too much, however full they are.
    harmless: u64,
    /// Maximum number of netlink sockets.
    netlink: u64,
}

/// Numbers of sockets in the sandbox's network namespace.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct SocketCounts {
    all: u64,
    netlink: u64,
    udp: u64,
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// Interval where there are many sockets: they can hold much within a moment.
const BETWEEN_LOOKS_AT_MANY: Duration = Duration::from_millis(50);
/// Pause after a list, as a multiple of its duration: reading lists takes no more than a third of PID 1's time.
const PAUSE_AFTER_LISTS: u32 = 2;
/// Reading a list that takes more processor time is not finished. It takes about a microsecond for each line.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

const TCP: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
const UDP: [&str; 2] = ["/proc/net/udp", "/proc/net/udp6"];

// === impl SocketWatch ===

impl SocketWatch {
    pub(super) fn watch() -> Self {
        let now = Instant::now();
        Self { next: now + BETWEEN_LOOKS, next_lists: now, most: None, had_many_unlisted: false }
    }

    /// Maximum time before [`Self::hold_too_much`] must be called again.
    pub(super) fn patience(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Returns true if the sockets hold more than allowed, or another look found too much meanwhile. Looks only when a look
    /// is due.
    pub(super) fn hold_too_much(&mut self, others: &mut dyn FnMut() -> bool) -> bool {
        Instant::now() >= self.next && self.look(others)
    }

    fn look(&mut self, others: &mut dyn FnMut() -> bool) -> bool {
        self.next = Instant::now() + BETWEEN_LOOKS;
        let text = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
        let Some(used) = used_sockets(&text) else { return false };
        let most = *self.most.get_or_insert_with(MaxSocketCounts::of_kernel);
        let mut listed = SocketCounts::default();
        if used > most.harmless {
            self.next = Instant::now() + BETWEEN_LOOKS_AT_MANY;
            listed = SocketCounts::of(&fs::read_to_string("/proc/net/protocols").unwrap_or_default());
        }
        let has_many_unlisted =
            used > most.harmless && used.saturating_sub(listed.all) > MOST_UNLISTED_SOCKETS;
        let had_many_unlisted = std::mem::replace(&mut self.had_many_unlisted, has_many_unlisted);
        if has_many_unlisted && had_many_unlisted
            || listed.netlink > most.netlink
            || listed.udp > MOST_UDP_SOCKETS
        {
            return true;
        }
        let begun = Instant::now();
        if begun < self.next_lists {
            return false;
        }
        let mut pace = ScanPace::begin(LONGEST_LOOK, others);
        // The second number is of the whole machine.
        let may_be_orphans = used > MOST_ORPHANS && orphans_of_machine(&text) > MOST_ORPHANS;
        let is_too_much = may_be_orphans && exceed(opened(TCP), orphans_in, MOST_ORPHANS, &mut pace)
            || listed.udp > most.harmless && exceed(opened(UDP), in_udp_queues, MOST_QUEUED_BYTES, &mut pace);
        self.next_lists = Instant::now() + begun.elapsed() * PAUSE_AFTER_LISTS;
        is_too_much
    }
}

/// Lists of the kernel's, as far as they are there: without IPv6 there is one less.
fn opened(lists: [&str; 2]) -> impl Iterator<Item = impl BufRead> {
    // The kernel doesn't give more than this at a time.
    const PAGE: usize = 4096;
    lists.into_iter().filter_map(|list| Some(BufReader::with_capacity(PAGE, File::open(list).ok()?)))
}

/// Returns true if the lines of lists add up to more than the limit, or the lists can't be read to their ends in time.
fn exceed(
    lists: impl Iterator<Item = impl BufRead>,
    of_line: fn(&str) -> u64,
    most: u64,
    pace: &mut ScanPace<'_>,
) -> bool {
    let mut sum = 0_u64;
    for line in lists.flat_map(|list| list.lines().map_while(Result::ok)) {
        sum = sum.saturating_add(of_line(&line));
        if sum > most || !pace.goes_on() {
            return true;
        }
    }
    false
}

/// Returns the number of used sockets from `/proc/net/sockstat`.
fn used_sockets(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("sockets: used ")?.trim().parse().ok())
}

/// Returns the number of TCP connections of the whole machine that are closed by their programs and not over, from
/// `/proc/net/sockstat`.
fn orphans_of_machine(text: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix("TCP: ")?.split_once("orphan "));
    value.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok()).unwrap_or_default()
}

/// 1 for one of those in a line of `/proc/net/tcp`: of states that only a close leads to, and without an inode.
fn orphans_in(line: &str) -> u64 {
    const FIN_WAIT_1: &str = "04";
    const FIN_WAIT_2: &str = "05";
    const LAST_ACK: &str = "09";
    const CLOSING: &str = "0B";
    let mut fields = line.split_ascii_whitespace();
    let state = fields.nth(3);
    let inode = fields.nth(5);
    let is_closed = state.is_some_and(|state| [FIN_WAIT_1, FIN_WAIT_2, LAST_ACK, CLOSING].contains(&state));
    u64::from(inode == Some("0") && is_closed)
}

/// Returns the bytes in receive and send queues, from a line of `/proc/net/udp`: in hexadecimal, with a colon between.
fn in_udp_queues(line: &str) -> u64 {
    let size = |text| u64::from_str_radix(text, 16).ok();
    let queues = line.split_ascii_whitespace().nth(4).and_then(|field| field.split_once(':'));
    queues.and_then(|(sent, received)| Some(size(sent)? + size(received)?)).unwrap_or_default()
}

// === impl MaxSocketCounts ===

impl MaxSocketCounts {
    fn of_kernel() -> Self {
        const USUAL: u64 = 212_992;
        let size = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap_or_default();
            text.trim().parse().unwrap_or(USUAL)
        };
        Self::with_buffers(size("rmem_default"), size("wmem_default"))
    }

    /// Computes the limits from the sizes of buffers. The last message in a queue may exceed the buffer: it is as large as
    /// the buffer, and a message of the kernel to a netlink socket takes 32 KiB with what belongs to it.
    fn with_buffers(received: u64, sent: u64) -> Self {
        const LAST_MESSAGE: u64 = 40 << 10;
        const FEWEST_NETLINK: u64 = 64;
        let netlink = MOST_QUEUED_BYTES / received.saturating_add(LAST_MESSAGE);
        Self {
            harmless: MOST_QUEUED_BYTES / received.saturating_add(sent).saturating_mul(2).max(1),
            netlink: netlink.clamp(FEWEST_NETLINK, MOST_NETLINK_SOCKETS),
        }
    }
}

// === impl SocketCounts ===

impl SocketCounts {
    /// Parses `/proc/net/protocols`.
    fn of(text: &str) -> Self {
        let mut listed = Self::default();
        for line in text.lines().skip(1) {
            let mut fields = line.split_ascii_whitespace();
            let (Some(name), Some(sockets)) = (fields.next(), fields.nth(1)) else { continue };
            let sockets = sockets.parse().unwrap_or(0);
            listed.all += sockets;
            match name {
                "NETLINK" => listed.netlink += sockets,
                "UDP" | "UDPv6" => listed.udp += sockets,
                _ => {}
            }
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_counted_as_the_kernel_lists_them() {
        let sockstat = "sockets: used 1234\nTCP: inuse 1 orphan 0 tw 0 alloc 1 mem 220\n";
        assert_eq!(used_sockets(sockstat), Some(1234));
        let protocols = "protocol  size sockets  memory press maxhdr\n\
                         UDPv6     1472      2     254   NI       0   yes\n\
                         UNIX      1152     16      -1   NI       0   yes\n\
                         UDP       1344      1     254   NI       0   yes\n\
                         NETLINK   1096      3      -1   NI       0   no\n";
        assert_eq!(SocketCounts::of(protocols), SocketCounts { all: 22, netlink: 3, udp: 3 });
        assert_eq!(used_sockets(""), None);
        assert_eq!(SocketCounts::of(""), SocketCounts::default());
    }

    #[test]
    fn udp_socket_queues_are_parsed() {
        let line = "   1: 0100007F:0035 00000000:0000 07 00000100:00001000 00:00000000 00000000";
        assert_eq!(in_udp_queues(line), 0x1100);
        assert_eq!(in_udp_queues("   sl  local_address rem_address   st tx_queue rx_queue tr"), 0);
    }

    #[test]
    fn closed_connections_are_counted_and_others_are_not() {
        let sockstat = "sockets: used 9\nTCP: inuse 1 orphan 4711 tw 0 alloc 1 mem 220\n";
        assert_eq!((orphans_of_machine(sockstat), orphans_of_machine("")), (4711, 0));
        let of = |(state, inode): (&str, &str)| {
            orphans_in(&format!(
                "   0: 0100007F:0016 0100007F:A2F6 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1"
            ))
        };
        let all = [("04", "0"), ("05", "0"), ("05", "77"), ("06", "0"), ("01", "0")];
        assert_eq!(all.map(of), [1, 1, 0, 0, 0]);
    }

    #[test]
    fn full_netlink_sockets_stay_within_the_queue_limit() {
        let usual = MaxSocketCounts::with_buffers(212_992, 212_992);
        assert_eq!(usual, MaxSocketCounts { harmless: 315, netlink: MOST_NETLINK_SOCKETS });
        let large = MaxSocketCounts::with_buffers(4 << 20, 4 << 20);
        assert_eq!(large, MaxSocketCounts { harmless: 16, netlink: 64 });
        assert!(large.netlink * (4 << 20) <= MOST_QUEUED_BYTES);
    }

    #[test]
    fn unfinished_socket_list_counts_as_exceeded() {
        let list = "3\n4\n".repeat(3000);
        let number = |line: &str| line.parse().unwrap_or_default();
        let judge = |most, longest, other: bool| {
            let mut others = || other;
            exceed([list.as_bytes()].into_iter(), number, most, &mut ScanPace::begin(longest, &mut others))
        };
        assert!(!judge(21_000, Duration::MAX / 2, false));
        assert!(judge(20_999, Duration::MAX / 2, false));
        assert!(judge(21_000, Duration::ZERO, false), "it takes too long");
        assert!(judge(21_000, Duration::MAX / 2, true), "another look found too much");
    }
}
