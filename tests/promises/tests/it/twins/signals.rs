//! Signals among the program's own processes.

use crate::case::{Case, Script, args, room, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::SpecialAct;
use libc::{SIG_BLOCK, SIGUSR1};

/// The signal set that contains only `SIGUSR1`.
const SET: u64 = 1 << (SIGUSR1 - 1);

pub(crate) fn cases(_: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    vec![
        Case::twin("handling signals", |s| s.act(SpecialAct::Handle)),
        Case::twin("being stopped and continued", |s| s.act(SpecialAct::Resume)),
        Case::twin("waiting for signals", waiting),
        Case::twin("signals as a descriptor", as_descriptor),
    ]
}

fn waiting(s: &mut Script) {
    let (own, thread) = (s.call("getpid", args![]), s.call("gettid", args![]));
    s.call("rt_sigaction", args![SIGUSR1, 0, room(32), 8]);
    s.call("sigaltstack", args![0, room(24)]);
    s.call("rt_sigprocmask", args![SIG_BLOCK, words(args![SET]), 0, 8]);
    s.call("kill", args![own, SIGUSR1]);
    s.call("rt_sigpending", args![room(8), 8]);
    let take = |s: &mut Script| {
        s.call("rt_sigtimedwait", args![words(args![SET]), room(128), words(args![1, 0]), 8]);
    };
    take(s);
    s.call("tkill", args![thread, SIGUSR1]);
    take(s);
    s.call("tgkill", args![own, thread, SIGUSR1]);
    take(s);
    // struct siginfo: sent by hand (SI_QUEUE)
    let info = || words(args![SIGUSR1, 0xffff_ffff_u64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    s.call("rt_sigqueueinfo", args![own, SIGUSR1, info()]);
    take(s);
    s.call("rt_tgsigqueueinfo", args![own, thread, SIGUSR1, info()]);
    take(s);
}

fn as_descriptor(s: &mut Script) {
    let own = s.call("getpid", args![]);
    s.call("rt_sigprocmask", args![SIG_BLOCK, words(args![SET]), 0, 8]);
    s.call("signalfd", args![-1, words(args![SET]), 8]);
    let signals = s.call("signalfd4", args![-1, words(args![SET]), 8, libc::SFD_NONBLOCK]);
    s.call("kill", args![own, SIGUSR1]);
    s.call("read", args![signals, room(128), 128]);
}
