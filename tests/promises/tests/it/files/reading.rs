//! FS1: reading and listing files that only the host may see.

use crate::case::{Case, ControlPlacement, HERE, InsideExpectation, OutsideExpectation, Script, args, room};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{EACCES, ENOENT, ENOTDIR, O_DIRECTORY, O_RDONLY};
use std::os::unix::fs::MetadataExt;

/// Errnos for a path that doesn't exist or can't be resolved.
pub(super) const NOT_THERE: &[i32] = &[ENOENT, EACCES, ENOTDIR];

/// Files of many hosts that a sandbox must not show.
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

/// Directories of the host that don't exist inside.
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

pub(crate) fn cases(scene: &PreparedHost<'_>, _: &AttemptPlace) -> Vec<Case> {
    let mut cases: Vec<Case> = scene
        .secrets
        .iter()
        .map(|path| {
            let path = path.display().to_string();
            let what = format!("read {}", path.replace(&scene.path(""), "~/").replace(&scene.mark, "…"));
            let control =
                if path.starts_with("/root") { ControlPlacement::Root } else { ControlPlacement::User };
            Case::denied("FS1", what, read(&path)).fails(NOT_THERE).by(control)
        })
        .collect();
    let there = |path: &&str| std::fs::symlink_metadata(path).is_ok();
    // An image has files of its own at the same paths, and a control group directory.
    let may_be_there =
        |path: &str| scene.engine.is_some() && (!path.starts_with("/sys/") || path == "/sys/fs/cgroup");
    cases.extend(HOST_FILES.into_iter().filter(there).map(|path| {
        match may_be_there(path) {
            true => other_than_the_hosts(path),
            false => Case::denied("FS1", format!("read {path}"), read(path))
                .fails(NOT_THERE)
                .by(ControlPlacement::Root),
        }
    }));
    cases.extend(HOST_DIRECTORIES.into_iter().filter(there).map(|path| {
        match may_be_there(path) {
            true => other_than_the_hosts(path),
            false => Case::denied("FS1", format!("list {path}"), list(path))
                .fails(NOT_THERE)
                .by(ControlPlacement::Root),
        }
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

/// Returns a case in which the file at that path must differ from the host's.
fn other_than_the_hosts(path: &str) -> Case {
    let metadata = std::fs::metadata(path).unwrap();
    // struct stat begins with device and inode.
    let bytes = [metadata.dev().to_ne_bytes(), metadata.ino().to_ne_bytes()].concat();
    let hosts: String = bytes.into_iter().map(char::from).collect();
    let hosts: &'static str = Box::leak(hosts.trim_end_matches('\0').to_owned().into_boxed_str());
    Case::call("FS1", &format!("the host's {path}"), "newfstatat", args![HERE, path, room(144), 0])
        .inside(InsideExpectation::OtherThan(hosts))
        .outside(OutsideExpectation::Tells(hosts))
        .by(ControlPlacement::Root)
}

/// Returns a script that opens a file and reads its beginning.
pub(crate) fn read(path: &str) -> Script {
    let mut script = Script::default();
    let file = script.call("openat", args![HERE, path, O_RDONLY, 0]);
    script.call("read", args![file, room(256), 256]);
    script
}

/// Returns a script that opens a directory and lists it.
pub(crate) fn list(path: &str) -> Script {
    let mut script = Script::default();
    let directory = script.call("openat", args![HERE, path, O_RDONLY | O_DIRECTORY, 0]);
    script.call("getdents64", args![directory, room(2048), 2048]);
    script
}
