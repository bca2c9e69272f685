//! FS1: reading and listing what only the host may see.

use crate::case::{Case, Control, HERE, Script, args, room};
use crate::scene::Scene;
use crate::way::Place;
use libc::{EACCES, ENOENT, ENOTDIR, O_DIRECTORY, O_RDONLY};

/// Refusals of a path that isn't there, or that leads nowhere.
pub(super) const NOT_THERE: &[i32] = &[ENOENT, EACCES, ENOTDIR];

/// Files that many hosts have and that are nobody's business inside.
const HOST_FILES: [&str; 14] = [
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/hostname",
    "/etc/machine-id",
    "/etc/fstab",
    "/etc/crontab",
    "/etc/environment",
    "/root/.bashrc",
    "/root/.profile",
    "/var/lib/dpkg/status",
    "/var/log/dpkg.log",
    "/sys/kernel/notes",
    "/sys/class/net/lo/address",
];

/// Directories of the host that are not there inside.
const HOST_DIRECTORIES: [&str; 12] = [
    "/root",
    "/var",
    "/var/lib",
    "/var/log",
    "/run/lock",
    "/sys",
    "/sys/fs/cgroup",
    "/sys/class/net",
    "/boot",
    "/opt",
    "/srv",
    "/mnt",
];

pub(crate) fn cases(scene: &Scene<'_>, _: &Place) -> Vec<Case> {
    let mut cases: Vec<Case> = scene
        .secrets
        .iter()
        .map(|path| {
            let path = path.display().to_string();
            let what = format!("read {}", path.replace(&scene.path(""), "~/").replace(&scene.mark, "…"));
            let control = if path.starts_with("/root") { Control::Root } else { Control::User };
            Case::denied("FS1", what, read(&path)).fails(NOT_THERE).by(control)
        })
        .collect();
    let there = |path: &&str| std::fs::symlink_metadata(path).is_ok();
    cases.extend(HOST_FILES.into_iter().filter(there).map(|path| {
        Case::denied("FS1", format!("read {path}"), read(path)).fails(NOT_THERE).by(Control::Root)
    }));
    cases.extend(HOST_DIRECTORIES.into_iter().filter(there).map(|path| {
        Case::denied("FS1", format!("list {path}"), list(path)).fails(NOT_THERE).by(Control::Root)
    }));
    let world = scene.path("");
    cases.push(Case::denied("FS1", "list the user's folder", list(&world)).fails(NOT_THERE));
    let socket = scene.path("service.sock");
    cases.push(
        Case::call("FS1", "a socket of the host's", "newfstatat", args![HERE, &socket, room(144), 0])
            .fails(NOT_THERE),
    );
    cases
}

/// Opens a file and reads its beginning.
pub(crate) fn read(path: &str) -> Script {
    let mut script = Script::default();
    let file = script.call("openat", args![HERE, path, O_RDONLY, 0]);
    script.call("read", args![file, room(256), 256]);
    script
}

/// Opens a directory and lists it.
pub(crate) fn list(path: &str) -> Script {
    let mut script = Script::default();
    let directory = script.call("openat", args![HERE, path, O_RDONLY | O_DIRECTORY, 0]);
    script.call("getdents64", args![directory, room(2048), 2048]);
    script
}
