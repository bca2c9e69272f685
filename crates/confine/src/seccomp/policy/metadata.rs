//! Rules for changes that Landlock doesn't cover: permissions, owners and times of files. In a sandbox without namespaces
//! the supervisor is asked, and makes the change if it is to a file of the sandbox's ([`crate::supervised`]).

use super::{Rule, ask};

/// Rules of this filter. It allows everything that no rule names; the policy below it decides about that.
pub const RULES: &[Rule] = &[
    ask("chmod", libc::SYS_chmod, "permissions, by path; older programs"),
    ask("fchmod", libc::SYS_fchmod, "permissions, by descriptor: one that was opened for reading is enough"),
    ask("chown", libc::SYS_chown, "the owner, by path; older programs"),
    ask("fchown", libc::SYS_fchown, "the owner, by descriptor"),
    ask("lchown", libc::SYS_lchown, "the owner of a link"),
    ask("utime", libc::SYS_utime, "times, by path; older programs"),
    ask("utimes", libc::SYS_utimes, "times, by path; older programs"),
    ask("fchownat", libc::SYS_fchownat, "the owner, below a directory"),
    ask("futimesat", libc::SYS_futimesat, "times, below a directory; older programs"),
    ask("fchmodat", libc::SYS_fchmodat, "permissions, below a directory"),
    ask("utimensat", libc::SYS_utimensat, "times, below a directory or by descriptor"),
    ask("fchmodat2", FCHMODAT2, "permissions, with flags"),
];

/// System call number of `fchmodat2`; the C library doesn't name it everywhere.
pub(crate) const FCHMODAT2: libc::c_long = 452;
