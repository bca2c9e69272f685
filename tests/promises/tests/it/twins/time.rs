//! Clocks, and timers that wake a program.

use crate::case::{Case, Script, args, room, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME};

pub(crate) fn cases(_: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    vec![
        Case::twin("clocks", clocks),
        Case::twin("timers", timers),
        Case::twin("timers as descriptors", as_descriptors),
    ]
}

fn clocks(s: &mut Script) {
    s.call("gettimeofday", args![room(16), 0]);
    s.call("time", args![0]);
    s.call("times", args![room(32)]);
    s.call("clock_gettime", args![CLOCK_REALTIME, room(16)]);
    s.call("clock_getres", args![CLOCK_MONOTONIC, room(16)]);
    s.call("nanosleep", args![words(args![0, 1000]), 0]);
    s.call("clock_nanosleep", args![CLOCK_MONOTONIC, 0, words(args![0, 1000]), 0]);
}

fn timers(s: &mut Script) {
    // Restores the probe's own time limit, a little later.
    s.call("alarm", args![20]);
    s.call("getitimer", args![libc::ITIMER_VIRTUAL, room(32)]);
    s.call("setitimer", args![libc::ITIMER_VIRTUAL, words(args![0, 0, 100, 0]), 0]);
    // struct sigevent: SIGEV_NONE
    let silent = words(args![0, 1_u64 << 32, 0, 0, 0, 0, 0, 0]);
    let timer = s.call("timer_create", args![CLOCK_MONOTONIC, silent, room(4)]);
    let timer = || timer.stored(2, 0);
    s.call("timer_settime", args![timer(), 0, words(args![0, 0, 100, 0]), 0]);
    s.call("timer_gettime", args![timer(), room(32)]);
    s.call("timer_getoverrun", args![timer()]);
    s.call("timer_delete", args![timer()]);
}

fn as_descriptors(s: &mut Script) {
    let timer = s.call("timerfd_create", args![CLOCK_MONOTONIC, 0]);
    s.call("timerfd_settime", args![timer, 0, words(args![0, 0, 0, 1000]), 0]);
    s.call("timerfd_gettime", args![timer, room(32)]);
    s.call("read", args![timer, room(8), 8]);
}
