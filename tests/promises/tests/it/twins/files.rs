//! The program's own files: every way to create, read, change, lock, name and remove them.

use crate::case::{Case, HERE, Handle, Script, args, numbers, room, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{
    AT_REMOVEDIR, EINVAL, ENODATA, ENOSPC, ENOTTY, ENXIO, EOPNOTSUPP, O_CREAT, O_DIRECTORY, O_RDONLY, O_RDWR,
    O_TMPFILE, O_WRONLY, S_IFIFO, S_IFREG, SEEK_SET,
};

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let folder = |name: &str| place.path(&format!("/workspace/{}-{name}", scene.mark));
    vec![
        Case::twin("files, the old way", |script| the_old_way(script, &folder("old"))),
        Case::twin("reading and writing", |script| read_and_write(script, &folder("data"))),
        Case::twin("writing back", |script| {
            write_back(script, &place.path(&format!("/tmp/{}-written", scene.mark)));
        }),
        Case::twin("names", |script| names(script, &folder("names"))),
        Case::twin("metadata", |script| metadata(script, &folder("metadata"))),
        Case::twin("attributes", |script| attributes(script, &folder("attributes"))),
        Case::twin("locks and copies of descriptors", |script| locks(script, &folder("locks"))),
        Case::twin("data from descriptor to descriptor", |script| copies(script, &folder("copies"))),
        Case::twin("a file without a name gets one", |script| unnamed(script, &folder("unnamed"))),
        Case::twin("space for a file", |script| preallocated(script, &folder("preallocated"))),
        Case::twin("a file with holes", |script| sparse(script, &folder("sparse"))),
        Case::twin("names that differ in case alone", |script| case_counts(script, &folder("case"))),
        Case::twin("modes that count for nothing", |script| modes(script, &folder("modes"))),
        Case::twin("changing the mode with flags", |script| {
            script.call("creat", args![folder("flags"), 0o600]);
            script.call("fchmodat2", args![HERE, folder("flags"), 0o755, 0]);
        })
        .needs("that call"),
        Case::twin("devices", |script| devices(script, &scene.mark)),
    ]
}

fn the_old_way(s: &mut Script, folder: &str) {
    let path = |name: &str| format!("{folder}/{name}");
    s.call("mkdir", args![folder, 0o700]);
    let file = s.call("open", args![path("a"), O_CREAT | O_RDWR, 0o644]);
    s.call("write", args![file, "text", 4]);
    s.call("lseek", args![file, 0, SEEK_SET]);
    s.call("read", args![file, room(4), 4]);
    s.call("close", args![file]);
    s.call("stat", args![path("a"), room(144)]);
    s.call("access", args![path("a"), libc::R_OK]);
    s.call("truncate", args![path("a"), 2]);
    s.call("chmod", args![path("a"), 0o600]);
    s.call("chown", args![path("a"), -1, -1]);
    s.call("utime", args![path("a"), words(args![1, 1])]);
    s.call("utimes", args![path("a"), words(args![1, 0, 1, 0])]);
    s.call("futimesat", args![HERE, path("a"), words(args![1, 0, 1, 0])]);
    s.call("rename", args![path("a"), path("b")]);
    s.call("link", args![path("b"), path("c")]);
    s.call("symlink", args!["c", path("l")]);
    s.call("readlink", args![path("l"), room(8), 8]);
    s.call("lstat", args![path("l"), room(144)]);
    s.call("lchown", args![path("l"), -1, -1]);
    s.call("creat", args![path("d"), 0o600]);
    s.call("mknod", args![path("fifo"), S_IFIFO | 0o600, 0]);
    let directory = s.call("open", args![folder, O_RDONLY | O_DIRECTORY, 0]);
    s.call("getdents", args![directory, room(1024), 1024]);
    for name in ["b", "c", "d", "l", "fifo"] {
        s.call("unlink", args![path(name)]);
    }
    s.call("rmdir", args![folder]);
}

fn read_and_write(s: &mut Script, path: &str) {
    let file = s.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    let text = || words(args!["some text", 9]);
    let space = || words(args![room(9), 9]);
    s.call("pwrite64", args![file, "text", 4, 10]);
    s.call("pread64", args![file, room(4), 4, 10]);
    s.call("writev", args![file, text(), 1]);
    s.call("lseek", args![file, 0, SEEK_SET]);
    s.call("readv", args![file, space(), 1]);
    s.call("pwritev", args![file, text(), 1, 0, 0]);
    s.call("preadv", args![file, space(), 1, 0, 0]);
    s.call("pwritev2", args![file, text(), 1, 0, 0, 0]);
    s.call("preadv2", args![file, space(), 1, 0, 0, 0]);
    s.call("ftruncate", args![file, 4096]);
    s.call("fallocate", args![file, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 0, 4096]);
    s.call("fadvise64", args![file, 0, 0, 0]);
    s.call("readahead", args![file, 0, 4096]);
    s.call("fstat", args![file, room(144)]);
    s.call("fstatfs", args![file, room(120)]);
    let mapped =
        s.call("mmap", args![0, 4096, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file, 0]);
    s.call("msync", args![mapped, 4096, libc::MS_SYNC]);
    s.call("munmap", args![mapped, 4096]);
}

/// Writes back a file in memory: a disk may be busy with writes of other programs.
fn write_back(s: &mut Script, path: &str) {
    let file = s.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    s.call("pwrite64", args![file, "text", 4, 0]);
    s.call("fsync", args![file]);
    s.call("fdatasync", args![file]);
    s.call("sync_file_range", args![file, 0, 4096, 2]);
}

fn names(s: &mut Script, folder: &str) {
    s.call("mkdirat", args![HERE, folder, 0o700]);
    s.call("chdir", args![folder]);
    s.call("getcwd", args![room(4096), 4096]);
    s.call("mkdirat", args![HERE, "below", 0o700]);
    let below = s.call("openat", args![HERE, "below", O_RDONLY | O_DIRECTORY, 0]);
    s.call("fchdir", args![below]);
    s.call("openat", args![HERE, "a", O_CREAT | O_WRONLY, 0o600]);
    s.call("openat", args![HERE, "b", O_CREAT | O_WRONLY, 0o600]);
    s.call("linkat", args![HERE, "a", HERE, "linked", 0]);
    s.call("renameat", args![below, "linked", below, "renamed"]);
    // Rename without replacing a file (`RENAME_NOREPLACE`), and exchange two files.
    s.call("renameat2", args![HERE, "renamed", HERE, "again", 1]);
    s.call("renameat2", args![HERE, "a", HERE, "b", 2]);
    s.call("symlinkat", args!["a", below, "link"]);
    s.call("readlinkat", args![HERE, "link", room(8), 8]);
    s.call("mknodat", args![HERE, "fifo", S_IFIFO | 0o600, 0]);
    s.call("mknodat", args![HERE, "regular", S_IFREG | 0o600, 0]);
    s.call("getdents64", args![below, room(1024), 1024]);
    for name in ["a", "b", "again", "link", "fifo", "regular"] {
        s.call("unlinkat", args![below, name, 0]);
    }
    s.call("unlinkat", args![HERE, folder.to_owned() + "/below", AT_REMOVEDIR]);
}

fn metadata(s: &mut Script, path: &str) {
    s.call("umask", args![0o022]);
    let file = s.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o666]);
    s.call("newfstatat", args![HERE, path, room(144), 0]);
    s.call("statx", args![HERE, path, 0, 0xfff, room(256)]);
    s.call("faccessat", args![HERE, path, libc::R_OK]);
    s.call("faccessat2", args![HERE, path, libc::W_OK, 0]);
    s.call("fchmod", args![file, 0o600]);
    s.call("fchmodat", args![HERE, path, 0o755]);
    s.call("fchown", args![file, -1, -1]);
    s.call("fchownat", args![HERE, path, -1, -1, 0]);
    s.call("utimensat", args![HERE, path, words(args![1, 0, 1, 0]), 0]);
    s.call("statfs", args![path, room(120)]);
    s.call("ioctl", args![file, libc::FIONREAD, room(4)]);
    requests(s, file);
}

/// Makes ioctl requests on a file that programs use. A file system that doesn't support one returns an error.
fn requests(s: &mut Script, file: Handle) {
    const FIGETBSZ: u32 = 2;
    const FS_IOC_GETFLAGS: u32 = 0x8008_6601;
    const FS_IOC_FSGETXATTR: u32 = 0x801c_581f;
    const FICLONE: u32 = 0x4004_9409;
    const FICLONERANGE: u32 = 0x4020_940d;
    // An overlay has no block size.
    s.call_or("ioctl", args![file, FIGETBSZ, room(4)], &[EINVAL]);
    s.call_or("ioctl", args![file, FS_IOC_GETFLAGS, room(8)], &[ENOTTY, EOPNOTSUPP]);
    s.call_or("ioctl", args![file, FS_IOC_FSGETXATTR, room(28)], &[ENOTTY, EOPNOTSUPP]);
    s.call_or("ioctl", args![file, FICLONE, file], &[EOPNOTSUPP, EINVAL]);
    s.call_or("ioctl", args![file, FICLONERANGE, words(args![file, 0, 0, 0])], &[EOPNOTSUPP, EINVAL]);
}

fn attributes(s: &mut Script, path: &str) {
    let file = s.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    s.call("setxattr", args![path, "user.a", "1", 1, 0]);
    s.call("lsetxattr", args![path, "user.b", "1", 1, 0]);
    s.call("fsetxattr", args![file, "user.c", "1", 1, 0]);
    s.call("getxattr", args![path, "user.a", room(8), 8]);
    s.call("lgetxattr", args![path, "user.b", room(8), 8]);
    s.call("fgetxattr", args![file, "user.c", room(8), 8]);
    // `ls` asks for this attribute.
    s.call_or("getxattr", args![path, "security.capability", room(64), 64], &[ENODATA, EOPNOTSUPP]);
    s.call("listxattr", args![path, room(256), 256]);
    s.call("llistxattr", args![path, room(256), 256]);
    s.call("flistxattr", args![file, room(256), 256]);
    s.call("removexattr", args![path, "user.a"]);
    s.call("lremovexattr", args![path, "user.b"]);
    s.call("fremovexattr", args![file, "user.c"]);
}

fn locks(s: &mut Script, path: &str) {
    let file = s.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    s.call("flock", args![file, libc::LOCK_EX]);
    s.call("flock", args![file, libc::LOCK_UN]);
    // struct flock: a lock to write, of the whole file
    let lock = || words(args![1, 0, 0, 0]);
    s.call("fcntl", args![file, libc::F_SETLK, lock()]);
    s.call("fcntl", args![file, libc::F_GETFL]);
    s.call("dup", args![file]);
    s.call("dup2", args![file, 100]);
    s.call("dup3", args![file, 101, libc::O_CLOEXEC]);
    s.call("close_range", args![100, 101, 0]);
}

fn copies(s: &mut Script, path: &str) {
    let from = s.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    s.call("pwrite64", args![from, "some text", 9, 0]);
    let to = s.call("openat", args![HERE, format!("{path}-to"), O_CREAT | O_RDWR, 0o600]);
    s.call("sendfile", args![to, from, 0, 4]);
    s.call("copy_file_range", args![from, 0, to, 0, 4, 0]);
    let one = s.call("pipe", args![room(8)]);
    let other = s.call("pipe2", args![room(8), libc::O_CLOEXEC]);
    s.call("vmsplice", args![one.stored(0, 4), words(args!["some text", 9]), 1, 0]);
    s.call("tee", args![one.stored(0, 0), other.stored(0, 4), 4, 0]);
    s.call("splice", args![one.stored(0, 0), 0, to, 0, 4, 0]);
}

fn unnamed(s: &mut Script, path: &str) {
    s.call("mkdir", args![path, 0o700]);
    let file = s.call("openat", args![HERE, path, O_TMPFILE | O_RDWR, 0o600]);
    s.call("write", args![file, "text", 4]);
    s.call("dup2", args![file, 100]);
    s.call(
        "linkat",
        args![HERE, "/proc/self/fd/100", HERE, format!("{path}/named"), libc::AT_SYMLINK_FOLLOW],
    );
}

fn preallocated(s: &mut Script, path: &str) {
    let file = s.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    s.call("fallocate", args![file, 0, 0, 1 << 20]);
    s.call("fallocate", args![file, libc::FALLOC_FL_KEEP_SIZE, 1 << 20, 1 << 20]);
    s.call("unlink", args![path]);
}

fn sparse(s: &mut Script, path: &str) {
    let file = s.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    s.call("ftruncate", args![file, 1_u64 << 28]);
    s.call("pwrite64", args![file, "end", 3, 1 << 27]);
    s.call("fallocate", args![file, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 0, 1 << 20]);
    s.call("lseek", args![file, 0, libc::SEEK_DATA]);
    s.call("unlink", args![path]);
}

fn case_counts(s: &mut Script, folder: &str) {
    s.call("mkdir", args![folder, 0o700]);
    for name in ["name", "Name", "NAME", "n\u{e4}me", "na me\n"] {
        let flags = O_CREAT | O_WRONLY | libc::O_EXCL;
        s.call("openat", args![HERE, format!("{folder}/{name}"), flags, 0o600]);
    }
}

/// Without `O_CREAT`, the mode is an arbitrary value in the caller's register.
fn modes(s: &mut Script, path: &str) {
    s.call("creat", args![path, 0o1755]);
    s.call("open", args![path, O_RDONLY, 0o6755]);
    s.call("openat", args![HERE, path, O_RDONLY, 0o6755]);
    s.call("open", args![path, O_CREAT | O_RDWR, 0o644]);
    s.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o644]);
    s.call("chmod", args![path, 0o1700]);
}

fn devices(s: &mut Script, mark: &str) {
    let mut open = |path: &str, flags: i32| s.call("openat", args![HERE, path, flags, 0]);
    let (null, zero, full) =
        (open("/dev/null", O_RDWR), open("/dev/zero", O_RDWR), open("/dev/full", O_RDWR));
    let (random, urandom) = (open("/dev/random", O_RDONLY), open("/dev/urandom", O_RDONLY));
    s.call("write", args![null, "x", 1]);
    s.call("read", args![zero, room(4), 4]);
    s.call_or("write", args![full, "x", 1], &[ENOSPC]);
    s.call("read", args![random, room(4), 4]);
    s.call("read", args![urandom, room(4), 4]);
    const RNDGETENTCNT: u32 = 0x8004_5200;
    s.call("ioctl", args![random, RNDGETENTCNT, room(4)]);
    s.call_or("openat", args![HERE, "/dev/tty", O_RDWR, 0], &[ENXIO]);
    s.call("openat", args![HERE, format!("/dev/shm/{mark}-twin"), O_CREAT | O_RDWR, 0o600]);
    s.call("unlink", args![format!("/dev/shm/{mark}-twin")]);
    s.call("dup2", args![null, 100]);
    s.call("openat", args![HERE, "/dev/fd/100", O_WRONLY, 0]);
    let terminal = s.call("openat", args![HERE, "/dev/ptmx", O_RDWR | libc::O_NOCTTY, 0]);
    s.call("ioctl", args![terminal, libc::TIOCSPTLCK, numbers(&[0])]);
    s.call("ioctl", args![terminal, libc::TIOCGPTN, room(4)]);
    let inner = s.call("ioctl", args![terminal, libc::TIOCGPTPEER, O_RDWR | libc::O_NOCTTY]);
    s.call("ioctl", args![inner, libc::TCGETS, room(64)]);
    s.call("write", args![terminal, "line\n", 5]);
    s.call("read", args![inner, room(8), 8]);
}
