//! Kernel memory that the kernel charges to no control group, and that has no limit of its own: locks on files, the state of
//! directories that are being read, queues of netlink sockets, and what UDP sockets have not sent; and closed TCP connections,
//! of which the machine has one number for all programs. PID 1 looks at what there is of it in the sandbox.
//!
//! A look costs two short reads. Lists are read only where they can be long: those of sockets where there are many sockets,
//! and tables of descriptors where the kernel's own memory has grown. `/proc/locks` is never read: that delays locks
//! everywhere on the machine.

use super::descriptors::{Enough, Held, Places, processor_time};
use super::own::Own;
use crate::plan::{MOST_FOR_DIRECTORIES, MOST_LOCKS, MOST_ORPHANS, MOST_QUEUED_BYTES, MOST_UNLISTED_SOCKETS};
use crate::wall;
use std::fs;
use std::time::{Duration, Instant};

const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// A look that takes long is made more rarely.
const MOST_OF_THE_TIME: u32 = 10;
/// How much the memory of the kernel grows before descriptors are looked at, in KiB: some forty thousand locks.
const GROWTH_KIB: u64 = 8 << 10;
/// How much it grows before they are looked at at once, however long the last look took.
const FAST_GROWTH_KIB: u64 = 64 << 10;
/// However little that memory grows: what others give back meanwhile may hide what is taken.
const UNASKED: Duration = Duration::from_secs(30);
/// A look at descriptors that takes more processor time is not finished. It usually takes some microseconds for each.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// Looks now and then.
pub(super) struct Uncharged {
    next: Instant,
    /// What the kernel held when descriptors were last looked at, in KiB. Before the first program starts: it takes a hundred
    /// thousand locks before the first look.
    kernel_kib: Option<u64>,
    /// What it held when they were last seen to hold little.
    kernel_kib_before: Option<u64>,
    /// When they may be looked at again, and when they are, however little it has grown.
    next_look: Instant,
    next_unasked: Instant,
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
        let kernel_kib = kib_of("SUnreclaim:", &read("/proc/meminfo"));
        Self {
            next: now + BETWEEN_LOOKS,
            kernel_kib,
            kernel_kib_before: kernel_kib,
            next_look: now,
            next_unasked: now + UNASKED,
            few_sockets: None,
            had_many_unlisted: false,
        }
    }

    /// How long it may be before [`Self::is_too_much`] is asked again.
    pub(super) fn patience(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Whether there is more than may be. Looks only when it is time to.
    pub(super) fn is_too_much(&mut self, own: &Own) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        // In a namespace of the host's, what others hold would be counted.
        let is_too_much = wall!(NetworkNamespace: self.sockets_hold_too_much(), else false);
        self.next = now + BETWEEN_LOOKS.max(now.elapsed() * MOST_OF_THE_TIME);
        is_too_much || wall!(PidNamespace: self.descriptors_hold_too_much(own), else false)
    }

    fn sockets_hold_too_much(&mut self) -> bool {
        let text = read("/proc/net/sockstat");
        let Some(used) = used_sockets(&text) else { return false };
        // The second number is of the whole machine.
        if used > MOST_ORPHANS && orphans_of_machine(&text) > MOST_ORPHANS {
            let orphans = ["/proc/net/tcp", "/proc/net/tcp6"].map(|list| count_orphans(&read(list)));
            if orphans.into_iter().sum::<u64>() > MOST_ORPHANS {
                return true;
            }
        }
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

    fn descriptors_hold_too_much(&mut self, own: &Own) -> bool {
        let memory = read("/proc/meminfo");
        let Some(kernel_kib) = kib_of("SUnreclaim:", &memory) else { return false };
        let last = self.kernel_kib.unwrap_or(kernel_kib).min(kernel_kib);
        let before = self.kernel_kib_before.unwrap_or(kernel_kib).min(kernel_kib);
        (self.kernel_kib, self.kernel_kib_before) = (Some(last), Some(before));
        let now = Instant::now();
        let is_due = match kernel_kib - last {
            GROWTH_KIB..FAST_GROWTH_KIB => now >= self.next_look,
            FAST_GROWTH_KIB.. => true,
            _ => now >= self.next_unasked,
        };
        if !is_due {
            return false;
        }
        self.kernel_kib = Some(kernel_kib);
        let places = Places { overlays: own.overlays(), runner: own.filters.borrow().runner() };
        let held = Held::look(&places, &Enough { locks: MOST_LOCKS, until: processor_time() + LONGEST_LOOK });
        let growth =
            Growth { kib: kernel_kib - before, machine_kib: kib_of("MemTotal:", &memory).unwrap_or(0) };
        match judge(&held, growth) {
            Judgement::Little => self.kernel_kib_before = Some(kernel_kib),
            Judgement::Unclear => {}
            Judgement::TooMuch => return true,
        }
        false
    }
}

/// How much the kernel's own memory has grown since descriptors were seen to hold little.
#[derive(Debug, Clone, Copy)]
struct Growth {
    kib: u64,
    /// All memory that the machine has.
    machine_kib: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    /// No more than may be.
    Little,
    /// It may be more than may be.
    Unclear,
    TooMuch,
}

/// Estimates and what isn't seen count only if the kernel's memory has grown all the while: others may be the reason, but not
/// where a program doesn't hold so much open. What can't be seen counts when the machine is about to run out.
///
/// A descriptor takes long to look at where the list of locks on its file is long.
fn judge(held: &Held, growth: Growth) -> Judgement {
    const PART_OF_MACHINE: u64 = 8;
    let has_long_lists = held.is_unfinished && held.descriptors < MOST_LOCKS;
    if held.locks > MOST_LOCKS || has_long_lists {
        return Judgement::TooMuch;
    }
    let most_kib = match held {
        _ if held.directories > MOST_FOR_DIRECTORIES || held.is_unfinished => MOST_FOR_DIRECTORIES >> 10,
        _ if held.has_unseen => growth.machine_kib / PART_OF_MACHINE,
        _ => return Judgement::Little,
    };
    if growth.kib > most_kib { Judgement::TooMuch } else { Judgement::Unclear }
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

/// By `/proc/net/sockstat`: TCP connections that are closed by their programs and not over, of the whole machine.
fn orphans_of_machine(text: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix("TCP: ")?.split_once("orphan "));
    value.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok()).unwrap_or_default()
}

/// How many of those are in `/proc/net/tcp`: of states that only a close leads to, and without an inode.
fn count_orphans(text: &str) -> u64 {
    const FIN_WAIT_1: &str = "04";
    const FIN_WAIT_2: &str = "05";
    const LAST_ACK: &str = "09";
    const CLOSING: &str = "0B";
    let is_orphan = |line: &&str| {
        let mut fields = line.split_ascii_whitespace();
        let state = fields.nth(3);
        let inode = fields.nth(5);
        inode == Some("0")
            && state.is_some_and(|state| [FIN_WAIT_1, FIN_WAIT_2, LAST_ACK, CLOSING].contains(&state))
    };
    text.lines().skip(1).filter(is_orphan).count() as u64
}

/// A number of `/proc/meminfo`, of the whole machine. `SUnreclaim:` is memory of the kernel that it can't give back.
fn kib_of(name: &str, text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
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
    fn growth_of_the_kernels_memory_is_read() {
        let text = "MemTotal: 8000000 kB\nSUnreclaim:       120708 kB\n";
        assert_eq!(kib_of("SUnreclaim:", text), Some(120_708));
        assert_eq!(kib_of("MemTotal:", text), Some(8_000_000));
        assert_eq!(kib_of("SUnreclaim:", "MemFree: 1 kB\n"), None);
    }

    #[test]
    fn closed_connections_are_counted_and_others_are_not() {
        let sockstat = "sockets: used 9\nTCP: inuse 1 orphan 4711 tw 0 alloc 1 mem 220\n";
        assert_eq!((orphans_of_machine(sockstat), orphans_of_machine("")), (4711, 0));
        let line = |state: &str, inode: &str| {
            format!(
                "   0: 0100007F:0016 0100007F:A2F6 {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1\n"
            )
        };
        let list: String = [("04", "0"), ("05", "0"), ("05", "77"), ("06", "0"), ("01", "0")]
            .map(|(state, inode)| line(state, inode))
            .concat();
        assert_eq!(count_orphans(&format!("  sl  local_address\n{list}")), 2);
    }

    #[test]
    fn estimates_count_only_if_the_kernels_memory_grows() {
        let growth = |mebibytes: u64| Growth { kib: mebibytes << 10, machine_kib: 8 << 20 };
        let little = Held { locks: MOST_LOCKS, directories: 1 << 20, ..Held::default() };
        assert_eq!(judge(&little, growth(4096)), Judgement::Little);
        let locks = Held { locks: MOST_LOCKS + 1, ..Held::default() };
        assert_eq!(judge(&locks, growth(0)), Judgement::TooMuch);
        let large = Held { directories: MOST_FOR_DIRECTORIES + 1, ..Held::default() };
        assert_eq!(judge(&large, growth(256)), Judgement::Unclear);
        assert_eq!(judge(&large, growth(257)), Judgement::TooMuch);
        let many = Held { descriptors: MOST_LOCKS, is_unfinished: true, ..Held::default() };
        assert_eq!(judge(&many, growth(256)), Judgement::Unclear);
        assert_eq!(judge(&many, growth(257)), Judgement::TooMuch);
        let slow = Held { descriptors: MOST_LOCKS - 1, is_unfinished: true, ..Held::default() };
        assert_eq!(judge(&slow, growth(0)), Judgement::TooMuch);
        let unseen = Held { has_unseen: true, ..Held::default() };
        assert_eq!(judge(&unseen, growth(1024)), Judgement::Unclear);
        assert_eq!(judge(&unseen, growth(1025)), Judgement::TooMuch);
    }
}
