//! Signals, within the PID namespace.

use super::{Rule, allow};

pub(super) const RULES: &[Rule] = &[
    allow("rt_sigaction", libc::SYS_rt_sigaction, "sets a handler"),
    allow("rt_sigprocmask", libc::SYS_rt_sigprocmask, "blocks signals"),
    allow("rt_sigreturn", libc::SYS_rt_sigreturn, "returns from a handler"),
    allow("rt_sigpending", libc::SYS_rt_sigpending, "asks what is pending"),
    allow("rt_sigtimedwait", libc::SYS_rt_sigtimedwait, "waits for a signal"),
    allow("rt_sigqueueinfo", libc::SYS_rt_sigqueueinfo, "sends a signal with a value"),
    allow("rt_tgsigqueueinfo", libc::SYS_rt_tgsigqueueinfo, "the same to a thread"),
    allow("rt_sigsuspend", libc::SYS_rt_sigsuspend, "waits with another mask"),
    allow("sigaltstack", libc::SYS_sigaltstack, "a stack for handlers"),
    allow("signalfd", libc::SYS_signalfd, "signals as a descriptor; older programs"),
    allow("signalfd4", libc::SYS_signalfd4, "signals as a descriptor"),
    allow("kill", libc::SYS_kill, "signals a process of the sandbox"),
    allow("tkill", libc::SYS_tkill, "signals a thread; older programs"),
    allow("tgkill", libc::SYS_tgkill, "signals a thread"),
    allow("pause", libc::SYS_pause, "waits for any signal"),
    allow("restart_syscall", libc::SYS_restart_syscall, "the kernel's own, after a stop"),
];
