//! Another local user who can write to the target swaps a directory and a link while changes are written.

use super::*;
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

/// Minimum number of attempts that write everything, that are disturbed, and of path-based writes that get out.
const ENOUGH: usize = 20;

/// Swaps `inner` with `outward`, a link that leads out of the target, until `stops` is set.
fn swap(target: &Directory, stops: &AtomicBool) {
    while !stops.load(Ordering::Relaxed) {
        rustix::fs::renameat_with(target, "inner", target, "outward", rustix::fs::RenameFlags::EXCHANGE)
            .unwrap();
        std::thread::yield_now();
    }
}

/// Returns everything in a directory that a write could change, by name.
fn state_of(directory: &Path) -> BTreeMap<std::ffi::OsString, (u32, u32, u32, Vec<u8>)> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let found = entry.metadata().unwrap();
        let content = if found.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
        (entry.file_name(), (found.mode(), found.uid(), found.gid(), content))
    });
    entries.collect()
}

/// Changes of every kind in `inner`: written, new, removed, another mode, new and removed directories, a link.
fn changes() -> Vec<(&'static Path, PathChange)> {
    let state = |kind, mode| Some(PathState { kind, mode, size: 1 });
    let file = |mode| state(FileType::RegularFile, mode);
    let directory = state(FileType::Directory, 0o755);
    let link = state(FileType::Symlink, 0o777);
    [
        ("inner/folder", None, directory, false),
        ("inner/folder/file", None, file(0o644), false),
        ("inner/link", None, link, false),
        ("inner/mode", file(0o600), file(0o755), true),
        ("inner/removed", file(0o600), None, false),
        ("inner/thrown_away", directory, None, false),
        ("inner/written", file(0o600), file(0o755), false),
    ]
    .map(|(path, before, after, same_content)| (Path::new(path), PathChange { before, after, same_content }))
    .to_vec()
}

#[test]
fn nothing_is_written_outside_while_a_directory_and_a_link_are_swapped() {
    let place = tempfile::tempdir().unwrap();
    let below = |path: &str| place.path().join(path);
    for directory in ["from/inner/folder", "to/inner", "outside/thrown_away"] {
        std::fs::create_dir_all(below(directory)).unwrap();
    }
    for name in ["written", "folder/file"] {
        std::fs::write(below("from/inner").join(name), "run").unwrap();
    }
    symlink("written", below("from/inner/link")).unwrap();
    for name in ["written", "mode", "removed"] {
        std::fs::write(below("outside").join(name), "outside").unwrap();
        std::fs::set_permissions(below("outside").join(name), PermissionsExt::from_mode(0o600)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(below("outside").join(name), Some(4711), Some(4711)).unwrap();
        }
    }
    symlink(below("outside"), below("to/outward")).unwrap();
    let before = state_of(&below("outside"));
    let open = |path: &str| Directory::open_host(&below(path)).unwrap();
    let (from, to, stops) = (open("from"), open("to"), AtomicBool::new(false));
    let (mut whole, mut disturbed, mut got_out) = (0, 0, 0);
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| swap(&to, &stops));
        let is_enough = |counts: [usize; 3]| counts.iter().all(|count| *count >= ENOUGH);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !is_enough([whole, disturbed, got_out]) && std::time::Instant::now() < until {
            lay(&below("to"));
            let (open, owner) = (Directory::open_own_file as _, TransferOwner::AsBefore);
            let (links, temporary, expected) = (None, ".temporary", None);
            let route = TransferRoute { from: &from, links, open, to: &to, owner, temporary, expected };
            match route.carry(&changes(), |_, _| {}) {
                Ok(_) => whole += 1,
                Err(_) => disturbed += 1,
            }
            // The control: the same by paths is led out.
            let probe = below("to/inner/probe");
            got_out += usize::from(std::fs::write(probe, "").is_ok() && below("outside/probe").exists());
            let _ = std::fs::remove_file(below("outside/probe"));
        }
        stops.store(true, Ordering::Relaxed);
        swapping.join().unwrap();
    });
    assert!(state_of(&below("outside")) == before, "{:?}", state_of(&below("outside")).keys());
    assert!(whole >= ENOUGH && disturbed >= ENOUGH && got_out >= ENOUGH, "{whole} {disturbed} {got_out}");
}

/// Lays what the changes find, in the directory itself, wherever it is at the moment.
fn lay(target: &Path) {
    let is_directory = |name: &&str| !target.join(name).is_symlink();
    // By descriptor, which no swap leads elsewhere.
    let Some(name) = ["inner", "outward"].into_iter().find(is_directory) else { return };
    let target = Directory::open_host(target).unwrap();
    let Ok(inner) = target.open(Path::new(name)) else { return };
    for name in ["folder/file", "link", "written", "mode", "removed", ".temporary", "probe"] {
        if let Ok((parent, name)) = inner.parent_of(Path::new(name)) {
            let _ = unlinkat(&parent, name, AtFlags::empty());
        }
    }
    let _ = unlinkat(&inner, "folder", AtFlags::REMOVEDIR);
    let _ = inner.make(Path::new("thrown_away"), 0o755);
    for name in ["written", "mode", "removed"] {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        let _ = openat(&inner, name, flags, Mode::from_raw_mode(0o600));
    }
}
