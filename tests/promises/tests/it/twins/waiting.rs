//! Waiting for events.

use crate::case::{Case, Script, args, numbers, room, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{EFAULT, EPERM};

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let folder = place.path(&format!("/workspace/{}-watched", scene.mark));
    vec![
        Case::twin("waiting for descriptors", descriptors),
        Case::twin("event queues", event_queues),
        Case::twin("event queues, where there is no io_uring", |s| {
            s.call_or("io_uring_setup", args![1, 1], &[EPERM, EFAULT]);
            event_queues(s);
        }),
        Case::twin("watching files", |s| watch(s, &folder)),
    ]
}

fn descriptors(s: &mut Script) {
    let events = s.call("eventfd2", args![1, 0]);
    s.call("dup2", args![events, 40]);
    let none = || words(args![0, 0]);
    let bits = || words(args![1_u64 << 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    s.call("select", args![41, bits(), 0, 0, none()]);
    s.call("pselect6", args![41, bits(), 0, 0, none(), 0]);
    // struct pollfd: descriptor, POLLIN
    s.call("poll", args![numbers(&[40, 1]), 1, 0]);
    s.call("ppoll", args![numbers(&[40, 1]), 1, none(), 0, 0]);
    // More descriptors than PID 1 allows without a check.
    s.call("poll", args![numbers(&[40, 1].repeat(1_025)), 1_025, 0]);
    s.call("ppoll", args![numbers(&[40, 1].repeat(1_025)), 1_025, none(), 0, 0]);
    let many_bits = || words([args![1_u64 << 40], vec![0.into(); 31]].concat());
    s.call("select", args![2_048, many_bits(), 0, 0, none()]);
    s.call("pselect6", args![2_048, many_bits(), 0, 0, none(), 0]);
    s.call("eventfd", args![1]);
    s.call("read", args![40, room(8), 8]);
}

fn event_queues(s: &mut Script) {
    s.call("epoll_create", args![1]);
    let queue = s.call("epoll_create1", args![0]);
    let events = s.call("eventfd2", args![1, 0]);
    // struct epoll_event: EPOLLIN, data
    s.call("epoll_ctl", args![queue, 1, events, numbers(&[1, 0, 0])]);
    s.call("epoll_wait", args![queue, room(12), 1, 0]);
    s.call("epoll_pwait", args![queue, room(12), 1, 0, 0, 8]);
    s.call_or("epoll_pwait2", args![queue, room(12), 1, words(args![0, 0]), 0, 8], &[libc::ENOSYS]);
}

fn watch(s: &mut Script, folder: &str) {
    s.call("mkdir", args![folder, 0o700]);
    s.call("inotify_init", args![]);
    let watch = s.call("inotify_init1", args![libc::IN_NONBLOCK]);
    let number = s.call("inotify_add_watch", args![watch, folder, libc::IN_CREATE]);
    s.call("creat", args![format!("{folder}/made"), 0o600]);
    s.call("read", args![watch, room(256), 256]);
    s.call("inotify_rm_watch", args![watch, number]);
    // A path relative to the working directory, and a link itself.
    s.call("symlink", args!["made", format!("{folder}/link")]);
    s.call("inotify_add_watch", args![watch, format!("{folder}/link"), libc::IN_ATTRIB]);
    s.call(
        "inotify_add_watch",
        args![watch, format!("{folder}/link"), libc::IN_ATTRIB | libc::IN_DONT_FOLLOW],
    );
    s.call("chdir", args![folder]);
    s.call("inotify_add_watch", args![watch, "made", libc::IN_MODIFY]);
    s.call("inotify_add_watch", args![watch, ".", libc::IN_MODIFY | libc::IN_ONLYDIR]);
}
