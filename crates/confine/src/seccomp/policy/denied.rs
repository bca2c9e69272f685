//! Calls that programs know and that are refused on purpose.

use super::{Rule, refuse};

pub(super) const OPENAT2: &[Rule] = &[refuse(
    "openat2",
    libc::SYS_openat2,
    libc::ENOSYS,
    "its mode lies in memory, where no filter sees a set-id bit; programs fall back to openat",
)];

pub(super) const RULES: &[Rule] = &[
    refuse(
        "sync",
        libc::SYS_sync,
        libc::ENOSYS,
        "writes back the files of every user, and other processes wait for that; it can't fail, so callers don't check",
    ),
    refuse(
        "syncfs",
        libc::SYS_syncfs,
        libc::ENOSYS,
        "the same for a file system shared with others; denied with an error, as programs would take data for durable: fsync works",
    ),
    refuse("io_setup", libc::SYS_io_setup, libc::ENOSYS, AIO),
    refuse("io_destroy", libc::SYS_io_destroy, libc::ENOSYS, AIO),
    refuse("io_submit", libc::SYS_io_submit, libc::ENOSYS, AIO),
    refuse("io_cancel", libc::SYS_io_cancel, libc::ENOSYS, AIO),
    refuse("io_getevents", libc::SYS_io_getevents, libc::ENOSYS, AIO),
    refuse("io_pgetevents", IO_PGETEVENTS, libc::ENOSYS, AIO),
    eperm("mount", libc::SYS_mount, "changes what the file system shows"),
    eperm("umount2", libc::SYS_umount2, "uncovers what a mount hides"),
    eperm("pivot_root", libc::SYS_pivot_root, "changes the root"),
    eperm("chroot", libc::SYS_chroot, "changes the root; a known way around path rules"),
    eperm("open_tree", libc::SYS_open_tree, "the newer mount calls"),
    eperm("move_mount", libc::SYS_move_mount, "the newer mount calls"),
    eperm("fsopen", libc::SYS_fsopen, "the newer mount calls"),
    eperm("fsconfig", libc::SYS_fsconfig, "the newer mount calls"),
    eperm("fsmount", libc::SYS_fsmount, "the newer mount calls"),
    eperm("fspick", libc::SYS_fspick, "the newer mount calls"),
    eperm("mount_setattr", libc::SYS_mount_setattr, "the newer mount calls"),
    eperm("statmount", STATMOUNT, "tells where mounts come from on the host"),
    eperm("listmount", LISTMOUNT, "tells which mounts there are"),
    eperm("open_tree_attr", OPEN_TREE_ATTR, "the newer mount calls"),
    eperm("setns", libc::SYS_setns, "enters another namespace"),
    eperm("bpf", libc::SYS_bpf, "loads programs into the kernel"),
    eperm("perf_event_open", libc::SYS_perf_event_open, "a large surface, and it measures others"),
    eperm("userfaultfd", libc::SYS_userfaultfd, "holds the kernel in a page fault: makes races winnable"),
    eperm("io_uring_setup", libc::SYS_io_uring_setup, "runs operations that no filter sees"),
    eperm("io_uring_enter", libc::SYS_io_uring_enter, "runs operations that no filter sees"),
    eperm("io_uring_register", libc::SYS_io_uring_register, "runs operations that no filter sees"),
    eperm("add_key", libc::SYS_add_key, "the kernel's keyrings are not all in namespaces"),
    eperm("request_key", libc::SYS_request_key, "the same, and it may start a program on the host"),
    eperm("keyctl", libc::SYS_keyctl, "the kernel's keyrings are not all in namespaces"),
    eperm("process_vm_readv", libc::SYS_process_vm_readv, "reads another process without stopping it"),
    eperm("process_vm_writev", libc::SYS_process_vm_writev, "writes another process"),
    eperm("process_mrelease", libc::SYS_process_mrelease, "frees another process's memory"),
    eperm("kcmp", libc::SYS_kcmp, "compares kernel objects: leaks their order in memory"),
    eperm("pidfd_getfd", libc::SYS_pidfd_getfd, "takes a descriptor out of another process"),
    eperm("name_to_handle_at", libc::SYS_name_to_handle_at, "file handles outlive every path rule"),
    eperm("open_by_handle_at", libc::SYS_open_by_handle_at, "opens a file by handle, past every path rule"),
    eperm("fanotify_init", libc::SYS_fanotify_init, "watches whole file systems"),
    eperm("fanotify_mark", libc::SYS_fanotify_mark, "watches whole file systems"),
    eperm("swapon", libc::SYS_swapon, "the machine's swap"),
    eperm("swapoff", libc::SYS_swapoff, "the machine's swap"),
    eperm("reboot", libc::SYS_reboot, "ends the machine, or in a PID namespace its init"),
    eperm("kexec_load", libc::SYS_kexec_load, "replaces the kernel"),
    eperm("kexec_file_load", libc::SYS_kexec_file_load, "replaces the kernel"),
    eperm("init_module", libc::SYS_init_module, "loads a kernel module"),
    eperm("finit_module", libc::SYS_finit_module, "loads a kernel module"),
    eperm("delete_module", libc::SYS_delete_module, "removes a kernel module"),
    eperm("acct", libc::SYS_acct, "process accounting of the machine"),
    eperm("quotactl", libc::SYS_quotactl, "disk quotas of the machine"),
    eperm("quotactl_fd", libc::SYS_quotactl_fd, "disk quotas of the machine"),
    eperm("settimeofday", libc::SYS_settimeofday, "sets the machine's clock"),
    eperm("clock_settime", libc::SYS_clock_settime, "sets the machine's clock"),
    eperm("adjtimex", libc::SYS_adjtimex, "steers the machine's clock"),
    eperm("clock_adjtime", libc::SYS_clock_adjtime, "steers the machine's clock"),
    eperm("sethostname", libc::SYS_sethostname, "the name is given by the host"),
    eperm("setdomainname", libc::SYS_setdomainname, "the name is given by the host"),
    eperm("iopl", libc::SYS_iopl, "I/O ports"),
    eperm("ioperm", libc::SYS_ioperm, "I/O ports"),
    eperm(
        "modify_ldt",
        libc::SYS_modify_ldt,
        "16-bit segments: a long line of kernel bugs, used by no tool here",
    ),
    eperm("syslog", libc::SYS_syslog, "the kernel's log"),
    eperm("vhangup", libc::SYS_vhangup, "hangs up terminals"),
    eperm("lookup_dcookie", libc::SYS_lookup_dcookie, "names files by number"),
    eperm("mbind", libc::SYS_mbind, "places memory on NUMA nodes; a machine-wide matter"),
    eperm("set_mempolicy", libc::SYS_set_mempolicy, "places memory on NUMA nodes"),
    eperm("set_mempolicy_home_node", SET_MEMPOLICY_HOME_NODE, "places memory on NUMA nodes"),
    eperm("migrate_pages", libc::SYS_migrate_pages, "moves memory between NUMA nodes"),
    eperm("move_pages", libc::SYS_move_pages, "moves memory between NUMA nodes"),
    eperm("lsm_set_self_attr", LSM_SET_SELF_ATTR, "changes the caller's own security label"),
];

const AIO: &str = "the machine has one number of asynchronous I/O contexts (fs.aio-max-nr) for all users, and no limit \
                   for one of them; programs fall back as on a kernel without the calls";
const IO_PGETEVENTS: libc::c_long = 333;
const SET_MEMPOLICY_HOME_NODE: libc::c_long = 450;
const STATMOUNT: libc::c_long = 457;
const LISTMOUNT: libc::c_long = 458;
const LSM_SET_SELF_ATTR: libc::c_long = 460;
const OPEN_TREE_ATTR: libc::c_long = 467;

const fn eperm(name: &'static str, number: libc::c_long, why: &'static str) -> Rule {
    refuse(name, number, libc::EPERM, why)
}
