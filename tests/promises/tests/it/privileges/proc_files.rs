//! PK7: the kernel's files. Settings can't be written, and readable files reveal no addresses and no other processes.

use crate::case::{Case, ControlPlacement, HERE, InsideExpectation, OutsideExpectation, Script, args, room};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{EACCES, ENOENT, ENOTDIR, EPERM, EROFS, O_DIRECTORY, O_RDONLY, O_WRONLY};

/// Errnos for a file, whether it exists or not.
const CLOSED: &[i32] = &[EROFS, EACCES, EPERM, ENOENT, ENOTDIR];

/// Files that change the machine when they are written. They are opened, and nothing is written.
const SETTINGS: [&str; 29] = [
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hotplug",
    "/proc/sys/kernel/poweroff_cmd",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/kptr_restrict",
    "/proc/sys/kernel/dmesg_restrict",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/panic",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/fs/protected_symlinks",
    "/proc/sys/fs/suid_dumpable",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/user/max_user_namespaces",
    "/proc/irq/default_smp_affinity",
    "/proc/mtrr",
    "/sys/kernel/uevent_helper",
    "/sys/power/state",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/memory/cgroup.procs",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/pids/cgroup.procs",
    "/sys/fs/cgroup/devices/devices.allow",
];

/// Files that reveal kernel memory or processes of other users.
const SECRETS: [&str; 12] = [
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/kpagecgroup",
    "/proc/slabinfo",
    "/proc/timer_list",
    "/proc/pagetypeinfo",
    "/proc/vmallocinfo",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
    "/sys/kernel/security",
];

/// Files of the program's own process that affect the machine.
const OWN: [&str; 3] = ["/proc/self/oom_score_adj", "/proc/self/uid_map", "/proc/self/coredump_filter"];

pub(crate) fn cases(scene: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let open = |path: &str, what: String, flags: i32| {
        Case::denied("PK7", what, Script::one("openat", args![HERE, path, flags, 0])).fails(CLOSED)
    };
    let mut cases: Vec<Case> = Vec::new();
    let there = |path: &&str| std::fs::symlink_metadata(path).is_ok();
    for path in SETTINGS.into_iter().filter(there) {
        cases.push(
            open(path, format!("write {path}"), O_WRONLY).by(ControlPlacement::Root).needs("that file"),
        );
    }
    for path in SECRETS.into_iter().filter(there) {
        let case = open(path, format!("read {path}"), O_RDONLY).by(ControlPlacement::Root).needs("that file");
        cases.push(match scene.engine {
            Some(_) if path.starts_with("/proc/") => hidden(path),
            _ => case,
        });
    }
    for path in OWN {
        cases.push(open(path, format!("write {path}"), O_WRONLY));
    }
    cases.push(
        open("/sys/fs/cgroup", "the control groups".to_owned(), O_RDONLY | O_DIRECTORY)
            .needs("that directory"),
    );
    let victim = format!("/proc/{}", scene.victim());
    cases.push(open(&victim, "a process of the host's".to_owned(), O_RDONLY | O_DIRECTORY));
    cases.push(addresses());
    cases.push(own_page_map());
    cases
}

/// Returns a case for a file that an engine covers with an empty one.
fn hidden(path: &str) -> Case {
    let mut script = Script::one("openat", args![HERE, path, O_RDONLY, 0]);
    let file = script.first();
    script.call("read", args![file, room(64), 64]);
    Case::denied("PK7", format!("read {path}"), script)
        .inside(InsideExpectation::Learns(|answer| answer.ret <= 0 && answer.bytes.is_empty()))
        .outside(OutsideExpectation::Learns(|answer| answer.ret > 0))
        .by(ControlPlacement::Root)
        .needs("anything in that file")
}

/// Returns a case for `/proc/kallsyms`, which names every function of the kernel. Their addresses must stay hidden.
fn addresses() -> Case {
    let mut script = Script::one("openat", args![HERE, "/proc/kallsyms", O_RDONLY, 0]);
    let file = script.first();
    script.call("read", args![file, room(4096), 4096]);
    Case::denied("PK7", "addresses in /proc/kallsyms", script)
        .inside(InsideExpectation::Learns(|answer| has_addresses(&answer.bytes) == 0))
        .outside(OutsideExpectation::Learns(|answer| has_addresses(&answer.bytes) > 0))
        .by(ControlPlacement::Root)
        .needs("addresses that only root can read")
}

/// Returns the number of lines that begin with a nonzero address.
fn has_addresses(text: &str) -> usize {
    let nothing = "0".repeat(16);
    text.lines().filter(|line| line.len() > 16 && !line.starts_with(&nothing)).count()
}

/// Returns a case for `/proc/self/pagemap`, which shows physical addresses of the process's memory; without the right it
/// shows zeros.
fn own_page_map() -> Case {
    // The page of the probe's own first code.
    const PAGE: u64 = 0x40_0000 / 4096;
    let mut script = Script::one("openat", args![HERE, "/proc/self/pagemap", O_RDONLY, 0]);
    let file = script.first();
    script.call("pread64", args![file, room(64), 64, PAGE * 8]);
    Case::denied("PK7", "physical addresses in /proc/self/pagemap", script)
        .inside(InsideExpectation::Learns(|answer| !has_frame(&answer.bytes)))
        .outside(OutsideExpectation::Learns(|answer| has_frame(&answer.bytes)))
        .by(ControlPlacement::Root)
        .needs("physical addresses that only root can read")
}

/// Returns true if the lower 55 bits of a page map's entry aren't zero.
fn has_frame(bytes: &str) -> bool {
    let bytes: Vec<u8> = bytes.chars().map(|character| character as u8).collect();
    bytes.chunks(8).any(|entry| entry.iter().take(6).any(|byte| *byte != 0))
}
