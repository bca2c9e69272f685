//! Race tests: a thread swaps a directory for a link that leads out, as fast as possible, while paths through it are
//! used.
//!
//! `BELLJAR_RACE_ROUNDS` sets how many times each way of using a path is tried (20 000 by default, a tenth of that for
//! the slower resolver).

use super::*;
use crate::cancellation::Cancellation;
use crate::deadline::{Deadline, JobTime};
use crate::walk::{WalkOptions, walk};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::io::Read;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// `workspace/swapped` is a directory and, every other moment, a link to `outside`.
struct SwappingWorkspace {
    root: tempfile::TempDir,
}

impl SwappingWorkspace {
    fn new() -> Self {
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for directory in ["workspace/swapped/deep", "outside/deep"] {
            std::fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        for (path, content) in [
            ("workspace/swapped/file", "inside"),
            ("workspace/swapped/deep/file", "inside"),
            ("outside/file", "secret"),
            ("outside/deep/file", "secret"),
            ("outside/only-outside", "secret"),
        ] {
            std::fs::write(root.path().join(path), content).unwrap();
        }
        symlink("../outside", root.path().join("workspace/link")).unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Runs `defend` while an attacker swaps.
    fn under_attack<T>(&self, defend: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (one, other) = (self.path("workspace/swapped"), self.path("workspace/link"));
                while !done.load(Ordering::Relaxed) {
                    renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(defend));
            done.store(true, Ordering::Relaxed);
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn outside(&self) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<_> = ["outside", "outside/deep"]
            .iter()
            .flat_map(|directory| std::fs::read_dir(self.path(directory)).unwrap())
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap_or_default()))
            .collect();
        files.sort();
        files
    }
}

fn rounds(resolver: Resolver) -> usize {
    let rounds = std::env::var("BELLJAR_RACE_ROUNDS").map_or(20_000, |text| text.parse().unwrap());
    if resolver == Resolver::Components { (rounds / 10).max(1) } else { rounds }
}

/// Repeats until the rounds are over, and until it has succeeded at least once between two swaps.
fn fight(resolver: Resolver, mut succeeds: impl FnMut() -> bool) {
    let give_up_at = std::time::Instant::now() + Duration::from_secs(600);
    let mut succeeded = false;
    for round in 0.. {
        if round >= rounds(resolver) && succeeded {
            return;
        }
        assert!(std::time::Instant::now() < give_up_at, "nothing ever succeeded, so nothing is proven");
        succeeded |= succeeds();
    }
}

fn contenders(arena: &SwappingWorkspace) -> [Directory; 3] {
    let open = |resolver| Directory::open(&arena.path("workspace")).unwrap().with_resolver(resolver);
    [
        open(Resolver::Kernel),
        open(Resolver::Kernel).with_symlinks(Symlinks::Refused),
        open(Resolver::Components),
    ]
}

fn content(file: RegularFile) -> String {
    let mut text = String::new();
    file.file.take(100).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn swap_attack_defeats_a_check_before_use() {
    let arena = SwappingWorkspace::new();
    let (swapped, file) = (arena.path("workspace/swapped"), arena.path("workspace/swapped/file"));
    let stolen = arena.under_attack(|| {
        let give_up_at = std::time::Instant::now() + Duration::from_secs(60);
        while std::time::Instant::now() < give_up_at {
            let is_link = std::fs::symlink_metadata(&swapped).unwrap().is_symlink();
            if !is_link && std::fs::read(&file).is_ok_and(|content| content == b"secret") {
                return true;
            }
        }
        false
    });
    assert!(stolen, "the control was never fooled, so the attack proves nothing");
}

#[test]
fn swapped_symlink_cannot_redirect_a_read_outside_the_workspace() {
    let arena = SwappingWorkspace::new();
    for directory in contenders(&arena) {
        let read_both_ways = |path: &Path| {
            let opened = [directory.open_file(path), directory.open_listed_file(path)];
            let contents = opened.into_iter().filter_map(Result::ok).map(content);
            contents.inspect(|content| assert_eq!(content, "inside")).count() > 0
        };
        arena.under_attack(|| {
            fight(directory.resolver, || {
                read_both_ways(Path::new("swapped/file")) | read_both_ways(Path::new("swapped/deep/file"))
            });
        });
    }
}

#[test]
fn swapped_symlink_cannot_redirect_a_write_outside_the_workspace() {
    let arena = SwappingWorkspace::new();
    let before = arena.outside();
    let replacement = Replacement { content: b"written", mode: None, create_parents: true, overwrite: true };
    for directory in contenders(&arena) {
        let write = |path: &str| directory.replace_file(Path::new(path), &replacement).is_ok();
        arena.under_attack(|| {
            fight(directory.resolver, || {
                write("swapped/new") | write("swapped/file") | write("swapped/made/new")
            });
        });
        assert_eq!(arena.outside(), before, "{directory:?}");
    }
}

#[test]
fn swapped_symlink_cannot_redirect_a_walk_or_a_working_directory_outside() {
    let arena = SwappingWorkspace::new();
    let outside = rustix::fs::stat(arena.path("outside")).unwrap();
    let cancellation = Cancellation::new().unwrap();
    let time = JobTime::alone(Duration::from_secs(3600));
    let deadline = Deadline::of_job(&time, &cancellation);
    let mut read_ahead_after = None;
    for directory in contenders(&arena) {
        let walk_and_enter = || {
            read_ahead_after = if read_ahead_after.is_none() { Some(0) } else { None };
            let route = WalkOptions { max_depth: usize::MAX, targets: true, sizes: true, read_ahead_after };
            let root = directory.subdirectory(Path::new("")).unwrap();
            let walked = walk(&root, route, &deadline, |met| {
                assert!(!met.path.ends_with(b"only-outside"));
                ControlFlow::Continue(())
            });
            assert!(walked.is_ok());
            let entered = directory.open_directory(Path::new("swapped"));
            entered.is_ok_and(|entered| {
                let entered = rustix::fs::fstat(&entered).unwrap();
                assert_ne!((entered.st_dev, entered.st_ino), (outside.st_dev, outside.st_ino));
                true
            })
        };
        arena.under_attack(|| fight(directory.resolver, walk_and_enter));
    }
}
