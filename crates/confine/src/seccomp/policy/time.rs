//! Clocks and timers; setting a clock is refused.

use super::{Rule, allow};

pub(super) const RULES: &[Rule] = &[
    allow("gettimeofday", libc::SYS_gettimeofday, "the time; older programs"),
    allow("time", libc::SYS_time, "the time in seconds; older programs"),
    allow("times", libc::SYS_times, "processor time"),
    allow("clock_gettime", libc::SYS_clock_gettime, "a clock"),
    allow("clock_getres", libc::SYS_clock_getres, "a clock's resolution"),
    allow("nanosleep", libc::SYS_nanosleep, "sleeps"),
    allow("clock_nanosleep", libc::SYS_clock_nanosleep, "sleeps by a clock"),
    allow("alarm", libc::SYS_alarm, "a signal later"),
    allow("getitimer", libc::SYS_getitimer, "reads an interval timer"),
    allow("setitimer", libc::SYS_setitimer, "sets an interval timer; profilers do"),
    allow("timer_create", libc::SYS_timer_create, "makes a timer"),
    allow("timer_settime", libc::SYS_timer_settime, "sets it"),
    allow("timer_gettime", libc::SYS_timer_gettime, "reads it"),
    allow("timer_getoverrun", libc::SYS_timer_getoverrun, "counts missed ticks"),
    allow("timer_delete", libc::SYS_timer_delete, "removes it"),
    allow("timerfd_create", libc::SYS_timerfd_create, "a timer as a descriptor"),
    allow("timerfd_settime", libc::SYS_timerfd_settime, "sets it"),
    allow("timerfd_gettime", libc::SYS_timerfd_gettime, "reads it"),
];
