//! The user who owns the target renames files and directories of root over names that root is writing.

use super::*;
use rustix::fs::{RenameFlags, renameat_with};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Owner of the target.
const OTHER: u32 = 4711;
/// Minimum number of times that something of root's gets the temporary name.
const ENOUGH: usize = 20;
const TEMPORARY: &str = ".temporary";
/// A file and a directory of root's that lie in the target.
const ROOTS: [&str; 2] = ["secret", "closed"];

/// A new link, and new directories with a file each.
fn changes() -> Vec<(&'static Path, PathChange)> {
    let of = |kind, mode| PathChange {
        before: None,
        after: Some(PathState { kind, mode, size: 1 }),
        same_content: false,
    };
    let directory = of(FileType::Directory, 0o755);
    [
        ("a", directory),
        ("b", directory),
        ("c", directory),
        ("file", of(FileType::RegularFile, 0o644)),
        ("link", of(FileType::Symlink, 0o777)),
        ("other", of(FileType::RegularFile, 0o644)),
    ]
    .map(|(path, changed)| (Path::new(path), changed))
    .to_vec()
}

fn carry(from: &Directory, to: &Directory) -> Result<BTreeSet<PathBuf>, TransferError> {
    let (open, owner) = (Directory::open_own_file as _, TransferOwner::AsBefore);
    let expected = Expectations::default();
    let (links, expected) = (None, Some(&expected));
    TransferRoute { from, links, open, to, owner, temporary: TEMPORARY, expected }
        .carry(&changes(), |_, _| {})
}

/// Exchanges what is root's with what has the temporary name, or with a new directory, whenever there is one.
fn exchange(target: &Directory, stops: &AtomicBool, exchanged: &AtomicUsize) {
    while !stops.load(Ordering::Relaxed) {
        for (roots, name) in [(ROOTS[0], TEMPORARY), (ROOTS[1], TEMPORARY), (ROOTS[1], "c")] {
            let done = renameat_with(target, roots, target, name, RenameFlags::EXCHANGE);
            exchanged.fetch_add(usize::from(done.is_ok()), Ordering::Relaxed);
        }
    }
}

/// Removes what an attempt has left, and puts back what is root's. A file of root's that had the temporary name may
/// have lost it, as the owner of the target could have removed it too: it gets its name again from a link beside it.
fn clear(target: &Path, roots: &[u64]) {
    for entry in std::fs::read_dir(target).unwrap() {
        let path = entry.unwrap().path();
        let found = path.symlink_metadata().unwrap();
        match roots.iter().position(|inode| *inode == found.ino()) {
            Some(0) => std::fs::remove_file(&path).unwrap(),
            Some(which) => std::fs::rename(&path, target.with_file_name(ROOTS[which])).unwrap(),
            None if found.is_dir() => std::fs::remove_dir(&path).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
    }
    std::fs::hard_link(target.with_file_name(ROOTS[0]), target.join(ROOTS[0])).unwrap();
    std::fs::rename(target.with_file_name(ROOTS[1]), target.join(ROOTS[1])).unwrap();
}

#[test]
fn root_gives_nothing_away_that_gets_a_name_while_it_is_written() {
    if !rustix::process::geteuid().is_root() {
        return belljar_testkit::skip::skip(
            "root_gives_nothing_away_that_gets_a_name_while_it_is_written",
            "root alone can act as another user",
        );
    }
    let place = tempfile::tempdir().unwrap();
    let below = |path: &str| place.path().join(path);
    for directory in ["from", "to", "to/closed"] {
        std::fs::create_dir(below(directory)).unwrap();
    }
    for file in ["from/file", "from/other", "to/secret", "to/closed/secret"] {
        std::fs::write(below(file), "x").unwrap();
    }
    symlink("file", below("from/link")).unwrap();
    let close = |path: &str, mode| {
        std::fs::set_permissions(below(path), PermissionsExt::from_mode(mode)).unwrap();
        below(path).metadata().unwrap().ino()
    };
    let roots = [close("to/secret", 0o600), close("to/closed", 0o700)];
    std::fs::hard_link(below("to/secret"), below("secret")).unwrap();
    chown(below("to"), Some(OTHER), Some(OTHER)).unwrap();
    let open = |path: &str| Directory::open_host(&below(path)).unwrap();
    let (from, to) = (open("from"), open("to"));
    let held = ROOTS.map(|name| File::open(below("to").join(name)).unwrap());
    let as_they_are =
        || held.each_ref().map(|file| file.metadata().map(|is| (is.uid(), is.mode() & 0o777)).unwrap());
    // The control: where no name is taken, all that is new belongs to the other user.
    assert!(carry(&from, &to).unwrap().is_empty());
    for (path, changed) in changes() {
        let (found, after) = (below("to").join(path).symlink_metadata().unwrap(), changed.after.unwrap());
        assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (OTHER, OTHER, after.mode), "{path:?}");
    }
    clear(&below("to"), &roots);
    let (stops, exchanged) = (AtomicBool::new(false), AtomicUsize::new(0));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while exchanged.load(Ordering::Relaxed) < ENOUGH && std::time::Instant::now() < until {
        stops.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let exchanging = scope.spawn(|| exchange(&to, &stops, &exchanged));
            let _ = carry(&from, &to);
            stops.store(true, Ordering::Relaxed);
            exchanging.join().unwrap();
        });
        assert_eq!(as_they_are(), [(0, 0o600), (0, 0o700)]);
        clear(&below("to"), &roots);
    }
    assert!(exchanged.load(Ordering::Relaxed) >= ENOUGH, "{exchanged:?}");
}
