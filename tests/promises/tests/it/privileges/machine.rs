//! PK3: calls that change the machine. Arguments are invalid throughout: the kernel rejects them if the call gets through.

use crate::case::{BAD, Case, ControlPlacement, args};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use belljar_promises::attempt::Argument;
use libc::{EBADF, EFAULT, EINVAL, ENODEV, ENOENT, ENOEXEC, ENOTBLK, ESRCH};

/// Returns calls that only a control by root can show: name, arguments, and the kernel's errnos for them.
fn senseless() -> Vec<(&'static str, Vec<Argument>, &'static [i32])> {
    vec![
        ("mount", args![BAD, BAD, BAD, 0, 0], &[EFAULT]),
        ("umount2", args![BAD, 0], &[EFAULT]),
        ("pivot_root", args![BAD, BAD], &[EFAULT]),
        ("chroot", args![BAD], &[EFAULT]),
        ("open_tree", args![-1, BAD, 1], &[EFAULT, EBADF]),
        ("move_mount", args![-1, BAD, -1, BAD, 0], &[EFAULT, EBADF]),
        ("fsopen", args![BAD, 0], &[EFAULT]),
        ("fsconfig", args![-1, 6, 0, 0, 0], &[EBADF, EINVAL]),
        ("fsmount", args![-1, 0, 0], &[EBADF]),
        ("fspick", args![-1, BAD, 0], &[EFAULT, EBADF]),
        ("mount_setattr", args![-1, BAD, 0, BAD, 32], &[EFAULT, EBADF]),
        ("swapon", args![BAD, 0], &[EFAULT]),
        ("swapoff", args![BAD], &[EFAULT]),
        ("reboot", args![0, 0, 0, 0], &[EINVAL]),
        ("init_module", args![BAD, 0, BAD], &[ENOEXEC, EFAULT]),
        ("finit_module", args![-1, BAD, 0], &[EBADF]),
        ("delete_module", args![BAD, 0], &[EFAULT]),
        ("acct", args![BAD], &[EFAULT]),
        ("quotactl", args![0x80_0007 << 8, BAD, 0, BAD], &[EFAULT, ENOENT, ENODEV, ENOTBLK, EINVAL]),
        ("quotactl_fd", args![-1, 0, 0, BAD], &[EBADF]),
        ("settimeofday", args![BAD, BAD], &[EFAULT]),
        ("clock_settime", args![0, BAD], &[EFAULT]),
        ("adjtimex", args![BAD], &[EFAULT]),
        ("clock_adjtime", args![0, BAD], &[EFAULT]),
        ("sethostname", args![BAD, 5], &[EFAULT]),
        ("setdomainname", args![BAD, 5], &[EFAULT]),
        ("iopl", args![4], &[EINVAL]),
        ("ioperm", args![-1, 1, 1], &[EINVAL]),
        ("vhangup", args![], &[]),
        ("kexec_load", args![0, u64::MAX, BAD, 0xffff_u64], &[EINVAL]),
        ("kexec_file_load", args![-1, -1, 0, BAD, 0xffff_u64], &[EINVAL, EBADF]),
        ("lookup_dcookie", args![0, BAD, 0], &[EINVAL]),
        ("migrate_pages", args![-1, 0, BAD, BAD], &[ESRCH, EFAULT, EINVAL]),
    ]
}

/// Calls that not every kernel has.
const RARE: [&str; 8] = [
    "init_module",
    "finit_module",
    "delete_module",
    "acct",
    "quotactl",
    "quotactl_fd",
    "kexec_load",
    "kexec_file_load",
];

pub(crate) fn cases(_: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let mut cases: Vec<Case> = senseless()
        .into_iter()
        .map(|(name, arguments, reaches)| {
            let case = Case::sentinel("PK3", name, arguments, reaches).by(ControlPlacement::Root);
            match name {
                // The call hangs up the caller's terminal, so there is no control.
                "vhangup" => {
                    let mut case = case.needs("a terminal to hang up");
                    case.control = ControlPlacement::None;
                    case
                }
                "lookup_dcookie" => case.needs("that call"),
                "iopl" | "ioperm" => case.needs("I/O ports"),
                _ if RARE.contains(&name) => case.needs("that call"),
                _ => case,
            }
        })
        .collect();
    // Valid calls, with controls that change only a namespace of their own.
    let free = |what: &str, name: &str, arguments| {
        Case::call("PK3", what, name, arguments).by(ControlPlacement::Free)
    };
    cases.extend([
        free("a name", "sethostname", args!["other", 5]),
        free("a domain", "setdomainname", args!["other", 5]),
    ]);
    cases
}
