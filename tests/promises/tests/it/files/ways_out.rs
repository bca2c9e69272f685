//! FS3: paths that might lead out: dots, links, magic links, file handles, and inherited descriptors.

use super::reading::{NOT_THERE, list, read};
use crate::case::{
    BAD, Case, ControlPlacement, HERE, InsideExpectation, OutsideExpectation, Script, args, room,
};
use crate::scene::PreparedHost;
use crate::way::{AttemptPlace, StartMethod};
use belljar_promises::attempt::Argument;
use libc::{
    EACCES, EBADF, ELOOP, ENOENT, ENOSYS, EPERM, EROFS, ETXTBSY, O_DIRECTORY, O_PATH, O_RDONLY, O_WRONLY,
};

/// Errnos for a magic link or its target.
const CLOSED: &[i32] = &[ENOENT, EACCES, EPERM, ELOOP, libc::ENOTDIR, libc::ESRCH];

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let secret = scene.path("home/secret");
    let mut cases = dots(&secret, place);
    cases.extend(links(&secret, scene, place));
    cases.extend(magic_links(&secret, scene));
    cases.extend(descriptors());
    cases.extend(handles(&secret));
    cases
}

fn dots(secret: &str, place: &AttemptPlace) -> Vec<Case> {
    let up = "/..".repeat(16);
    ["/workspace", "/tmp", "/lent", "/lent/append", "/dev/shm", "/home/agent"]
        .map(|from| {
            let path = format!("{}{up}{secret}", place.path(from));
            Case::denied("FS3", format!("up from {from}"), read(&path)).fails(NOT_THERE)
        })
        .into()
}

/// Returns cases with links that the host has in mounted folders, and links that are made inside.
fn links(secret: &str, scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases = Vec::new();
    for (folder, ways) in [("/lent", StartMethod::ALL), ("/workspace", StartMethod::GIVEN)] {
        for (link, below) in
            [("to-secret", ""), ("to-link", ""), ("to-secret-by-dots", ""), ("to-folder", "/secret")]
        {
            let path = place.path(&format!("{folder}/{link}{below}"));
            cases.push(
                Case::denied("FS3", format!("{folder}/{link}"), read(&path)).fails(NOT_THERE).only(ways),
            );
        }
    }
    for (what, target, below) in [
        ("own link", secret.to_owned(), ""),
        ("own link to a folder", scene.path("home"), "/secret"),
        ("own link up", format!("{}{secret}", "/..".repeat(16)), ""),
        ("own link through /proc", format!("/proc/self/root{secret}"), ""),
    ] {
        let name = place.path(&format!("/tmp/{}-{}", scene.mark, what.replace([' ', '/'], "-")));
        let mut script = Script::default();
        script.call("symlinkat", args![&target, HERE, &name]);
        script.prepared();
        let path = name + below;
        let file = script.call("openat", args![HERE, &path, O_RDONLY, 0]);
        script.call("read", args![file, room(256), 256]);
        cases.push(Case::denied("FS3", what, script).fails(NOT_THERE));
    }
    cases
}

fn magic_links(secret: &str, scene: &PreparedHost<'_>) -> Vec<Case> {
    let read = |what: &str, path: String| Case::denied("FS3", what, read(&path)).fails(CLOSED);
    let pid = scene.victim();
    vec![
        read("/proc/self/root", format!("/proc/self/root{secret}")),
        read("/proc/thread-self/root", format!("/proc/thread-self/root{secret}")),
        read("/proc/self/cwd", format!("/proc/self/cwd{}{secret}", "/..".repeat(16))),
        read("/proc/self/fd/7", "/proc/self/fd/7/secret".to_owned()),
        read("/dev/fd/7", "/dev/fd/7/secret".to_owned()),
        read("/proc/1/root", format!("/proc/1/root{secret}")).by(ControlPlacement::Free),
        read("/proc/1/cwd", format!("/proc/1/cwd{}{secret}", "/..".repeat(16))).by(ControlPlacement::Free),
        read("/proc/1/environ", "/proc/1/environ".to_owned()).by(ControlPlacement::Free),
        read("/proc/1/maps", "/proc/1/maps".to_owned()).by(ControlPlacement::Free).inside(
            InsideExpectation::Learns(
                // The file is readable, but the kernel shows its content to permitted processes only; it must be empty.
                |answer| answer.bytes.is_empty(),
            ),
        ),
        Case::denied("FS3", "/proc/1/fd", list("/proc/1/fd")).fails(CLOSED).by(ControlPlacement::Free),
        Case::denied("FS3", "/proc/1/map_files", list("/proc/1/map_files"))
            .fails(CLOSED)
            .by(ControlPlacement::Free),
        Case::denied("FS3", "/proc/1/ns", list("/proc/1/ns")).fails(CLOSED).by(ControlPlacement::Free),
        Case::call("FS3", "PID 1's program", "readlinkat", args![HERE, "/proc/1/exe", room(256), 256])
            .fails(CLOSED)
            .by(ControlPlacement::Free),
        read("a process of the host's, its root", format!("/proc/{pid}/root{secret}")),
        read("a process of the host's, its environment", format!("/proc/{pid}/environ")),
        Case::denied("FS3", "the probe's own program, to write", open_to_write("/proc/self/exe"))
            .fails(&[EROFS, ETXTBSY, EACCES])
            .outside(OutsideExpectation::Reaches(&[ETXTBSY])),
    ]
}

fn open_to_write(path: &str) -> Script {
    Script::one("openat", args![HERE, path, O_WRONLY, 0])
}

/// Returns a case with a directory of the host that the sandbox's parent process has left open.
fn descriptors() -> Vec<Case> {
    vec![
        Case::call("FS3", "a forgotten descriptor", "openat", args![7, "secret", O_RDONLY, 0])
            .fails(&[EBADF]),
        Case::call(
            "FS3",
            "up from a forgotten descriptor",
            "openat",
            args![7, "..", O_PATH | O_DIRECTORY, 0],
        )
        .fails(&[EBADF]),
        Case::call("FS3", "into a forgotten descriptor", "fchdir", args![7]).fails(&[EBADF]),
        Case::call("FS3", "past every rule", "openat2", args![HERE, "/", room(24), 24]).fails(&[ENOSYS]),
    ]
}

/// Returns cases with file handles: obtained on the host for the control, made up for the attempt.
fn handles(secret: &str) -> Vec<Case> {
    let mut open = Script::default();
    // struct file_handle: the capacity for the handle, its type, the handle
    let mut handle = 128_u32.to_ne_bytes().to_vec();
    handle.resize(136, 0);
    let handle = Argument::Bytes(handle);
    let named = open.call("name_to_handle_at", args![HERE, secret, handle, room(4), 0]);
    let mount = open.call("openat", args![HERE, "/tmp", O_RDONLY, 0]);
    let file = open.call("open_by_handle_at", args![mount, named.memory(2), O_RDONLY]);
    open.call("read", args![file, room(256), 256]);
    vec![
        Case::denied("FS3", "a file by its handle", open)
            .by(ControlPlacement::Root)
            .needs("handles in its file system"),
        Case::sentinel("FS3", "open_by_handle_at", args![-1, BAD, 0], &[EBADF, libc::EFAULT])
            .by(ControlPlacement::Root),
        Case::sentinel("FS3", "name_to_handle_at", args![-1, "x", BAD, BAD, 0], &[EBADF, libc::EFAULT]),
    ]
}
