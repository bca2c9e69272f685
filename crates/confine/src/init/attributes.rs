//! Sets extended attributes on behalf of programs ([`crate::seccomp::policy::guard`]).
//!
//! The name lies in memory, where no filter sees it. User attributes are charged to the sandbox, or lie on a disk. The
//! kernel keeps access control lists (`system.posix_acl_access`, up to 64 KiB for each file) in memory that it charges to
//! nothing, so these are refused, as by a file system that has none.

use super::caller::{self, open_path, read_memory, read_string};
use crate::kernel::ask::{self, SeccompNotification};
use crate::wall;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{OFlags, XattrFlags, fsetxattr, setxattr};
use rustix::io::Errno;

/// The longest name, its NUL included (`XATTR_NAME_MAX`).
const LONGEST_NAME: usize = 256;
/// `XATTR_SIZE_MAX`.
const LONGEST_VALUE: u64 = 65_536;

/// Arguments of one call.
struct SetxattrCall {
    target: XattrTarget,
    name: Vec<u8>,
    value: Vec<u8>,
    flags: XattrFlags,
}

enum XattrTarget {
    /// Target of a path, opened with `O_PATH`.
    Path(OwnedFd),
    Descriptor(OwnedFd),
}

/// Answers one question, in a worker.
pub(super) fn answer(listener: BorrowedFd<'_>, question: &SeccompNotification) {
    caller::answer(listener, question, SetxattrCall::take, SetxattrCall::fulfil);
}

// === impl SetxattrCall ===

impl SetxattrCall {
    fn take(question: &SeccompNotification) -> Result<Self, Errno> {
        let [target, name, value, length, flags, _] = question.arguments;
        if length > LONGEST_VALUE {
            return Err(Errno::TOOBIG);
        }
        let name = read_string(question.thread, name, LONGEST_NAME, Errno::RANGE)?;
        wall!(UserAttributes: may_be_set(&name)?, else ());
        let value = match usize::try_from(length) {
            Ok(0) => Vec::new(),
            Ok(length) => read_memory(question.thread, value, length)?,
            Err(_) => return Err(Errno::TOOBIG),
        };
        let target = match i64::from(question.number) {
            libc::SYS_fsetxattr => {
                XattrTarget::Descriptor(ask::take_descriptor(question.thread, (target as u32).cast_signed())?)
            }
            libc::SYS_lsetxattr => XattrTarget::Path(open_path(question.thread, target, OFlags::NOFOLLOW)?),
            _ => XattrTarget::Path(open_path(question.thread, target, OFlags::empty())?),
        };
        Ok(Self { target, name, value, flags: XattrFlags::from_bits_retain(flags as u32) })
    }

    fn fulfil(&self) -> Result<(), Errno> {
        let Self { target, name, value, flags } = self;
        match target {
            // The name in `/proc` is a link that leads to exactly what was opened.
            XattrTarget::Path(file) => {
                setxattr(format!("/proc/self/fd/{}", file.as_raw_fd()), &name[..], value, *flags)
            }
            XattrTarget::Descriptor(file) => fsetxattr(file, &name[..], value, *flags),
        }
    }
}

/// # Errors
/// The kernel's own for attributes that take a capability; [`Errno::OPNOTSUPP`] for all others but the user's.
fn may_be_set(name: &[u8]) -> Result<(), Errno> {
    match name {
        name if name.starts_with(b"user.") => Ok(()),
        name if [&b"security."[..], b"trusted."].iter().any(|prefix| name.starts_with(prefix)) => {
            Err(Errno::PERM)
        }
        _ => Err(Errno::OPNOTSUPP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_user_attributes_may_be_set() {
        let answers = [
            (&b"user.mime_type"[..], Ok(())),
            (b"security.capability", Err(Errno::PERM)),
            (b"trusted.overlay.opaque", Err(Errno::PERM)),
            (b"system.posix_acl_access", Err(Errno::OPNOTSUPP)),
            (b"system.posix_acl_default", Err(Errno::OPNOTSUPP)),
            (b"", Err(Errno::OPNOTSUPP)),
        ];
        for (name, answer) in answers {
            assert_eq!(may_be_set(name), answer, "{name:?}");
        }
    }
}
