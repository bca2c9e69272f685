//! Reading ahead of directories in a second thread.
//!
//! The walk announces the directories that it will come to; those that it will come to first are read first. If it
//! comes to a directory that no thread has begun with, it reads that itself. If the other thread is reading it, the
//! walk reads others meanwhile. Directories that can't be read ahead, for whatever reason, are left to the walk: it
//! alone handles errors and truncated directories.

use super::level::DirectoryListing;
use super::reader::Reader;
use crate::deadline::Interruption;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope};

/// State that the two threads share.
pub(super) struct ReadAhead {
    max_depth: usize,
    state: Mutex<ReadAheadState>,
    changed: Condvar,
}

/// Ends the reading when dropped.
pub(super) struct ReadAheadGuard<'a>(&'a ReadAhead);

/// Paths are sorted by component, which is the order of the walk.
#[derive(Default)]
struct ReadAheadState {
    is_running: bool,
    /// Announced directories that no thread has begun with.
    wanted: BTreeSet<PathBuf>,
    wanted_bytes: usize,
    /// Directory that the thread is reading.
    being_read: Option<PathBuf>,
    /// Directories that have been read.
    ready: BTreeMap<PathBuf, DirectoryListing>,
    ready_bytes: usize,
    /// True if one of the two threads waits for a change.
    is_awaited: bool,
}

/// Number of bytes of unused results from which on no directory is begun.
const HELD_BYTES: usize = 4 << 20;

/// Maximum number of bytes for the names of a directory that is read ahead.
const DIRECTORY_BYTES: usize = 1 << 20;

/// Maximum number of bytes for the paths of announced directories.
const WANTED_BYTES: usize = 256 << 10;

// === impl ReadAhead ===

impl ReadAhead {
    pub(super) fn new(max_depth: usize) -> Self {
        Self { max_depth, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Starts the thread. If no more threads are allowed, the walk goes on alone.
    pub(super) fn start<'scope, 'env>(&'env self, scope: &'scope Scope<'scope, 'env>, reader: Reader<'env>) {
        self.lock().is_running = true;
        let started = Builder::new().name("read-ahead".to_owned()).spawn_scoped(scope, || self.run(reader));
        if started.is_err() {
            self.end();
        }
    }

    /// Returns a guard that ends the reading when it is dropped, for whatever reason.
    pub(super) fn end_when_dropped(&self) -> ReadAheadGuard<'_> {
        ReadAheadGuard(self)
    }

    /// Returns the directory at `path`, if it was read ahead. The walk requests directories in order, and `siblings`
    /// lists those that come next.
    pub(super) fn take(
        &self,
        path: &Path,
        siblings: &mut DirectoryListing,
        reader: &mut Reader<'_>,
    ) -> Result<Option<DirectoryListing>, Interruption> {
        let mut state = self.lock();
        if !state.is_running {
            return Ok(None);
        }
        reader.check()?;
        let parent = path.parent().unwrap_or(Path::new(""));
        siblings.announce(|name| state.want(parent.join(OsStr::from_bytes(name))));
        let level = state.pass(path);
        if state.is_awaited && state.is_worth_waking() {
            self.wake(&mut state);
        }
        if level.is_some() || state.being_read.as_deref() != Some(path) {
            return Ok(level);
        }
        self.read_others_until_ready(path, state, reader)
    }

    fn read_others_until_ready<'s>(
        &'s self,
        path: &Path,
        mut state: MutexGuard<'s, ReadAheadState>,
        reader: &mut Reader<'_>,
    ) -> Result<Option<DirectoryListing>, Interruption> {
        while state.being_read.as_deref() == Some(path) {
            let Some(other) = state.begin() else {
                state = self.wait(state);
                continue;
            };
            drop(state);
            let level = reader.read_whole(&other, DIRECTORY_BYTES)?;
            state = self.lock();
            state.keep(other, level, self.max_depth);
        }
        Ok(state.pass(path))
    }

    /// Main loop of the thread.
    fn run(&self, mut reader: Reader<'_>) {
        let _ends_with_the_thread = self.end_when_dropped();
        while let Some(path) = self.next_directory() {
            // The walk does the same check, and reports the reason.
            let Ok(level) = reader.read_whole(&path, DIRECTORY_BYTES) else { return };
            let mut state = self.lock();
            state.being_read = None;
            state.keep(path, level, self.max_depth);
            if state.is_awaited {
                self.wake(&mut state);
            }
        }
    }

    fn next_directory(&self) -> Option<PathBuf> {
        let mut state = self.lock();
        while state.is_running {
            if let Some(path) = state.begin() {
                state.being_read = Some(path.clone());
                return Some(path);
            }
            state = self.wait(state);
        }
        None
    }

    fn end(&self) {
        let mut state = self.lock();
        state.is_running = false;
        state.being_read = None;
        self.wake(&mut state);
    }

    fn lock(&self) -> MutexGuard<'_, ReadAheadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, mut state: MutexGuard<'s, ReadAheadState>) -> MutexGuard<'s, ReadAheadState> {
        state.is_awaited = true;
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, state: &mut ReadAheadState) {
        state.is_awaited = false;
        self.changed.notify_one();
    }
}

// === impl ReadAheadGuard ===

impl Drop for ReadAheadGuard<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

// === impl ReadAheadState ===

impl ReadAheadState {
    fn want(&mut self, path: PathBuf) {
        let bytes = path.as_os_str().len();
        if self.wanted_bytes + bytes <= WANTED_BYTES && self.wanted.insert(path) {
            self.wanted_bytes += bytes;
        }
    }

    /// Takes the directory that the walk will come to first; the caller reads it now.
    fn begin(&mut self) -> Option<PathBuf> {
        if self.ready_bytes >= HELD_BYTES {
            return None;
        }
        let path = self.wanted.pop_first()?;
        self.wanted_bytes -= path.as_os_str().len();
        Some(path)
    }

    /// Returns true if there is enough work for the thread to be woken.
    fn is_worth_waking(&self) -> bool {
        self.ready_bytes <= HELD_BYTES / 2 && !self.wanted.is_empty()
    }

    /// Keeps a directory until the walk comes to it, and announces its subdirectories.
    fn keep(&mut self, path: PathBuf, level: Option<DirectoryListing>, max_depth: usize) {
        let Some(mut level) = level else { return };
        let depth = 1 + path.components().count();
        if depth < max_depth {
            level.announce(|name| self.want(path.join(OsStr::from_bytes(name))));
        }
        self.ready_bytes += held_bytes(&path, &level);
        self.ready.insert(path, level);
    }

    /// Returns the directory at `path` if it is ready. It and those before it are dropped, because the walk has passed
    /// them.
    fn pass(&mut self, path: &Path) -> Option<DirectoryListing> {
        while let Some(first) = self.wanted.first().filter(|first| first.as_path() <= path) {
            self.wanted_bytes -= first.as_os_str().len();
            self.wanted.pop_first();
        }
        while let Some(first) = self.ready.first_entry().filter(|first| first.key().as_path() <= path) {
            let (passed, level) = first.remove_entry();
            self.ready_bytes -= held_bytes(&passed, &level);
            if passed == path {
                return Some(level);
            }
        }
        None
    }
}

fn held_bytes(path: &Path, level: &DirectoryListing) -> usize {
    path.as_os_str().len() + size_of::<DirectoryListing>() + level.bytes()
}
