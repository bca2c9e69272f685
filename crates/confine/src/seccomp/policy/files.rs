//! Rules for files and directories. Mounts and Landlock restrict paths. These rules check arguments, so that no file is
//! made that gives its owner's rights to the user that runs it (set-id bits).

use super::{Condition, Rule, allow, allow_if, is, is_not, refuse, without};

pub(super) const RULES: &[Rule] = &[
    allow("read", libc::SYS_read, "reads a descriptor"),
    allow("write", libc::SYS_write, "writes a descriptor"),
    allow_if(
        "open",
        libc::SYS_open,
        &[&[without(1, CREATING)], &[without(2, SET_ID)]],
        libc::EPERM,
        "opens a path; older programs; no set-id file is made",
    ),
    allow("close", libc::SYS_close, "closes a descriptor"),
    allow("stat", libc::SYS_stat, "looks at a path; older programs"),
    allow("fstat", libc::SYS_fstat, "looks at a descriptor"),
    allow("lstat", libc::SYS_lstat, "looks at a path itself; older programs"),
    allow("lseek", libc::SYS_lseek, "moves in a file"),
    allow("pread64", libc::SYS_pread64, "reads at an offset"),
    allow("pwrite64", libc::SYS_pwrite64, "writes at an offset"),
    allow("readv", libc::SYS_readv, "reads into several buffers"),
    allow("writev", libc::SYS_writev, "writes from several buffers"),
    allow("preadv", libc::SYS_preadv, "reads into several buffers at an offset"),
    allow("pwritev", libc::SYS_pwritev, "writes from several buffers at an offset"),
    allow_if("preadv2", libc::SYS_preadv2, WAITING, libc::EOPNOTSUPP, CACHED),
    allow_if("pwritev2", libc::SYS_pwritev2, WAITING, libc::EOPNOTSUPP, CACHED),
    allow("access", libc::SYS_access, "asks for permissions; older programs"),
    allow("faccessat", libc::SYS_faccessat, "asks for permissions below a directory"),
    allow("faccessat2", libc::SYS_faccessat2, "the same with flags"),
    allow("pipe", libc::SYS_pipe, "makes a pipe; older programs"),
    allow("pipe2", libc::SYS_pipe2, "makes a pipe with flags"),
    allow("select", libc::SYS_select, "waits for descriptors; older programs"),
    allow("pselect6", libc::SYS_pselect6, "waits for descriptors with a signal mask"),
    allow("poll", libc::SYS_poll, "waits for descriptors"),
    allow("ppoll", libc::SYS_ppoll, "waits for descriptors with a signal mask"),
    allow("epoll_create", libc::SYS_epoll_create, "makes an event queue; older programs"),
    allow("epoll_create1", libc::SYS_epoll_create1, "makes an event queue"),
    allow("epoll_ctl", libc::SYS_epoll_ctl, "fills an event queue"),
    allow("epoll_wait", libc::SYS_epoll_wait, "waits on an event queue"),
    allow("epoll_pwait", libc::SYS_epoll_pwait, "waits on an event queue with a signal mask"),
    allow("epoll_pwait2", libc::SYS_epoll_pwait2, "the same with nanoseconds"),
    allow("eventfd", libc::SYS_eventfd, "makes a counter to wait on; older programs"),
    allow("eventfd2", libc::SYS_eventfd2, "makes a counter to wait on"),
    allow("dup", libc::SYS_dup, "copies a descriptor"),
    allow("dup2", libc::SYS_dup2, "copies a descriptor to a number"),
    allow("dup3", libc::SYS_dup3, "the same with flags"),
    allow_if(
        "fcntl",
        libc::SYS_fcntl,
        &[&[
            is_not(1, F_SETLEASE),
            is_not(1, F_NOTIFY),
            is_not(1, F_SETDELEG),
            is_not(1, F_OFD_GETLK),
            is_not(1, F_OFD_SETLK),
            is_not(1, F_OFD_SETLKW),
        ]],
        libc::EINVAL,
        "flags and locks of a descriptor; no lease or delegation, for which the host's open would wait, and no directory \
         notification of what others do: refused as by a file system that has neither; no locks of open files, which PID 1 \
         couldn't tell from those of the host: refused as by an older kernel",
    ),
    allow("flock", libc::SYS_flock, "locks a file"),
    allow("fsync", libc::SYS_fsync, "makes a file durable"),
    allow("fdatasync", libc::SYS_fdatasync, "makes a file's data durable"),
    allow("sync_file_range", libc::SYS_sync_file_range, "starts write-back of part of a file"),
    allow("truncate", libc::SYS_truncate, "sets a file's length by path"),
    allow("ftruncate", libc::SYS_ftruncate, "sets a file's length"),
    allow_if(
        "fallocate",
        libc::SYS_fallocate,
        &[&[is(1, PUNCHING)]],
        libc::EOPNOTSUPP,
        "gives space of a file back; reserves none by itself, because one call could take the whole disk",
    ),
    allow_if(
        "fadvise64",
        libc::SYS_fadvise64,
        &[&[is_not(3, libc::POSIX_FADV_DONTNEED as u32)]],
        0,
        "announces how a file will be read; the advice to drop it from the cache succeeds without effect, because others \
         may use the file",
    ),
    allow("readahead", libc::SYS_readahead, "reads a file into the cache"),
    allow("getdents", libc::SYS_getdents, "lists a directory; older programs"),
    allow("getdents64", libc::SYS_getdents64, "lists a directory"),
    allow("getcwd", libc::SYS_getcwd, "names the working directory"),
    allow("chdir", libc::SYS_chdir, "changes the working directory"),
    allow("fchdir", libc::SYS_fchdir, "changes the working directory by descriptor"),
    allow("rename", libc::SYS_rename, "renames; older programs"),
    allow("renameat", libc::SYS_renameat, "renames below directories"),
    allow_if(
        "renameat2",
        libc::SYS_renameat2,
        &[&[without(4, libc::RENAME_WHITEOUT)]],
        libc::EINVAL,
        "renames with flags; leaves no whiteout behind, which others would take for a deletion",
    ),
    allow("mkdir", libc::SYS_mkdir, "makes a directory; older programs"),
    allow("mkdirat", libc::SYS_mkdirat, "makes a directory"),
    allow("rmdir", libc::SYS_rmdir, "removes a directory"),
    allow_if(
        "creat",
        libc::SYS_creat,
        &[&[without(1, SET_ID)]],
        libc::EPERM,
        "makes a file; older programs; none that is set-id",
    ),
    allow("link", libc::SYS_link, "makes a hard link; older programs"),
    allow("linkat", libc::SYS_linkat, "makes a hard link"),
    allow("unlink", libc::SYS_unlink, "removes a name; older programs"),
    allow("unlinkat", libc::SYS_unlinkat, "removes a name"),
    allow("symlink", libc::SYS_symlink, "makes a symbolic link; older programs"),
    allow("symlinkat", libc::SYS_symlinkat, "makes a symbolic link"),
    allow("readlink", libc::SYS_readlink, "reads a symbolic link; older programs"),
    allow("readlinkat", libc::SYS_readlinkat, "reads a symbolic link"),
    allow_if(
        "chmod",
        libc::SYS_chmod,
        &[&[without(1, SET_ID)]],
        libc::EPERM,
        "sets permission bits; older programs; not the set-id bits",
    ),
    allow_if(
        "fchmod",
        libc::SYS_fchmod,
        &[&[without(1, SET_ID)]],
        libc::EPERM,
        "sets permission bits by descriptor; not the set-id bits",
    ),
    allow_if(
        "fchmodat",
        libc::SYS_fchmodat,
        &[&[without(2, SET_ID)]],
        libc::EPERM,
        "sets permission bits; not the set-id bits",
    ),
    allow_if(
        "fchmodat2",
        FCHMODAT2,
        &[&[without(2, SET_ID)]],
        libc::EPERM,
        "sets permission bits, with flags; not the set-id bits",
    ),
    allow("chown", libc::SYS_chown, "to the own user, as cp -p and tar do; no other owner exists here"),
    allow("fchown", libc::SYS_fchown, "the same by descriptor"),
    allow("lchown", libc::SYS_lchown, "the same for a link"),
    allow("fchownat", libc::SYS_fchownat, "the same below a directory"),
    allow("umask", libc::SYS_umask, "sets the mask for new files"),
    allow("utime", libc::SYS_utime, "sets file times; older programs"),
    allow("utimes", libc::SYS_utimes, "sets file times; older programs"),
    allow("futimesat", libc::SYS_futimesat, "sets file times; older programs"),
    allow("utimensat", libc::SYS_utimensat, "sets file times"),
    allow_if(
        "mknod",
        libc::SYS_mknod,
        &[&[without(1, SET_ID)]],
        libc::EPERM,
        "makes FIFOs, none set-id; devices need a capability that no process here has",
    ),
    allow_if(
        "mknodat",
        libc::SYS_mknodat,
        &[&[without(2, SET_ID)]],
        libc::EPERM,
        "the same below a directory",
    ),
    allow("statfs", libc::SYS_statfs, "asks how full a file system is"),
    allow("fstatfs", libc::SYS_fstatfs, "the same by descriptor"),
    allow_if(
        "openat",
        libc::SYS_openat,
        &[&[without(2, CREATING)], &[without(3, SET_ID)]],
        libc::EPERM,
        "opens a path below a directory; no set-id file is made",
    ),
    allow("newfstatat", libc::SYS_newfstatat, "looks at a path"),
    allow("statx", libc::SYS_statx, "looks at a path in detail"),
    allow("sendfile", libc::SYS_sendfile, "copies between descriptors"),
    allow("splice", libc::SYS_splice, "moves pages through a pipe"),
    allow("tee", libc::SYS_tee, "copies pages between pipes"),
    allow("vmsplice", libc::SYS_vmsplice, "maps memory into a pipe"),
    allow("copy_file_range", libc::SYS_copy_file_range, "copies between files"),
    allow("close_range", libc::SYS_close_range, "closes many descriptors"),
    allow("inotify_init", libc::SYS_inotify_init, "watches files; older programs"),
    allow("inotify_init1", libc::SYS_inotify_init1, "watches files, as test runners do"),
    allow(
        "inotify_add_watch",
        libc::SYS_inotify_add_watch,
        "adds a watched file; the guard has PID 1 decide which",
    ),
    allow("inotify_rm_watch", libc::SYS_inotify_rm_watch, "removes a watched file"),
    allow("setxattr", libc::SYS_setxattr, "user attributes; the guard has PID 1 decide which"),
    allow("lsetxattr", libc::SYS_lsetxattr, "the same for a link"),
    allow("fsetxattr", libc::SYS_fsetxattr, "the same by descriptor"),
    allow("getxattr", libc::SYS_getxattr, "reads an attribute, as ls does"),
    allow("lgetxattr", libc::SYS_lgetxattr, "the same for a link"),
    allow("fgetxattr", libc::SYS_fgetxattr, "the same by descriptor"),
    allow("listxattr", libc::SYS_listxattr, "lists attributes"),
    allow("llistxattr", libc::SYS_llistxattr, "the same for a link"),
    allow("flistxattr", libc::SYS_flistxattr, "the same by descriptor"),
    allow("removexattr", libc::SYS_removexattr, "removes a user attribute"),
    allow("lremovexattr", libc::SYS_lremovexattr, "the same for a link"),
    allow("fremovexattr", libc::SYS_fremovexattr, "the same by descriptor"),
    refuse(
        "cachestat",
        CACHESTAT,
        libc::ENOSYS,
        "tells what part of a file is cached, and so whether others use it; few programs know the call",
    ),
    allow("ioprio_get", libc::SYS_ioprio_get, "reads the caller's own I/O priority"),
    allow_if(
        "ioprio_set",
        libc::SYS_ioprio_set,
        &[&[is(0, IOPRIO_WHO_PROCESS), is_not(1, 1)]],
        libc::EPERM,
        "lowers the caller's I/O priority; raising needs a capability; not that of PID 1",
    ),
];

pub(super) const OPENAT2: &[Rule] =
    &[allow("openat2", libc::SYS_openat2, "opens a path that must not lead out of a directory")];

/// Condition that `RWF_NOWAIT` is not set.
const WAITING: &[&[Condition]] = &[&[without(5, RWF_NOWAIT)]];
const CACHED: &str = "several buffers at an offset, with flags; none by which a read succeeds only if others have used the file";
const RWF_NOWAIT: u32 = 8;
/// Set-user-id and set-group-id. They do nothing inside, and in a directory that was given to the sandbox they would be
/// there for others to use, when the sandbox is long gone: the files are its owner's.
pub(super) const PUNCHING: u32 = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as u32;
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
/// The flags with which opening makes a file (`__O_TMPFILE` without the bit that means a directory).
const CREATING: u32 = libc::O_CREAT as u32 | (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;
const IOPRIO_WHO_PROCESS: u32 = 1;
pub(super) const F_SETLEASE: u32 = 1024;
pub(super) const F_NOTIFY: u32 = 1026;
const F_OFD_GETLK: u32 = libc::F_OFD_GETLK as u32;
const F_OFD_SETLK: u32 = libc::F_OFD_SETLK as u32;
const F_OFD_SETLKW: u32 = libc::F_OFD_SETLKW as u32;
/// Delegations, since Linux 6.19.
pub(super) const F_SETDELEG: u32 = 1040;
const CACHESTAT: libc::c_long = 451;
const FCHMODAT2: libc::c_long = 452;
