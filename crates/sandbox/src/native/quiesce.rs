//! Waiting until everything in a sandbox stands still.
//!
//! A stop is a signal: a system call in progress goes on for a moment. Processes that wake each other up on purpose may
//! never come to rest, so the caller must still expect anything of a stopped sandbox.

use belljar_confine::thread_state::ThreadState;
use belljar_files::directory::{Directory, DirectoryError};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum time to wait for stillness.
const PATIENCE: Duration = Duration::from_millis(500);

/// Maximum number of threads that are looked at one by one.
const MOST: usize = 100_000;

/// Stops everything by `stop`, again if need be, and waits.
pub(super) fn bring_about<E>(root: &Directory, stop: impl Fn() -> Result<(), E>) -> Result<(), E> {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        stop()?;
        // Processes that can't be inspected are not waited for.
        if stands_still(root).unwrap_or(true) || begun.elapsed() >= PATIENCE {
            return Ok(());
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
}

fn stands_still(root: &Directory) -> Result<bool, DirectoryError> {
    for process in numbers(&root.open(Path::new("proc"))?, Path::new("."))? {
        // The first one only looks after the others.
        if process == Path::new("1") {
            continue;
        }
        let tasks = Path::new("proc").join(&process).join("task");
        let threads = match numbers(root, &tasks) {
            // It has ended meanwhile.
            Err(DirectoryError { source: Errno::NOENT | Errno::SRCH, .. }) => continue,
            threads => threads?,
        };
        if threads.iter().any(|thread| runs(root, &tasks.join(thread).join("stat"))) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn numbers(directory: &Directory, path: &Path) -> Result<Vec<PathBuf>, DirectoryError> {
    let names = directory.open(path)?.names(MOST)?;
    let names = names.into_iter().map(|name| name.name.into_bytes());
    Ok(names
        .filter(|name| name.iter().all(u8::is_ascii_digit))
        .map(|name| PathBuf::from(OsStr::from_bytes(&name)))
        .collect())
}

/// Returns true if a thread is neither stopped nor has ended.
fn runs(root: &Directory, stat: &Path) -> bool {
    let mut text = Vec::new();
    let read = root.open_file(stat).map(|mut file| file.read_to_end(&mut text));
    matches!(read, Ok(Ok(_))) && ThreadState::of(&text).is_some_and(ThreadState::runs)
}
