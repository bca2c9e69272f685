//! A process's own memory, and what it shares with its siblings in the same sandbox.

use super::{Condition, Rule, allow, allow_if, below, is, is_not, without};
use crate::plan::{MOST_SEMAPHORE_OPERATIONS, MOST_SEMAPHORES_OF_SET};

pub(super) const RULES: &[Rule] = &[
    allow_if(
        "mmap",
        libc::SYS_mmap,
        &[&[without(3, libc::MAP_HUGETLB as u32)]],
        libc::ENOMEM,
        "maps memory and files; no page of the machine's pool of huge pages, as where that is empty",
    ),
    allow("mprotect", libc::SYS_mprotect, "changes protection; just-in-time compilers flip it"),
    allow("munmap", libc::SYS_munmap, "unmaps memory"),
    allow("brk", libc::SYS_brk, "grows the heap"),
    allow("mremap", libc::SYS_mremap, "moves or grows a mapping"),
    allow("msync", libc::SYS_msync, "writes a mapping back"),
    allow("mincore", libc::SYS_mincore, "asks which pages are present"),
    allow_if(
        "madvise",
        libc::SYS_madvise,
        &[&[is_not(2, MADV_MERGEABLE)]],
        libc::EINVAL,
        "announces how memory will be used; no pages merged with those of other programs, which tells by its time what these hold",
    ),
    allow_if(
        "process_madvise",
        libc::SYS_process_madvise,
        &[&[is_not(3, MADV_MERGEABLE)]],
        libc::EINVAL,
        "the same, for the caller; other processes need a capability",
    ),
    allow("mlock", libc::SYS_mlock, "keeps memory resident, within the limit"),
    allow("mlock2", libc::SYS_mlock2, "the same with flags"),
    allow("munlock", libc::SYS_munlock, "ends that"),
    allow("mlockall", libc::SYS_mlockall, "the same for all memory, within the limit"),
    allow("munlockall", libc::SYS_munlockall, "ends that"),
    allow_if(
        "memfd_create",
        libc::SYS_memfd_create,
        &[&[without(1, libc::MFD_HUGETLB)]],
        libc::EINVAL,
        "memory as a file; runtimes and compilers use it; not of huge pages, as on a kernel that knows none",
    ),
    allow("membarrier", libc::SYS_membarrier, "orders memory across threads"),
    allow("pkey_alloc", libc::SYS_pkey_alloc, "protection keys; some JIT compilers"),
    allow("pkey_free", libc::SYS_pkey_free, "frees one"),
    allow("pkey_mprotect", libc::SYS_pkey_mprotect, "protects with one"),
    allow("mseal", MSEAL, "makes a mapping unchangeable; newer loaders"),
    allow("map_shadow_stack", MAP_SHADOW_STACK, "makes a shadow stack; hardened C libraries"),
    allow("get_mempolicy", libc::SYS_get_mempolicy, "asks for the NUMA policy, as numeric libraries do"),
    allow_if(
        "shmget",
        libc::SYS_shmget,
        &[&[without(2, libc::SHM_HUGETLB as u32)]],
        libc::ENOMEM,
        "shared memory, in an IPC namespace of its own; not of huge pages",
    ),
    allow("shmat", libc::SYS_shmat, "attaches it"),
    allow("shmdt", libc::SYS_shmdt, "detaches it"),
    allow("shmctl", libc::SYS_shmctl, "controls it"),
    allow_if(
        "semget",
        libc::SYS_semget,
        &[&[below(1, MOST_SEMAPHORES_OF_SET + 1)]],
        libc::EINVAL,
        "semaphores, in an IPC namespace of its own; as many in a set as Linux had by default for twenty years",
    ),
    allow_if("semop", libc::SYS_semop, FEW_OPERATIONS, libc::E2BIG, OPERATIONS),
    allow_if("semtimedop", libc::SYS_semtimedop, FEW_OPERATIONS, libc::E2BIG, OPERATIONS),
    allow("semctl", libc::SYS_semctl, "controls them"),
    allow("msgget", libc::SYS_msgget, "message queues, in an IPC namespace of its own"),
    allow("msgsnd", libc::SYS_msgsnd, "sends a message"),
    allow("msgrcv", libc::SYS_msgrcv, "receives a message"),
    allow("msgctl", libc::SYS_msgctl, "controls a queue"),
    allow("mq_open", libc::SYS_mq_open, "POSIX message queues, in an IPC namespace of its own"),
    allow("mq_unlink", libc::SYS_mq_unlink, "removes one"),
    allow("mq_timedsend", libc::SYS_mq_timedsend, "sends to one"),
    allow("mq_timedreceive", libc::SYS_mq_timedreceive, "receives from one"),
    allow("mq_notify", libc::SYS_mq_notify, "requests a notification"),
    allow("mq_getsetattr", libc::SYS_mq_getsetattr, "its attributes"),
];

const FEW_OPERATIONS: &[&[Condition]] =
    &[&[below(2, MOST_SEMAPHORE_OPERATIONS)], &[is(2, MOST_SEMAPHORE_OPERATIONS)]];
const OPERATIONS: &str = "uses them; few at once: the kernel tries the operations of all that wait, again and again, under \
                          one lock";
const MADV_MERGEABLE: u32 = libc::MADV_MERGEABLE.cast_unsigned();
const MAP_SHADOW_STACK: libc::c_long = 453;
const MSEAL: libc::c_long = 462;
