//! A walk shows the same whether directories are read ahead or not.

use super::*;
use crate::cancellation::Cancellation;
use crate::deadline::JobTime;
use proptest::prelude::*;
use rustix::fs::Mode;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// All observable results of a walk.
#[derive(Debug, PartialEq)]
struct WalkResults {
    entries: Vec<ObservedEntry>,
    ended: Result<SkippedEntries, String>,
}

/// Path, kind, target, size.
type ObservedEntry = (String, EntryKind, Option<Vec<u8>>, Option<u64>);

const ALONE: WalkOptions =
    WalkOptions { max_depth: usize::MAX, targets: true, sizes: true, read_ahead_after: None };

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Walks until that many entries were reported.
fn told(root: &Path, route: WalkOptions, shown: usize) -> WalkResults {
    let cancellation = Cancellation::new().unwrap();
    let time = JobTime::alone(Duration::from_secs(600));
    let deadline = Deadline::of_job(&time, &cancellation);
    let mut entries = Vec::new();
    let walked = walk(&Directory::open(root).unwrap(), route, &deadline, |met| {
        let path = String::from_utf8(met.path.to_vec()).unwrap();
        entries.push((path, met.kind, met.target.map(<[u8]>::to_vec), met.size_bytes));
        if entries.len() == shown { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    WalkResults { entries, ended: walked.map_err(|error| error.to_string()) }
}

/// Walks alone and with another that starts at once or soon; all must come to the same, which is returned.
#[track_caller]
fn told_alike(root: &Path, route: WalkOptions, shown: usize) -> WalkResults {
    let alone = told(root, WalkOptions { read_ahead_after: None, ..route }, shown);
    for after in [0, 3] {
        let ahead = told(root, WalkOptions { read_ahead_after: Some(after), ..route }, shown);
        assert_eq!(ahead, alone);
    }
    alone
}

/// Makes directories, files and links, each in one of the directories that are there already.
fn lay_out(root: &Path, seeds: &[(usize, u8)]) {
    let mut directories = vec![root.to_owned()];
    let mut closed = Vec::new();
    for (number, (parent, kind)) in seeds.iter().enumerate() {
        let parent = &directories[parent % directories.len()];
        // Signs that come before the slash and after it.
        let path = parent.join(format!("{}{number}", ["a", "a-", "a.", "a b", "ä"][number % 5]));
        match kind {
            0..=2 => {
                std::fs::create_dir(&path).unwrap();
                directories.push(path);
            }
            3 => {
                std::fs::create_dir(&path).unwrap();
                closed.push(path);
            }
            4 => symlink("..", &path).unwrap(),
            _ => std::fs::write(&path, vec![b'x'; number]).unwrap(),
        }
    }
    for path in closed {
        std::fs::write(path.join("hidden"), "").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    }
}

/// Does it in a thread to which permission bits mean something, also if it is root's.
fn without_privileges<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let none = CapabilitySet::empty();
    let bare = || {
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
            .unwrap();
        work()
    };
    thread::scope(|scope| scope.spawn(bare).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn walk_results_are_equal_with_and_without_read_ahead(
        seeds in prop::collection::vec((any::<usize>(), 0..8_u8), 0..200),
        max_depth in prop_oneof![1..6_usize, Just(usize::MAX)],
        targets in any::<bool>(),
        sizes in any::<bool>(),
        shown in prop_oneof![1..100_usize, Just(usize::MAX)],
    ) {
        let folder = folder();
        lay_out(folder.path(), &seeds);
        let route = WalkOptions { max_depth, targets, sizes, ..ALONE };
        without_privileges(|| told_alike(folder.path(), route, shown));
    }
}

#[test]
fn unreadable_directories_are_counted_once() {
    let folder = folder();
    lay_out(folder.path(), &[(0, 3); 50]);
    let told = without_privileges(|| told_alike(folder.path(), ALONE, usize::MAX));
    assert_eq!(told.ended, Ok(SkippedEntries { too_much: false, unreadable: 50 }));
}

#[test]
fn directory_too_large_for_read_ahead_is_walked_completely() {
    const FILES: usize = 50_000;
    let folder = folder();
    for directory in ["a", "b", "c"] {
        std::fs::create_dir(folder.path().join(directory)).unwrap();
    }
    for number in 0..FILES {
        std::fs::File::create(folder.path().join(format!("b/a-rather-long-name-{number:06}"))).unwrap();
    }
    let told = told_alike(folder.path(), WalkOptions { sizes: false, ..ALONE }, usize::MAX);
    assert_eq!((told.entries.len(), told.ended), (FILES + 3, Ok(SkippedEntries::default())));
}

#[test]
fn entries_too_deep_for_a_path_are_skipped_and_reported() {
    let folder = folder();
    let name = "d".repeat(250);
    for chain in 0..8 {
        let path = folder.path().join(chain.to_string());
        std::fs::create_dir(&path).unwrap();
        let mut at: std::os::fd::OwnedFd = std::fs::File::open(&path).unwrap().into();
        for _ in 0..20 {
            rustix::fs::mkdirat(&at, &*name, Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, &*name, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
    }
    let told = told_alike(folder.path(), ALONE, usize::MAX);
    assert_eq!(told.ended, Ok(SkippedEntries { too_much: true, unreadable: 0 }));
    assert_eq!(
        told_alike(folder.path(), WalkOptions { max_depth: 9, ..ALONE }, usize::MAX).entries.len(),
        8 * 9
    );
}

#[test]
fn a_wide_directory_is_read_ahead_to_its_end() {
    let folder = folder();
    for number in 0..500 {
        std::fs::create_dir_all(folder.path().join(format!("{number}/below"))).unwrap();
    }
    assert_eq!(told_alike(folder.path(), ALONE, usize::MAX).entries.len(), 1000);
}

/// The control of all others here: directories are indeed read ahead.
#[test]
fn file_deleted_after_read_ahead_is_still_shown() {
    let folder = folder();
    let (seen, vanishing) = (folder.path().join("a/seen"), folder.path().join("b/vanishing"));
    for directory in ["a", "b"] {
        std::fs::create_dir(folder.path().join(directory)).unwrap();
    }
    std::fs::write(&seen, "").unwrap();
    let cancellation = Cancellation::new().unwrap();
    let time = JobTime::alone(Duration::from_secs(600));
    let deadline = Deadline::of_job(&time, &cancellation);
    let root = Directory::open(folder.path()).unwrap();
    let is_shown = |route: WalkOptions| {
        std::fs::write(&vanishing, "").unwrap();
        let mut is_shown = false;
        let walked = walk(&root, route, &deadline, |met| {
            if met.path == b"a/seen" {
                thread::sleep(Duration::from_millis(5));
                std::fs::remove_file(&vanishing).unwrap();
            }
            is_shown |= met.path == b"b/vanishing";
            ControlFlow::Continue(())
        });
        assert_eq!(walked.unwrap(), SkippedEntries::default());
        is_shown
    };
    assert!(!is_shown(ALONE));
    assert!((0..1000).any(|_| is_shown(WalkOptions { read_ahead_after: Some(0), ..ALONE })));
}

#[test]
fn tree_that_changes_during_a_walk_is_walked_to_the_end() {
    let folder = folder();
    lay_out(folder.path(), &[(0, 0); 40]);
    let directories: Vec<PathBuf> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for directory in &directories {
        lay_out(directory, &[(0, 0), (0, 7), (1, 0), (2, 7)]);
    }
    let is_over = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let aside = folder.path().join("aside");
            for directory in directories.iter().cycle() {
                std::fs::rename(directory, &aside).unwrap();
                std::fs::rename(&aside, directory).unwrap();
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        for _ in 0..500 {
            assert!(
                told(folder.path(), WalkOptions { read_ahead_after: Some(0), ..ALONE }, usize::MAX)
                    .ended
                    .is_ok()
            );
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn canceled_walk_with_read_ahead_ends_at_the_next_directory() {
    const FILES: usize = 20;
    let folder = folder();
    for number in 0..100 * FILES {
        let directory = folder.path().join((number / FILES).to_string());
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(number.to_string()), "").unwrap();
    }
    let root = Directory::open(folder.path()).unwrap();
    let begun = Instant::now();
    for cancelled_at in 1..200 {
        let cancellation = Cancellation::new().unwrap();
        let time = JobTime::alone(Duration::from_secs(600));
        let deadline = Deadline::of_job(&time, &cancellation);
        let mut shown = 0;
        let walked = walk(&root, WalkOptions { read_ahead_after: Some(0), ..ALONE }, &deadline, |_| {
            shown += 1;
            if shown == cancelled_at {
                cancellation.request();
            }
            ControlFlow::Continue(())
        });
        assert!(matches!(walked, Err(WalkError::Interrupted(Interruption::Canceled))), "{walked:?}");
        assert!(shown <= cancelled_at + FILES + 1, "{shown} after {cancelled_at}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn panic_during_a_walk_ends_the_read_ahead_thread() {
    let folder = folder();
    lay_out(folder.path(), &[(0, 0); 50]);
    let panic = std::panic::catch_unwind(|| {
        let cancellation = Cancellation::new().unwrap();
        let time = JobTime::alone(Duration::from_secs(600));
        let deadline = Deadline::of_job(&time, &cancellation);
        let route = WalkOptions { read_ahead_after: Some(0), ..ALONE };
        let mut shown = 0;
        let _ = walk(&Directory::open(folder.path()).unwrap(), route, &deadline, |_| {
            shown += 1;
            assert!(shown < 20, "enough");
            ControlFlow::Continue(())
        });
    });
    assert!(panic.is_err());
}
