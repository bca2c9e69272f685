//! PK4: calls with access to kernel internals or to other processes.

use crate::case::{BAD, Case, ControlPlacement, HERE, OutsideExpectation, Script, args, numbers, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::Argument;
use libc::{AT_EMPTY_PATH, EBADF, EBUSY, EFAULT, EINVAL, ENOKEY, ENOSYS, EPERM, ESRCH, O_RDONLY};

pub(crate) fn cases(scene: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let mut cases = refused_by_number();
    cases.extend(refused_by_argument());
    cases.extend(unlisted());
    cases.extend(of_init());
    cases.extend(own_filters());
    cases.push(memory_as_program(scene));
    cases
}

fn refused_by_number() -> Vec<Case> {
    let calls: [(&str, Vec<Argument>, &'static [i32]); 27] = [
        ("bpf", args![9999, BAD, 0], &[EINVAL, EFAULT, EPERM]),
        ("perf_event_open", args![BAD, 0, -1, -1, 0], &[EFAULT]),
        ("userfaultfd", args![0xffff_ffff_u64], &[EINVAL]),
        ("io_uring_setup", args![1, BAD], &[EFAULT]),
        ("io_uring_enter", args![-1, 0, 0, 0, 0, 0], &[EBADF]),
        ("io_uring_register", args![-1, 0, 0, 0], &[EBADF, EINVAL]),
        ("add_key", args![BAD, BAD, 0, 0, 0], &[EFAULT]),
        ("request_key", args![BAD, BAD, 0, 0], &[EFAULT]),
        ("keyctl", args![6, 1, 0, 0, 0], &[ENOKEY, EINVAL]),
        ("process_vm_readv", args![-1, BAD, 1, BAD, 1, 0], &[ESRCH, EFAULT]),
        ("process_vm_writev", args![-1, BAD, 1, BAD, 1, 0], &[ESRCH, EFAULT]),
        ("process_mrelease", args![-1, 0], &[EBADF]),
        ("kcmp", args![-1, -1, 0, 0, 0], &[ESRCH]),
        ("pidfd_getfd", args![-1, 0, 0], &[EBADF]),
        ("fanotify_init", args![0x8000_0000_u64, 0], &[EINVAL, EPERM]),
        ("fanotify_mark", args![-1, 1, 1, HERE, 0], &[EBADF, EINVAL]),
        ("modify_ldt", args![99, 0, 0], &[ENOSYS]),
        ("syslog", args![99, 0, 0], &[EINVAL]),
        ("mbind", args![1, 0, 99, 0, 0, 0], &[EINVAL]),
        ("set_mempolicy", args![99, 0, 0], &[EINVAL]),
        ("set_mempolicy_home_node", args![1, 0, 0, 0], &[EINVAL]),
        ("move_pages", args![-1, 0, 0, 0, 0, 0], &[ESRCH, EPERM]),
        ("migrate_pages", args![-1, 0, 0, 0], &[ESRCH]),
        ("lsm_set_self_attr", args![100, BAD, 0, 0], &[EFAULT, EINVAL, libc::E2BIG, libc::EOPNOTSUPP]),
        ("statmount", args![BAD, BAD, 0, 0xffff], &[EINVAL, EFAULT]),
        ("listmount", args![BAD, BAD, 0, 0xffff], &[EINVAL, EFAULT]),
        ("setns", args![-1, 0], &[EBADF]),
    ];
    let cases = calls.into_iter().map(|(name, arguments, reaches)| {
        let case = Case::sentinel("PK4", name, arguments, reaches).by(ControlPlacement::Root);
        match name {
            "modify_ldt" => case.outside(OutsideExpectation::Works).needs("segments of one's own"),
            "set_mempolicy_home_node" | "lsm_set_self_attr" | "statmount" | "listmount" => {
                case.needs("that call")
            }
            _ => case,
        }
    });
    cases.collect()
}

/// Returns allowed calls with arguments that aren't allowed.
fn refused_by_argument() -> Vec<Case> {
    const TIOCLINUX: u64 = 0x541c;
    const TIOCCONS: u64 = 0x541d;
    const SIOCGIFBR: u64 = 0x8940;
    const PR_SET_MEMORY_MERGE: u64 = 67;
    const SIOCGIFVLAN: u64 = 0x8982;
    let high = 1_u64 << 32;
    let mut cases = Vec::new();
    for (name, request) in
        [("TIOCSTI", libc::TIOCSTI), ("TIOCLINUX", TIOCLINUX), ("TIOCCONS", TIOCCONS), ("TIOCSETD", 0x5423)]
    {
        for (kind, request) in
            [("", request), (" with high bits", request | high), (" with all", request | (u64::MAX << 32))]
        {
            let case = Case::call("PK4", &format!("{name}{kind}"), "ioctl", args![-1, request, BAD]);
            cases.push(case.fails(&[libc::ENOTTY]).outside(OutsideExpectation::Reaches(&[EBADF])));
        }
    }
    for (name, request) in
        [("SIOCGIFBR", SIOCGIFBR), ("SIOCGIFVLAN", SIOCGIFVLAN), ("SIOCDEVPRIVATE", 0x89f0)]
    {
        let case = Case::call("PK4", name, "ioctl", args![-1, request, BAD]);
        cases.push(case.fails(&[libc::ENOTTY]).outside(OutsideExpectation::Reaches(&[EBADF])));
    }
    for (name, call, arguments) in [
        ("all pages merged", "prctl", args![PR_SET_MEMORY_MERGE, 1, 0, 0, 0]),
        ("pages merged", "madvise", args![0, 0, libc::MADV_MERGEABLE]),
    ] {
        let case = Case::call("PK4", name, call, arguments).fails(&[EINVAL]);
        cases.push(case.needs("merging of equal pages (KSM)"));
    }
    cases.push(
        Case::call("PK4", "pages merged", "process_madvise", args![-1, BAD, 1, libc::MADV_MERGEABLE, 0])
            .fails(&[EINVAL])
            .outside(OutsideExpectation::Reaches(&[EBADF, EFAULT])),
    );
    for (name, persona) in [
        ("an older memory layout", 0x0020_0000_u64),
        ("executable memory", 0x0040_0000),
        ("a mapped page zero", 0x0010_0000),
        ("all at once", 0x0fff_0000),
        ("another system", 7),
    ] {
        cases.push(Case::call("PK4", name, "personality", args![persona]));
    }
    cases
}

/// Returns calls that no rule names, so that they don't exist inside.
fn unlisted() -> Vec<Case> {
    let calls: [(&str, Vec<Argument>, &'static [i32]); 9] = [
        ("ustat", args![0, BAD], &[EINVAL, EFAULT]),
        ("sysfs", args![99, 0, 0], &[EINVAL]),
        ("remap_file_pages", args![1, 0, 1, 0, 0], &[EINVAL]),
        ("memfd_secret", args![0xffff_ffff_u64], &[EINVAL]),
        ("setxattrat", args![-1, BAD, 0, BAD, BAD, 16], &[EFAULT, EINVAL, EBADF]),
        ("getxattrat", args![-1, BAD, 0, BAD, BAD, 16], &[EFAULT, EINVAL, EBADF]),
        ("listxattrat", args![-1, BAD, 0, BAD, 1], &[EFAULT, EBADF]),
        ("removexattrat", args![-1, BAD, 0, BAD], &[EFAULT, EBADF]),
        ("file_getattr", args![-1, BAD, BAD, 24, 0], &[EFAULT, EBADF]),
    ];
    calls
        .into_iter()
        .map(|(name, arguments, reaches)| {
            Case::sentinel("PK4", name, arguments, reaches).fails(&[ENOSYS]).needs("that call")
        })
        .collect()
}

/// Returns calls on PID 1, which has the same user and must still be inaccessible.
fn of_init() -> Vec<Case> {
    let free = |what: &str, name: &str, arguments| {
        Case::call("PK4", what, name, arguments).by(ControlPlacement::Free)
    };
    vec![
        // Doesn't stop PID 1, because PID 1 also waits for this process.
        free("of PID 1", "ptrace", args![libc::PTRACE_SEIZE, 1, 0, 0]),
        free("PID 1's memory", "openat", args![HERE, "/proc/1/mem", O_RDONLY, 0])
            .fails(&[EPERM, libc::EACCES]),
        free("PID 1's limits", "prlimit64", args![1, libc::RLIMIT_MSGQUEUE, words(args![4096, 4096]), 0]),
        free("where PID 1 may run", "sched_setaffinity", args![1, 8, words(args![1])]),
        free("when PID 1 may run", "sched_setscheduler", args![1, libc::SCHED_BATCH, numbers(&[0])]),
        free(
            "when PID 1 may run",
            "sched_setattr",
            args![1, numbers(&[48, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 0],
        ),
        free("when PID 1 may run", "sched_setparam", args![1, numbers(&[0])]),
        free("how often PID 1 may run", "setpriority", args![libc::PRIO_PROCESS, 1, 1]),
        free("when PID 1 may read", "ioprio_set", args![1, 1, 3 << 13]),
    ]
}

/// Returns cases with a program's own filters and Landlock domains, which may only restrict further.
fn own_filters() -> Vec<Case> {
    // struct sock_filter: RET_ALLOW
    let allow_all = Argument::Bytes(vec![6, 0, 0, 0, 0, 0, 0xff, 0x7f]);
    let filter = |flags: u64| {
        let program = words(vec![Argument::from(1), allow_all.clone()]);
        let mut script = Script::one("prctl", args![libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0]);
        script.prepared();
        script.call("seccomp", args![libc::SECCOMP_SET_MODE_FILTER, flags, program]);
        script
    };
    let mut allowing = filter(0);
    allowing.call("bpf", args![9999, BAD, 0]);
    vec![
        Case::denied("PK4", "a filter that allows everything", allowing)
            .by(ControlPlacement::Root)
            .outside(OutsideExpectation::Reaches(&[EINVAL, EFAULT])),
        // A listener exists already, which PID 1 serves; a second one would intercept its notifications.
        Case::denied("PK4", "a filter that asks oneself", filter(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER))
            .fails(&[EBUSY]),
    ]
}

/// Returns a case that runs a program from a memory file. It is allowed, and gains no rights by that.
fn memory_as_program(scene: &PreparedHost<'_>) -> Case {
    let mut script = Script::one("memfd_create", args![&scene.mark, 0]);
    let memory = script.first();
    script.call("write", args![memory, "#!/lent/belljar-probe\n", 22]);
    script.prepared();
    script.call("execveat", args![memory, "", 0, 0, AT_EMPTY_PATH | 0x1000_0000]);
    Case::denied("PK4", "execveat with senseless flags", script)
        .fails(&[EINVAL])
        .outside(OutsideExpectation::Reaches(&[EINVAL]))
}
