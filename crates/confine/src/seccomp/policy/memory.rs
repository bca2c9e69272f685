//! A process's own memory, and what it shares with its siblings in the same sandbox.

use super::{Rule, allow};

pub(super) const RULES: &[Rule] = &[
    allow("mmap", libc::SYS_mmap, "maps memory and files"),
    allow("mprotect", libc::SYS_mprotect, "changes protection; just-in-time compilers flip it"),
    allow("munmap", libc::SYS_munmap, "unmaps memory"),
    allow("brk", libc::SYS_brk, "grows the heap"),
    allow("mremap", libc::SYS_mremap, "moves or grows a mapping"),
    allow("msync", libc::SYS_msync, "writes a mapping back"),
    allow("mincore", libc::SYS_mincore, "asks which pages are present"),
    allow("madvise", libc::SYS_madvise, "announces how memory will be used"),
    allow("process_madvise", libc::SYS_process_madvise, "the same; for oneself, others need a capability"),
    allow("mlock", libc::SYS_mlock, "keeps memory resident, within the limit"),
    allow("mlock2", libc::SYS_mlock2, "the same with flags"),
    allow("munlock", libc::SYS_munlock, "ends that"),
    allow("mlockall", libc::SYS_mlockall, "the same for all memory, within the limit"),
    allow("munlockall", libc::SYS_munlockall, "ends that"),
    allow("memfd_create", libc::SYS_memfd_create, "memory as a file; runtimes and compilers use it"),
    allow("membarrier", libc::SYS_membarrier, "orders memory across threads"),
    allow("pkey_alloc", libc::SYS_pkey_alloc, "protection keys; some JIT compilers"),
    allow("pkey_free", libc::SYS_pkey_free, "frees one"),
    allow("pkey_mprotect", libc::SYS_pkey_mprotect, "protects with one"),
    allow("mseal", MSEAL, "makes a mapping unchangeable; newer loaders"),
    allow("map_shadow_stack", MAP_SHADOW_STACK, "makes a shadow stack; hardened C libraries"),
    allow("get_mempolicy", libc::SYS_get_mempolicy, "asks for the NUMA policy, as numeric libraries do"),
    allow("shmget", libc::SYS_shmget, "shared memory, in an IPC namespace of its own"),
    allow("shmat", libc::SYS_shmat, "attaches it"),
    allow("shmdt", libc::SYS_shmdt, "detaches it"),
    allow("shmctl", libc::SYS_shmctl, "controls it"),
    allow("semget", libc::SYS_semget, "semaphores, in an IPC namespace of its own"),
    allow("semop", libc::SYS_semop, "uses them"),
    allow("semtimedop", libc::SYS_semtimedop, "uses them with a time limit"),
    allow("semctl", libc::SYS_semctl, "controls them"),
    allow("msgget", libc::SYS_msgget, "message queues, in an IPC namespace of its own"),
    allow("msgsnd", libc::SYS_msgsnd, "sends a message"),
    allow("msgrcv", libc::SYS_msgrcv, "receives a message"),
    allow("msgctl", libc::SYS_msgctl, "controls a queue"),
    allow("mq_open", libc::SYS_mq_open, "POSIX message queues, in an IPC namespace of its own"),
    allow("mq_unlink", libc::SYS_mq_unlink, "removes one"),
    allow("mq_timedsend", libc::SYS_mq_timedsend, "sends to one"),
    allow("mq_timedreceive", libc::SYS_mq_timedreceive, "receives from one"),
    allow("mq_notify", libc::SYS_mq_notify, "asks to be told"),
    allow("mq_getsetattr", libc::SYS_mq_getsetattr, "its attributes"),
];

const MAP_SHADOW_STACK: libc::c_long = 453;
const MSEAL: libc::c_long = 462;
