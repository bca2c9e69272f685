//! FS5: devices of the host, by name and by number.

use super::reading::NOT_THERE;
use crate::case::{Case, ControlPlacement, HERE, args, room};
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use libc::{EACCES, EPERM, EROFS, S_IFBLK, S_IFCHR};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

/// Devices that a sandbox has.
const LENT: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];

/// Devices by number: memory, the kernel's log, a disk, a loop, FUSE, a tunnel, virtual machines, terminals.
const NUMBERS: [(&str, u32, u32, u32); 13] = [
    ("mem", S_IFCHR, 1, 1),
    ("null", S_IFCHR, 1, 3),
    ("kmsg", S_IFCHR, 1, 11),
    ("tty0", S_IFCHR, 4, 0),
    ("console", S_IFCHR, 5, 1),
    ("fuse", S_IFCHR, 10, 229),
    ("kvm", S_IFCHR, 10, 232),
    ("loop-control", S_IFCHR, 10, 237),
    ("tun", S_IFCHR, 10, 200),
    ("userfaultfd", S_IFCHR, 10, 126),
    ("loop0", S_IFBLK, 7, 0),
    ("vda", S_IFBLK, 254, 0),
    ("sda", S_IFBLK, 8, 0),
];

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases: Vec<Case> = devices_of_host()
        .into_iter()
        .filter(|path| !LENT.contains(&path.as_str()))
        .map(|path| {
            // Only `stat` is called: some devices start to work as soon as they are opened.
            Case::call("FS5", &path, "newfstatat", args![HERE, &path, room(144), libc::AT_SYMLINK_NOFOLLOW])
                .fails(NOT_THERE)
        })
        .collect();
    // These are the host's own files: their times are readable by others.
    for path in LENT.into_iter().filter(|path| *path != "/dev/ptmx") {
        let now = Case::call("FS5", &format!("times of {path}"), "utimensat", args![HERE, path, 0, 0]);
        cases.push(now.fails(&[EROFS]));
    }
    for (name, kind, major, minor) in NUMBERS {
        for folder in ["/workspace", "/tmp", "/dev/shm"] {
            let path = place.path(&format!("{folder}/{}-{name}", scene.mark));
            let device = args![HERE, path, kind | 0o666, libc::makedev(major, minor)];
            let case = Case::call("FS5", &format!("make {name} in {folder}"), "mknodat", device);
            cases.push(case.fails(&[EPERM, EACCES]).by(ControlPlacement::Root));
        }
    }
    cases
}

/// Returns every device in the host's `/dev`.
fn devices_of_host() -> Vec<String> {
    let mut devices = Vec::new();
    let mut pending = vec![PathBuf::from("/dev")];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
            let Ok(kind) = entry.file_type() else { continue };
            // Terminals of logged-in users come and go.
            let is_passing = entry.path().starts_with("/dev/pts") || entry.path().starts_with("/dev/shm");
            if kind.is_dir() {
                pending.push(entry.path());
            } else if (kind.is_char_device() || kind.is_block_device()) && !is_passing {
                devices.push(entry.path().display().to_string());
            }
        }
    }
    devices.sort();
    devices
}
