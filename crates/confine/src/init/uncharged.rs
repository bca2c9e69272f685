//! Kernel memory that the kernel charges to no control group, and that has no limit of its own: POSIX locks on files,
//! queues of netlink sockets, and what UDP sockets have not sent. PID 1 looks at what there is of it in the sandbox.
//!
//! A look costs two short reads. The lists themselves are read only where they can be long: those of sockets where there are
//! many sockets, and that of locks where the kernel's own memory has grown, because reading it delays locks everywhere on
//! the machine.

use crate::plan::{MOST_LOCKS, MOST_QUEUED_BYTES, MOST_UNLISTED_SOCKETS};
use crate::wall;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// A look that takes long is made more rarely.
const MOST_OF_THE_TIME: u32 = 10;
/// How much the memory of the kernel grows before locks are counted, in KiB: some forty thousand locks.
const GROWTH_KIB: u64 = 8 << 10;
const BETWEEN_LOCK_COUNTS: Duration = Duration::from_secs(1);
/// However little that memory grows: what others give back meanwhile may hide what is taken.
const UNASKED: Duration = Duration::from_secs(30);

/// Looks now and then.
pub(super) struct Uncharged {
    next: Instant,
    /// What the kernel held when locks were last counted, and when they may be counted again.
    kernel_kib: Option<u64>,
    next_locks: Instant,
    /// How many sockets can't hold too much, however full they are.
    few_sockets: Option<u64>,
    /// Whether there were too many unlisted sockets at the last look. Only from one look to the next does it count: a
    /// program may be about to connect them.
    had_many_unlisted: bool,
}

/// Numbers of sockets in the sandbox's network namespace.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    all: u64,
    netlink: u64,
    udp: u64,
}

// === impl Uncharged ===

impl Uncharged {
    pub(super) fn watch() -> Self {
        let now = Instant::now();
        Self {
            next: now + BETWEEN_LOOKS,
            // Before the first program starts: it takes a hundred thousand locks before the first look.
            kernel_kib: unreclaimable_kib(&read("/proc/meminfo")),
            next_locks: now,
            few_sockets: None,
            had_many_unlisted: false,
        }
    }

    /// How long it may be before [`Self::is_too_much`] is asked again.
    pub(super) fn patience(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Whether there is more than may be. Looks only when it is time to.
    pub(super) fn is_too_much(&mut self) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        // In a namespace of the host's, what others hold would be counted.
        let is_too_much = wall!(NetworkNamespace: self.queues_hold_too_much(), else false)
            || wall!(PidNamespace: self.are_too_many_locks(now), else false);
        self.next = Instant::now() + BETWEEN_LOOKS.max(now.elapsed() * MOST_OF_THE_TIME);
        is_too_much
    }

    fn queues_hold_too_much(&mut self) -> bool {
        let Some(used) = used_sockets(&read("/proc/net/sockstat")) else { return false };
        if used <= *self.few_sockets.get_or_insert_with(few_sockets) {
            self.had_many_unlisted = false;
            return false;
        }
        let listed = Listed::of(&read("/proc/net/protocols"));
        let has_many_unlisted = used.saturating_sub(listed.all) > MOST_UNLISTED_SOCKETS;
        if has_many_unlisted && self.had_many_unlisted {
            return true;
        }
        self.had_many_unlisted = has_many_unlisted;
        let netlink = if listed.netlink > 0 { in_netlink_queues(&read("/proc/net/netlink")) } else { 0 };
        let udp = match listed.udp {
            0 => 0,
            _ => ["/proc/net/udp", "/proc/net/udp6"].map(|list| in_udp_queues(&read(list))).into_iter().sum(),
        };
        netlink + udp > MOST_QUEUED_BYTES
    }

    fn are_too_many_locks(&mut self, now: Instant) -> bool {
        let Some(kernel_kib) = unreclaimable_kib(&read("/proc/meminfo")) else { return false };
        let before = *self.kernel_kib.get_or_insert(kernel_kib);
        self.kernel_kib = Some(before.min(kernel_kib));
        let has_grown = kernel_kib >= before.saturating_add(GROWTH_KIB) && now >= self.next_locks;
        if !has_grown && now < self.next_locks + UNASKED {
            return false;
        }
        self.kernel_kib = Some(kernel_kib);
        self.next_locks = now + BETWEEN_LOCK_COUNTS;
        File::open("/proc/locks").is_ok_and(|list| count_locks(BufReader::new(list)) > MOST_LOCKS)
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// How many sockets can't hold too much together, if each has the sizes of buffers that the kernel gives it. The last message
/// in a queue may exceed them.
fn few_sockets() -> u64 {
    const USUAL: u64 = 212_992;
    let size = |path| read(path).trim().parse().unwrap_or(USUAL);
    let each: u64 =
        ["/proc/sys/net/core/rmem_default", "/proc/sys/net/core/wmem_default"].map(size).iter().sum();
    MOST_QUEUED_BYTES / each.saturating_mul(2).max(1)
}

/// By `/proc/net/sockstat`.
fn used_sockets(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("sockets: used ")?.trim().parse().ok())
}

/// By `/proc/meminfo`: memory of the kernel that it can't give back, of the whole machine.
fn unreclaimable_kib(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("SUnreclaim:"))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// What receive and send queues hold, by `/proc/net/netlink`.
fn in_netlink_queues(text: &str) -> u64 {
    const QUEUES: [usize; 2] = [4, 5];
    let held = |line: &str| -> u64 {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        QUEUES.iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum()
    };
    text.lines().skip(1).map(held).sum()
}

/// The same by `/proc/net/udp`: in hexadecimal, with a colon between.
fn in_udp_queues(text: &str) -> u64 {
    let held = |line: &str| -> Option<u64> {
        let (sent, received) = line.split_ascii_whitespace().nth(4)?.split_once(':')?;
        let size = |text| u64::from_str_radix(text, 16).ok();
        Some(size(sent)? + size(received)?)
    };
    text.lines().skip(1).filter_map(held).sum()
}

/// How many POSIX locks a list has, as far as matters. Those of open files (OFD), which are shown in every namespace, no
/// program of a sandbox has.
fn count_locks(list: impl BufRead) -> usize {
    let lines = list.split(b'\n').map_while(Result::ok);
    lines.filter(|line| line.windows(7).any(|word| word == b" POSIX ")).take(MOST_LOCKS + 1).count()
}

// === impl Listed ===

impl Listed {
    /// By `/proc/net/protocols`.
    fn of(text: &str) -> Self {
        let mut listed = Self { all: 0, netlink: 0, udp: 0 };
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
        assert_eq!(Listed::of(protocols), Listed { all: 22, netlink: 3, udp: 3 });
        assert_eq!(used_sockets(""), None);
        assert_eq!(Listed::of(""), Listed { all: 0, netlink: 0, udp: 0 });
    }

    #[test]
    fn queues_are_added_up() {
        let netlink = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n\
                       0000000083172105 0   0          00000000 4096     256      0     2        0        7927663\n\
                       00000000a86d2828 4   0          00000000 100      0        0     2        0        7927669\n";
        assert_eq!(in_netlink_queues(netlink), 4452);
        let udp = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
                   1: 0100007F:0035 00000000:0000 07 00000100:00001000 00:00000000 00000000\n";
        assert_eq!(in_udp_queues(udp), 0x1100);
    }

    #[test]
    fn posix_locks_are_counted_and_those_of_other_namespaces_are_not() {
        let list = "1: POSIX  ADVISORY  WRITE 7 00:2d:1234 0 EOF\n\
                    2: OFDLCK ADVISORY  WRITE -1 00:2d:1235 0 EOF\n\
                    3: FLOCK  ADVISORY  WRITE 7 00:2d:1236 0 EOF\n\
                    3: -> POSIX  ADVISORY  WRITE 8 00:2d:1234 0 EOF\n";
        assert_eq!(count_locks(list.as_bytes()), 2);
        assert_eq!(count_locks(list.repeat(20_000).as_bytes()), MOST_LOCKS + 1);
    }

    #[test]
    fn growth_of_the_kernels_memory_is_read() {
        assert_eq!(unreclaimable_kib("MemFree: 1 kB\nSUnreclaim:       120708 kB\n"), Some(120_708));
        assert_eq!(unreclaimable_kib("MemFree: 1 kB\n"), None);
    }
}
