//! Processes and threads of the sandbox. Namespaces, once left to a process, can't be made or entered again.

use super::{Condition, Rule, allow, allow_if, is, is_not, masked, refuse};

pub(super) const RULES: &[Rule] = &[
    allow_if(
        "clone",
        libc::SYS_clone,
        &[&[masked(0, NEW_NAMESPACES, 0)]],
        libc::EPERM,
        "threads and processes, in the namespaces that are there",
    ),
    refuse(
        "clone3",
        libc::SYS_clone3,
        libc::ENOSYS,
        "its flags are behind a pointer, which a filter can't follow; C libraries fall back to clone",
    ),
    allow("fork", libc::SYS_fork, "makes a process; older programs"),
    allow("vfork", libc::SYS_vfork, "makes a process that will exec"),
    allow("execve", libc::SYS_execve, "runs a program"),
    allow("execveat", libc::SYS_execveat, "runs a program by descriptor"),
    allow("exit", libc::SYS_exit, "ends a thread"),
    allow("exit_group", libc::SYS_exit_group, "ends a process"),
    allow("wait4", libc::SYS_wait4, "waits for a child"),
    allow("waitid", libc::SYS_waitid, "waits for a child, in detail"),
    allow("getpid", libc::SYS_getpid, "the caller's own id"),
    allow("getppid", libc::SYS_getppid, "the parent's id"),
    allow("gettid", libc::SYS_gettid, "the thread's id"),
    allow("getpgid", libc::SYS_getpgid, "a process group"),
    allow("setpgid", libc::SYS_setpgid, "joins or makes a process group; shells do"),
    allow("getpgrp", libc::SYS_getpgrp, "the caller's own process group"),
    allow("getsid", libc::SYS_getsid, "a session"),
    allow("setsid", libc::SYS_setsid, "makes a session; daemons and terminals do"),
    allow("getuid", libc::SYS_getuid, "the user"),
    allow("geteuid", libc::SYS_geteuid, "the effective user"),
    allow("getgid", libc::SYS_getgid, "the group"),
    allow("getegid", libc::SYS_getegid, "the effective group"),
    allow("getresuid", libc::SYS_getresuid, "all three users"),
    allow("getresgid", libc::SYS_getresgid, "all three groups"),
    allow("getgroups", libc::SYS_getgroups, "the further groups"),
    allow("setuid", libc::SYS_setuid, "to the own user, as su-like tools try; no other user exists here"),
    allow("setgid", libc::SYS_setgid, "the same for groups"),
    allow("setreuid", libc::SYS_setreuid, "to the own user"),
    allow("setregid", libc::SYS_setregid, "to the own group"),
    allow("setresuid", libc::SYS_setresuid, "to the own user"),
    allow("setresgid", libc::SYS_setresgid, "to the own group"),
    allow(
        "setgroups",
        libc::SYS_setgroups,
        "fails in the kernel; tar and sudo-like tools expect that answer",
    ),
    allow("setfsuid", libc::SYS_setfsuid, "to the own user"),
    allow("setfsgid", libc::SYS_setfsgid, "to the own group"),
    allow("capget", libc::SYS_capget, "looks at capabilities: there are none"),
    allow("capset", libc::SYS_capset, "drops them; there are none to gain"),
    allow_if(
        "prctl",
        libc::SYS_prctl,
        &[&[is_not(0, PR_SET_MEMORY_MERGE)]],
        libc::EINVAL,
        "names threads and the like; what matters needs capabilities; no pages merged with those of other programs",
    ),
    allow("arch_prctl", libc::SYS_arch_prctl, "thread-local storage"),
    allow("set_tid_address", libc::SYS_set_tid_address, "start of a thread"),
    allow("set_robust_list", libc::SYS_set_robust_list, "locks that survive a thread's death"),
    allow("get_robust_list", libc::SYS_get_robust_list, "reads that list"),
    allow("rseq", libc::SYS_rseq, "restartable sequences; C libraries register at start"),
    allow("futex", libc::SYS_futex, "locks"),
    allow("futex_waitv", libc::SYS_futex_waitv, "waits for several locks"),
    allow("futex_wake", FUTEX_WAKE, "the newer form of a lock's wake"),
    allow("futex_wait", FUTEX_WAIT, "the newer form of a lock's wait"),
    allow("futex_requeue", FUTEX_REQUEUE, "the newer form of a lock's hand-over"),
    allow("sched_yield", libc::SYS_sched_yield, "lets other threads run"),
    allow("sched_getaffinity", libc::SYS_sched_getaffinity, "counts processors"),
    allow_if(
        "sched_setaffinity",
        libc::SYS_sched_setaffinity,
        NOT_PID_1,
        libc::EPERM,
        "pins threads, within what is allowed; not PID 1",
    ),
    allow("sched_getparam", libc::SYS_sched_getparam, "reads a priority"),
    allow_if(
        "sched_setparam",
        libc::SYS_sched_setparam,
        NOT_PID_1,
        libc::EPERM,
        "sets it; raising needs a privilege that no process has; not PID 1",
    ),
    allow("sched_getscheduler", libc::SYS_sched_getscheduler, "reads the scheduling class"),
    allow_if(
        "sched_setscheduler",
        libc::SYS_sched_setscheduler,
        NOT_PID_1,
        libc::EPERM,
        "sets it; real time needs a privilege that no process has; not PID 1",
    ),
    allow("sched_getattr", libc::SYS_sched_getattr, "reads both"),
    allow_if("sched_setattr", libc::SYS_sched_setattr, NOT_PID_1, libc::EPERM, "sets both, likewise"),
    allow("sched_get_priority_max", libc::SYS_sched_get_priority_max, "a constant"),
    allow("sched_get_priority_min", libc::SYS_sched_get_priority_min, "a constant"),
    allow("sched_rr_get_interval", libc::SYS_sched_rr_get_interval, "reads the time slice"),
    allow("getpriority", libc::SYS_getpriority, "reads niceness"),
    allow_if(
        "setpriority",
        libc::SYS_setpriority,
        &[&[is(0, PRIO_PROCESS), is_not(1, 1)], &[is(0, PRIO_PGRP), is_not(1, 1)]],
        libc::EPERM,
        "lowers the priority of the caller or its group; not of PID 1 or all processes",
    ),
    allow("getrlimit", libc::SYS_getrlimit, "reads limits"),
    allow("setrlimit", libc::SYS_setrlimit, "lowers limits"),
    allow_if(
        "prlimit64",
        libc::SYS_prlimit64,
        NOT_PID_1,
        libc::EPERM,
        "reads and lowers limits; not those of PID 1, which would die of them",
    ),
    allow("getrusage", libc::SYS_getrusage, "what was used"),
    allow("getcpu", libc::SYS_getcpu, "the CPU that the caller runs on"),
    allow("pidfd_open", libc::SYS_pidfd_open, "a descriptor for a process; runtimes wait on it"),
    allow("pidfd_send_signal", libc::SYS_pidfd_send_signal, "signals by it"),
    allow(
        "ptrace",
        libc::SYS_ptrace,
        "debuggers and leak checkers trace their own children; init and runner can't be traced",
    ),
    allow_if(
        "personality",
        libc::SYS_personality,
        &[&[is(0, 0)], &[is(0, PER_UNAME26)], &[is(0, PER_ADDR_NO_RANDOMIZE)], &[is(0, PER_QUERY)]],
        libc::EPERM,
        "asks, or turns randomisation off for a debugger; other personalities switch protections off",
    ),
    allow_if(
        "unshare",
        libc::SYS_unshare,
        &[&[masked(0, NEW_NAMESPACES | libc::CLONE_NEWTIME as u32, 0)]],
        libc::EPERM,
        "stops sharing descriptors or the working directory between threads; no new namespace",
    ),
    allow("seccomp", libc::SYS_seccomp, "adds filters for the caller; they only tighten"),
    allow(
        "landlock_create_ruleset",
        libc::SYS_landlock_create_ruleset,
        "further Landlock domains: they only tighten",
    ),
    allow("landlock_add_rule", libc::SYS_landlock_add_rule, "the rules of one"),
    allow("landlock_restrict_self", libc::SYS_landlock_restrict_self, "enters one"),
];

const NEW_NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
/// Makes the kernel look for equal pages in all memory of a process (KSM).
pub(super) const PR_SET_MEMORY_MERGE: u32 = 67;
const PER_UNAME26: u32 = 0x0002_0000;
const PER_ADDR_NO_RANDOMIZE: u32 = 0x0004_0000;
const PER_QUERY: u32 = 0xffff_ffff;
const FUTEX_WAKE: libc::c_long = 454;
const FUTEX_WAIT: libc::c_long = 455;
const FUTEX_REQUEUE: libc::c_long = 456;

/// The process that the call is about is not PID 1. All belong to one user, so the kernel would let them.
const NOT_PID_1: &[&[Condition]] = &[&[is_not(0, 1)]];
const PRIO_PROCESS: u32 = libc::PRIO_PROCESS;
const PRIO_PGRP: u32 = libc::PRIO_PGRP;
