//! The program's own memory, and memory that processes of one sandbox share.

use crate::case::{Case, Script, args, numbers, room, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::SpecialAct;
use libc::{
    EAGAIN, EPERM, IPC_CREAT, IPC_PRIVATE, IPC_RMID, MAP_ANONYMOUS, MAP_PRIVATE, PROT_READ, PROT_WRITE,
};

const PAGE: u64 = 4096;

pub(crate) fn cases(scene: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    vec![
        Case::twin("mappings", mappings),
        Case::twin("code that is compiled as it runs", |script| script.act(SpecialAct::Compile)),
        Case::twin("memory kept resident", resident),
        Case::twin("memory as a file", |s| {
            let file = s.call("memfd_create", args!["memory", 0]);
            s.call("ftruncate", args![file, PAGE]);
            s.call("write", args![file, "text", 4]);
        }),
        Case::twin("protection keys", |s| {
            let page = s.call("mmap", args![0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0]);
            let key = s.call("pkey_alloc", args![0, 0]);
            s.call("pkey_mprotect", args![page, PAGE, PROT_READ, key]);
            s.call("pkey_free", args![key]);
        })
        .needs("protection keys"),
        Case::twin("a mapping that is sealed", |s| {
            let page = s.call("mmap", args![0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0]);
            s.call("mseal", args![page, PAGE, 0]);
        })
        .needs("that call"),
        Case::twin("a shadow stack", |s| {
            s.call("map_shadow_stack", args![0, PAGE, 0]);
        })
        .needs("shadow stacks"),
        Case::twin("shared memory and semaphores", system_v),
        Case::twin("message queues", |script| message_queues(script, &scene.mark)),
    ]
}

fn mappings(s: &mut Script) {
    let private = MAP_PRIVATE | MAP_ANONYMOUS;
    s.call("brk", args![0]);
    let pages = s.call("mmap", args![0, 4 * PAGE, PROT_READ | PROT_WRITE, private, -1, 0]);
    s.call("mprotect", args![pages, PAGE, PROT_READ]);
    s.call("madvise", args![pages, PAGE, libc::MADV_WILLNEED]);
    s.call("mincore", args![pages, PAGE, room(8)]);
    s.call_or("get_mempolicy", args![room(4), 0, 0, 0, 0], &[libc::ENOSYS]);
    s.call("membarrier", args![0, 0, 0]);
    let own = s.call("getpid", args![]);
    let own = s.call("pidfd_open", args![own, 0]);
    let range = words(vec![pages.into(), PAGE.into()]);
    // The kernel's version decides if a process may do this to itself.
    s.call_or("process_madvise", args![own, range, 1, libc::MADV_COLD, 0], &[EPERM]);
    s.call("mprotect", args![pages, PAGE, PROT_READ | PROT_WRITE]);
    s.call("mremap", args![pages, 4 * PAGE, 8 * PAGE, libc::MREMAP_MAYMOVE]);
}

fn resident(s: &mut Script) {
    let page = s.call("mmap", args![0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0]);
    s.call("mlock", args![page, PAGE]);
    s.call("munlock", args![page, PAGE]);
    s.call("mlock2", args![page, PAGE, 1]);
    // Lock all future mappings, once they are used.
    s.call("mlockall", args![libc::MCL_FUTURE | libc::MCL_ONFAULT]);
    s.call("munlockall", args![]);
}

fn system_v(s: &mut Script) {
    let memory = s.call("shmget", args![IPC_PRIVATE, PAGE, IPC_CREAT | 0o600]);
    let address = s.call("shmat", args![memory, 0, 0]);
    s.call("shmctl", args![memory, libc::IPC_STAT, room(128)]);
    s.call("shmdt", args![address]);
    s.call("shmctl", args![memory, IPC_RMID, 0]);
    let semaphores = s.call("semget", args![IPC_PRIVATE, 1, IPC_CREAT | 0o600]);
    // struct sembuf: the first semaphore, plus one; then minus one, with a timeout
    s.call("semop", args![semaphores, numbers(&[1 << 16, 0]), 1]);
    s.call("semtimedop", args![semaphores, numbers(&[0xffff << 16, 0]), 1, words(args![1, 0])]);
    // The maximum number of operations in one call, two in three numbers; and the maximum number of semaphores in a set.
    let many = || numbers(&[1 << 16, 0, 1].repeat(16));
    s.call("semop", args![semaphores, many(), 32]);
    s.call("semtimedop", args![semaphores, many(), 32, words(args![1, 0])]);
    s.call("semctl", args![semaphores, 0, IPC_RMID, 0]);
    let large = s.call("semget", args![IPC_PRIVATE, 250, IPC_CREAT | 0o600]);
    s.call("semctl", args![large, 0, IPC_RMID, 0]);
    let queue = s.call("msgget", args![IPC_PRIVATE, IPC_CREAT | 0o600]);
    s.call("msgsnd", args![queue, words(args![1, 0]), 8, 0]);
    s.call("msgrcv", args![queue, room(16), 8, 0, libc::IPC_NOWAIT]);
    s.call("msgctl", args![queue, IPC_RMID, 0]);
}

fn message_queues(s: &mut Script, name: &str) {
    // struct mq_attr: flags, most messages, largest message, messages
    let attributes = words(args![0, 4, 64, 0]);
    let queue =
        s.call("mq_open", args![name, libc::O_CREAT | libc::O_RDWR | libc::O_NONBLOCK, 0o600, attributes]);
    s.call("mq_timedsend", args![queue, "message", 7, 0, 0]);
    s.call("mq_timedreceive", args![queue, room(64), 64, room(4), 0]);
    s.call_or("mq_timedreceive", args![queue, room(64), 64, 0, 0], &[EAGAIN]);
    s.call("mq_getsetattr", args![queue, 0, room(64)]);
    // struct sigevent: SIGEV_NONE
    s.call("mq_notify", args![queue, words(args![0, 1_u64 << 32, 0, 0, 0, 0, 0, 0])]);
    s.call("mq_unlink", args![name]);
}
