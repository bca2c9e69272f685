//! RS8: tables and memory that the kernel shares among all programs. A sandbox that takes all it can get leaves enough for
//! another sandbox and for the host, and can't observe their use.

use crate::belljar::belljar;
use crate::case::{BAD, Case, HERE, OutsideExpectation, Script, args, numbers, room, words};
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use crate::way::{AttemptPlace, PROBE};
use belljar_confine::plan::MOST_POLLED;
use belljar_promises::attempt::Argument;
use belljar_testkit::world::World;
use libc::{
    AF_INET, E2BIG, EACCES, EBADF, EFAULT, EINVAL, ENOENT, ENOPROTOOPT, ENOSYS, O_CREAT, O_RDONLY, O_RDWR,
    SOCK_DGRAM, SOL_SOCKET,
};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A resource with one limit for the whole machine, or for one of its users.
struct LimitedTable {
    name: &'static str,
    /// Maximum number that one sandbox gets.
    inside: u64,
    /// Number that another sandbox and the host still get meanwhile.
    beside: u64,
    /// Number that the control takes without a limit: more than a sandbox gets, and a small part of the total.
    control: u64,
    /// Options of the greedy sandbox and of the other.
    options: &'static [&'static str],
    /// True if the limit requires a control group.
    needs_group: bool,
}

const TABLES: [LimitedTable; 11] = [
    LimitedTable { control: 8, beside: 0, ..LimitedTable::new("contexts", 0) },
    LimitedTable::new("terminals", 64),
    LimitedTable::new("filters", 64),
    LimitedTable::new("filters-without-a-name", 64),
    LimitedTable { beside: 0, ..LimitedTable::new("filters-on-the-run", 64) },
    LimitedTable::new("instances", 32),
    LimitedTable { control: 4_200, ..LimitedTable::new("timers", 4_096) },
    // Landlock allows no queue to be opened, see `known_holes`; the verdict depends on whether others still get theirs.
    LimitedTable { beside: 0, control: 4, ..LimitedTable::new("queues", 3) },
    // Threads that wait for 4000 descriptors each.
    LimitedTable::new("polled", MOST_POLLED / 4_000),
    // The root and its entries count as well.
    LimitedTable { options: &["--scratch", "8m"], control: 2_100, ..LimitedTable::new("inodes", 2_048) },
    // In mebibytes. Control groups of version 1 give sockets less memory.
    LimitedTable {
        options: &["--memory", "128m"],
        control: 136,
        needs_group: true,
        ..LimitedTable::new("udp", 128)
    },
];

#[test]
fn greedy_sandbox_leaves_kernel_tables_for_others_and_the_host() {
    let tally = Tally::new("tables");
    World::as_everyone(belljar(), |world| {
        let scene = PreparedHost::lay(world);
        let has_group = super::memory::has_control_group(&scene);
        for table in &TABLES {
            let verdict = match table.needs_group && !has_group {
                true => Verdict::NotShown("control groups".to_owned()),
                false => judge(&scene, table),
            };
            tally.count("RS8", &format!("RS8 {}", table.name), &format!("{:?}", world.user()), verdict);
        }
    });
    tally.close();
}

fn judge(scene: &PreparedHost<'_>, table: &LimitedTable) -> Verdict {
    let control = table.outside(scene, table.control);
    if control.took != table.control {
        return Verdict::Invalid(format!("{} of {} where nothing forbids it", control.took, table.control));
    }
    drop(control);
    // Twice the control, but not the total: if a limit is missing, other programs must notice little of it.
    let greedy = table.inside(scene, 2 * table.control);
    if greedy.took > table.inside {
        return Verdict::Escaped(format!("it took {} of {}", greedy.took, table.inside));
    }
    if table.beside > 0 && greedy.took < table.beside {
        return Verdict::Blocked(format!("it got no more than {}", greedy.took));
    }
    let other = table.inside(scene, table.beside);
    let host = table.outside(scene, table.beside.max(1));
    match (other.took == table.beside, host.took == table.beside.max(1)) {
        (true, true) => Verdict::Held,
        (is_other, is_host) => Verdict::Escaped(format!(
            "beside one that took {} there is enough for another: {is_other}, for the host: {is_host}",
            greedy.took
        )),
    }
}

/// A probe that holds what it took, and gives it back when this is dropped.
struct ResourceHolder {
    child: Child,
    took: u64,
}

// === impl LimitedTable ===

impl LimitedTable {
    const fn new(name: &'static str, inside: u64) -> Self {
        Self { name, inside, beside: 2, control: inside + 1, options: &[], needs_group: false }
    }

    fn inside(&self, scene: &PreparedHost<'_>, most: u64) -> ResourceHolder {
        let lent = format!("{}:/lent", scene.path("lent"));
        let options = [&["--ro", &lent], self.options].concat();
        ResourceHolder::start(scene.making(
            &["exec"],
            &options,
            &[PROBE, "take", self.name, &most.to_string(), "/tmp"],
        ))
    }

    fn outside(&self, scene: &PreparedHost<'_>, most: u64) -> ResourceHolder {
        let probe = scene.path("lent/belljar-probe");
        let folder = scene.path("outside/tmp");
        let taker =
            scene.world.command_of(Path::new(&probe), &["take", self.name, &most.to_string(), &folder]);
        ResourceHolder::start(taker)
    }
}

// === impl ResourceHolder ===

impl ResourceHolder {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let took = line.trim().strip_prefix("took ").and_then(|took| took.parse().ok());
        // A probe that the OOM killer ended prints nothing.
        Self { child, took: took.unwrap_or_default() }
    }
}

impl Drop for ResourceHolder {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases = asynchronous();
    cases.extend(notifications(scene, place));
    cases.extend(socket_filters());
    cases.extend(semaphores());
    cases.extend(cookies());
    cases
}

/// Returns calls with many semaphore operations: the kernel makes those of all waiting processes under one lock.
fn semaphores() -> Vec<Case> {
    // struct sembuf: the first semaphore, plus one; two operations in three numbers
    let operations = || numbers(&[1 << 16, 0, 1].repeat(17));
    vec![
        Case::sentinel("RS8", "semop", args![BAD, operations(), 33], &[EINVAL]).fails(&[E2BIG]),
        Case::sentinel("RS8", "semtimedop", args![BAD, operations(), 33, 0], &[EINVAL]).fails(&[E2BIG]),
        Case::sentinel("RS8", "semget", args![0x0b1e_55ed, 256, 0], &[ENOENT]).fails(&[EINVAL]),
    ]
}

/// Returns cases for numbers that the kernel counts for all sockets and network namespaces of the machine.
fn cookies() -> Vec<Case> {
    const SO_NETNS_COOKIE: i32 = 71;
    let read = |what: &str, option: i32| {
        let mut script = Script::one("socket", args![AF_INET, SOCK_DGRAM, 0]);
        let socket = script.first();
        script.prepared();
        script.call("getsockopt", args![socket, SOL_SOCKET, option, room(8), numbers(&[8])]);
        Case::denied("RS8", what, script).fails(&[ENOPROTOOPT])
    };
    vec![
        read("the number of a socket", libc::SO_COOKIE),
        read("the number of a network namespace", SO_NETNS_COOKIE),
    ]
}

/// Returns calls with contexts for asynchronous reads and writes.
fn asynchronous() -> Vec<Case> {
    let calls: [(&str, Vec<Argument>, &'static [i32]); 6] = [
        ("io_setup", args![1, room(8)], &[]),
        ("io_destroy", args![BAD], &[EINVAL]),
        ("io_submit", args![BAD, 1, words(args![0])], &[EINVAL]),
        ("io_cancel", args![BAD, room(64), room(32)], &[EINVAL]),
        ("io_getevents", args![BAD, 0, 1, room(32), 0], &[EINVAL]),
        ("io_pgetevents", args![BAD, 0, 1, room(32), 0, 0], &[EINVAL]),
    ];
    let cases = calls
        .into_iter()
        .map(|(name, arguments, reaches)| Case::sentinel("RS8", name, arguments, reaches).fails(&[ENOSYS]));
    cases.collect()
}

/// Returns calls that report file accesses of other processes, or that make them wait.
fn notifications(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    const F_NOTIFY: i32 = 1026;
    const DN_ACCESS: i32 = 1;
    let watch = |what: &str, path: &str, mask: u32| {
        let mut script = Script::one("inotify_init1", args![0]);
        let instance = script.first();
        script.prepared();
        script.call("inotify_add_watch", args![instance, path, mask]);
        Case::denied("RS8", format!("a watch on {what}"), script).fails(&[EACCES])
    };
    let control = |what: &str, command: i32, argument: i32| {
        let path = place.path(&format!("/tmp/{}-held", scene.mark));
        let mut script = Script::one("openat", args![HERE, &path, O_CREAT | O_RDWR, 0o600]);
        let made = script.first();
        script.call("close", args![made]);
        let file = script.call("openat", args![HERE, path, O_RDONLY, 0]);
        script.prepared();
        script.call("fcntl", args![file, command, argument]);
        Case::denied("RS8", what, script).fails(&[EINVAL])
    };
    let mut folder = Script::one("openat", args![HERE, place.path("/tmp"), O_RDONLY | libc::O_DIRECTORY, 0]);
    let opened = folder.first();
    folder.prepared();
    folder.call("fcntl", args![opened, F_NOTIFY, DN_ACCESS]);
    let mut linked = Script::default();
    let link = place.path(&format!("/tmp/{}-to-usr", scene.mark));
    linked.call("symlink", args!["/usr/bin", &link]);
    let instance = linked.call("inotify_init1", args![0]);
    linked.prepared();
    linked.call("inotify_add_watch", args![instance, &link, libc::IN_OPEN]);
    vec![
        watch("the host's programs", "/usr/bin", libc::IN_OPEN),
        watch("one of the host's programs", "/bin/sh", libc::IN_OPEN | libc::IN_ACCESS),
        watch("a device of the host's", "/dev/null", libc::IN_OPEN),
        watch("the host's programs, by a path of the caller's own", "/proc/self/root/usr/bin", libc::IN_OPEN),
        watch("a link to the host's programs", "/usr/bin", libc::IN_OPEN | libc::IN_ONLYDIR),
        Case::denied("RS8", "a watch on the host's programs, by a link", linked).fails(&[EACCES]),
        control("a lease, for which the host's open waits", libc::F_SETLEASE, libc::F_RDLCK),
        control("a lock of an open file, which every sandbox would count", libc::F_OFD_SETLK, 0)
            .outside(OutsideExpectation::Reaches(&[EFAULT])),
        Case::denied("RS8", "notification of what others do in a directory", folder)
            .fails(&[EINVAL])
            .needs("directory notification"),
    ]
}

/// Returns cases with socket filters, which the kernel compiles like seccomp filters.
fn socket_filters() -> Vec<Case> {
    // struct sock_filter: return the whole packet
    let whole = || {
        let program = Argument::Bytes(vec![6, 0, 0, 0, 0xff, 0xff, 0, 0]);
        words(vec![1.into(), program])
    };
    let one = |what: &str, option: i32, value: Argument, reaches: &'static [i32]| {
        let mut script = Script::one("socket", args![AF_INET, SOCK_DGRAM, 0]);
        let socket = script.first();
        script.prepared();
        script.call("setsockopt", args![socket, SOL_SOCKET, option, value, 16]);
        Case::denied("RS8", what, script).fails(&[ENOPROTOOPT]).outside(OutsideExpectation::Reaches(reaches))
    };
    vec![
        one("a filter on a socket", libc::SO_ATTACH_FILTER, whole(), &[]),
        one("a filter that spreads datagrams", libc::SO_ATTACH_REUSEPORT_CBPF, whole(), &[EINVAL]),
        one(
            "a loaded filter on a socket",
            libc::SO_ATTACH_BPF,
            numbers(&[u32::MAX]),
            &[EINVAL, EBADF, EFAULT],
        ),
        one(
            "a loaded filter that spreads datagrams",
            libc::SO_ATTACH_REUSEPORT_EBPF,
            numbers(&[u32::MAX]),
            &[EINVAL, EBADF, EFAULT],
        ),
    ]
}
