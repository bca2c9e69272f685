//! Rules that differ in a sandbox without namespaces: there the host's network, processes and memory segments are within
//! reach of calls that are harmless elsewhere.
//!
//! A filter doesn't see what a path leads to; Landlock does.

use super::files::{F_NOTIFY, F_SETDELEG, F_SETLEASE};
use super::guard::{PR_SET_SECCOMP, SECCOMP_MODE_FILTER, SECCOMP_SET_MODE_FILTER};
use super::network::{AF_UNIX, SOCK_STREAM, SOCKET_TYPE};
use super::processes::PR_SET_MEMORY_MERGE;
use super::{Rule, allow_if, ioctl, is, is_not, masked, refuse};

pub(super) const RULES: &[Rule] = &[
    refuse("socket", libc::SYS_socket, libc::EACCES, "every network there is, is the host's"),
    refuse("connect", libc::SYS_connect, libc::EACCES, "local sockets by path lead to the host's services"),
    refuse("bind", libc::SYS_bind, libc::EACCES, "takes a name that all processes of the host share"),
    refuse("listen", libc::SYS_listen, libc::EACCES, "no other process may connect by a name"),
    refuse(
        "pidfd_send_signal",
        libc::SYS_pidfd_send_signal,
        libc::ENOSYS,
        "no filter sees which process a pidfd means; programs fall back to process ids",
    ),
    allow_if(
        "socketpair",
        libc::SYS_socketpair,
        &[
            &[is(0, AF_UNIX), masked(1, SOCKET_TYPE, SOCK_STREAM)],
            &[is(0, AF_UNIX), masked(1, SOCKET_TYPE, libc::SOCK_SEQPACKET as u32)],
        ],
        libc::EPROTONOSUPPORT,
        "a pair whose ends lead to each other; a datagram names its receiver in every message",
    ),
    refuse("ptrace", libc::SYS_ptrace, libc::EPERM, "the user's other processes could be traced"),
    allow_if(
        "prlimit64",
        libc::SYS_prlimit64,
        ONESELF,
        libc::EPERM,
        "limits of the caller, not of the user's other processes",
    ),
    allow_if(
        "sched_setaffinity",
        libc::SYS_sched_setaffinity,
        ONESELF,
        libc::EPERM,
        "pins the caller to CPUs",
    ),
    allow_if("sched_setparam", libc::SYS_sched_setparam, ONESELF, libc::EPERM, "the caller's own priority"),
    allow_if(
        "sched_setscheduler",
        libc::SYS_sched_setscheduler,
        ONESELF,
        libc::EPERM,
        "the caller's own scheduling class",
    ),
    allow_if(
        "sched_setattr",
        libc::SYS_sched_setattr,
        ONESELF,
        libc::EPERM,
        "the caller's own priority and class",
    ),
    allow_if(
        "setpriority",
        libc::SYS_setpriority,
        &[&[is(0, libc::PRIO_PROCESS), is(1, 0)], &[is(0, libc::PRIO_PGRP), is(1, 0)]],
        libc::EPERM,
        "lowers the priority of the caller or its group",
    ),
    allow_if(
        "ioprio_set",
        libc::SYS_ioprio_set,
        &[&[is(0, IOPRIO_WHO_PROCESS), is(1, 0)]],
        libc::EPERM,
        "the caller's own I/O priority",
    ),
    allow_if(
        "fcntl",
        libc::SYS_fcntl,
        &[&[
            is_not(1, F_SETOWN),
            is_not(1, F_SETOWN_EX),
            is_not(1, F_SETSIG),
            is_not(1, F_SETLEASE),
            is_not(1, F_NOTIFY),
            is_not(1, F_SETDELEG),
        ]],
        libc::EPERM,
        "flags and locks of a descriptor; not the process that it signals nor the signal, which kills a process that \
         expects none; no leases or delegations, for which other processes wait; no directory notification",
    ),
    allow_if("seccomp", libc::SYS_seccomp, &[&[is_not(0, SECCOMP_SET_MODE_FILTER)]], libc::EINVAL, FILTERS),
    allow_if(
        "prctl",
        libc::SYS_prctl,
        &[
            &[is_not(0, PR_SET_SECCOMP), is_not(0, PR_SET_MEMORY_MERGE)],
            &[is_not(0, PR_SET_MEMORY_MERGE), is_not(1, SECCOMP_MODE_FILTER)],
        ],
        libc::EINVAL,
        FILTERS,
    ),
    ioctl::SUPERVISED,
    refuse("getxattr", libc::SYS_getxattr, libc::EOPNOTSUPP, ATTRIBUTES),
    refuse("lgetxattr", libc::SYS_lgetxattr, libc::EOPNOTSUPP, ATTRIBUTES),
    refuse("listxattr", libc::SYS_listxattr, libc::EOPNOTSUPP, ATTRIBUTES),
    refuse("llistxattr", libc::SYS_llistxattr, libc::EOPNOTSUPP, ATTRIBUTES),
    refuse("setxattr", libc::SYS_setxattr, libc::EOPNOTSUPP, ATTRIBUTES),
    refuse("lsetxattr", libc::SYS_lsetxattr, libc::EOPNOTSUPP, ATTRIBUTES),
    refuse("fsetxattr", libc::SYS_fsetxattr, libc::EOPNOTSUPP, ATTRIBUTES),
    refuse("removexattr", libc::SYS_removexattr, libc::EOPNOTSUPP, ATTRIBUTES),
    refuse("lremovexattr", libc::SYS_lremovexattr, libc::EOPNOTSUPP, ATTRIBUTES),
    refuse("fremovexattr", libc::SYS_fremovexattr, libc::EOPNOTSUPP, ATTRIBUTES),
    refuse(
        "inotify_add_watch",
        libc::SYS_inotify_add_watch,
        libc::EACCES,
        "tells what happens in any directory",
    ),
    refuse("shmget", libc::SYS_shmget, libc::EACCES, SHARED),
    refuse("shmat", libc::SYS_shmat, libc::EACCES, SHARED),
    refuse("shmctl", libc::SYS_shmctl, libc::EACCES, SHARED),
    refuse("semget", libc::SYS_semget, libc::EACCES, SHARED),
    refuse("semop", libc::SYS_semop, libc::EACCES, SHARED),
    refuse("semtimedop", libc::SYS_semtimedop, libc::EACCES, SHARED),
    refuse("semctl", libc::SYS_semctl, libc::EACCES, SHARED),
    refuse("msgget", libc::SYS_msgget, libc::EACCES, SHARED),
    refuse("msgsnd", libc::SYS_msgsnd, libc::EACCES, SHARED),
    refuse("msgrcv", libc::SYS_msgrcv, libc::EACCES, SHARED),
    refuse("msgctl", libc::SYS_msgctl, libc::EACCES, SHARED),
    refuse("mq_open", libc::SYS_mq_open, libc::EACCES, SHARED),
    refuse("mq_unlink", libc::SYS_mq_unlink, libc::EACCES, SHARED),
];

/// The call is about the caller itself. Any other number may be a process of the same user's that has nothing to do
/// with the sandbox, and Landlock has no say in these calls.
const ONESELF: &[&[super::Condition]] = &[&[is(0, 0)]];
const IOPRIO_WHO_PROCESS: u32 = 1;
const F_SETOWN: u32 = 8;
const F_SETSIG: u32 = 10;
const F_SETOWN_EX: u32 = 15;
const FILTERS: &str = "no filter of one's own: the machine has one memory for compiled filters, and this backend has no \
                       process that could count those of one sandbox";
const ATTRIBUTES: &str = "attributes of any file of the user's, which Landlock doesn't restrict";
const SHARED: &str = "the host's, shared with every process of the user's";
