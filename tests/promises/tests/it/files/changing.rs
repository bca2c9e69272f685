//! FS2: changing read-only mounts, the host's programs, and the sandbox's own settings.

use crate::case::{Case, ControlPlacement, HERE, args, words};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{EACCES, EPERM, EROFS, EXDEV, O_APPEND, O_CREAT, O_EXCL, O_RDWR, O_TMPFILE, O_TRUNC, O_WRONLY};

/// Errnos that refuse a change.
pub(super) const UNCHANGEABLE: &[i32] = &[EROFS, EACCES, EPERM, EXDEV];

/// Files that belong to the sandbox's user, in a root that is read-only.
const OWN_FILES: [&str; 5] =
    ["/etc/passwd", "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/usr/bin/env"];

/// Files of that root for the attempts to remove.
const REMOVED: [&str; 2] = ["/etc/group", "/usr/bin/sh"];

/// Directories in which no entry can be created.
const CLOSED: [&str; 8] = ["", "/usr", "/usr/bin", "/etc", "/dev", "/lent", "/home", "/run/belljar"];

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let case =
        |what: &str, name: &str, arguments| Case::call("FS2", what, name, arguments).fails(UNCHANGEABLE);
    let mut cases = of_lent(place);
    for path in OWN_FILES {
        let file = place.path(path);
        let flags = O_WRONLY | O_APPEND;
        cases.push(case(&format!("append to {path}"), "openat", args![HERE, &file, flags, 0]));
        cases.push(case(&format!("cut {path} off"), "truncate", args![&file, 1]));
        cases.push(case(&format!("rename {path}"), "rename", args![&file, format!("{file}~")]));
    }
    for path in REMOVED {
        cases.push(case(&format!("remove {path}"), "unlink", args![place.path(path)]));
    }
    // The cover of a kernel file or directory belongs to the host or to a shared root, so others could read its times.
    for path in ["/proc/keys", "/proc/fs"] {
        let now = case(&format!("times of {path}"), "utimensat", args![HERE, path, 0, 0]);
        cases.push(now.by(ControlPlacement::Root));
    }
    for directory in CLOSED {
        let name = format!("{}/{}", place.path(directory), scene.mark);
        let what = format!("a new file in {directory}/");
        cases.push(case(&what, "openat", args![HERE, &name, O_WRONLY | O_CREAT | O_EXCL, 0o600]));
        let what = format!("a new directory in {directory}/");
        cases.push(case(&what, "mkdirat", args![HERE, name + "d", 0o700]));
    }
    cases
}

/// Returns every kind of change to a read-only mount.
fn of_lent(place: &AttemptPlace) -> Vec<Case> {
    let lent = |below: &str| place.path(&format!("/lent/{below}"));
    let open = |below: &str, flags: i32| args![HERE, lent(below), flags, 0o600];
    let case =
        |what: &str, name: &str, arguments| Case::call("FS2", what, name, arguments).fails(UNCHANGEABLE);
    vec![
        case("append to a lent file", "openat", open("append/file", O_WRONLY | O_APPEND)),
        case("open a lent file to read and write", "open", args![lent("write/file"), O_RDWR, 0]),
        case("empty a lent file as it opens", "openat", open("truncate/file", O_WRONLY | O_TRUNC)),
        case("cut a lent file off", "truncate", args![lent("cut/file"), 1]),
        case("remove a lent file", "unlinkat", args![HERE, lent("unlink/file"), 0]),
        case("remove a lent file", "unlink", args![lent("unlink/other")]),
        case("swap", "renameat2", args![HERE, lent("rename/file"), HERE, lent("rename/other"), 2]),
        case("rename", "renameat", args![HERE, lent("rename/file"), HERE, lent("rename/new")]),
        case("one over another", "rename", args![lent("replace/file"), lent("replace/other")]),
        case("make executable", "fchmodat", args![HERE, lent("chmod/file"), 0o755]),
        case("make executable", "fchmodat2", args![HERE, lent("chmod/file"), 0o711, 0]),
        case("make executable", "chmod", args![lent("chmod/other"), 0o755]),
        case("owner", "chown", args![lent("chown/file"), -1, -1]),
        case("owner", "lchown", args![lent("chown/file"), -1, -1]),
        case("owner", "fchownat", args![HERE, lent("chown/other"), -1, -1, 0]),
        case("attribute", "setxattr", args![lent("xattr/file"), "user.mark", "x", 1, 0]),
        case("attribute", "lsetxattr", args![lent("xattr/other"), "user.mark", "x", 1, 0]),
        case("times", "utimensat", args![HERE, lent("times/file"), words(args![1, 0, 1, 0]), 0]),
        case("times", "utimes", args![lent("times/other"), words(args![1, 0, 1, 0])]),
        case("times", "utime", args![lent("times/other"), words(args![1, 1])]),
        case("times", "futimesat", args![HERE, lent("times/other"), words(args![1, 0, 1, 0])]),
        case("new file", "openat", open("create/new", O_WRONLY | O_CREAT)),
        case("new file", "creat", args![lent("create/newer"), 0o600]),
        case("file without a name", "openat", open("create", O_WRONLY | O_TMPFILE)).fails(UNNAMED),
        case("new directory", "mkdir", args![lent("mkdir/new"), 0o700]),
        case("symbolic link", "symlinkat", args!["target", HERE, lent("symlink/new")]),
        case("symbolic link", "symlink", args!["target", lent("symlink/newer")]),
        case("FIFO", "mknodat", args![HERE, lent("mknod/new"), libc::S_IFIFO | 0o600, 0]),
        case("FIFO", "mknod", args![lent("mknod/newer"), libc::S_IFIFO | 0o600, 0]),
        case("hard link", "linkat", args![HERE, lent("link/file"), HERE, lent("link/new"), 0]),
        case("hard link", "link", args![lent("link/file"), lent("link/newer")]),
    ]
}

/// Errnos for unnamed files. An overlay without a writable layer doesn't support them.
const UNNAMED: &[i32] = &[EROFS, EACCES, EPERM, libc::EOPNOTSUPP];
