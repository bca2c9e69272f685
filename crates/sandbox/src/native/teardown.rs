//! Teardown of what an ended sandbox leaves in the kernel, at a time when no caller waits for it.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Takes it apart in a thread of its own, which begins with the first.
#[derive(Debug, Default)]
pub(super) struct MountTeardown(Mutex<Option<TeardownThread>>);

#[derive(Debug)]
struct TeardownThread {
    // Before the thread: without it, that one ends.
    to: SyncSender<OwnedFd>,
    thread: JoinHandle<()>,
}

/// Maximum number of waiting leftovers, so that they don't pile up.
const MOST: usize = 64;

/// Pause before the teardown, so that the caller that has just ended a sandbox goes on first.
const AWHILE: Duration = Duration::from_millis(2);

// === impl MountTeardown ===

impl MountTeardown {
    /// Lets go of what keeps it, soon; at once where there is no thread for that, or enough for it to do.
    pub(super) fn clear_away(&self, kept: OwnedFd) {
        let mut clearing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if clearing.is_none() {
            *clearing = TeardownThread::begin();
        }
        let to = clearing.as_ref().map(|clearing| clearing.to.clone());
        drop(clearing);
        let refused = to.and_then(|to| to.try_send(kept).err());
        drop(refused);
    }
}

impl Drop for MountTeardown {
    fn drop(&mut self) {
        let clearing = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(TeardownThread { to, thread }) = clearing {
            drop(to);
            let _ = thread.join();
        }
    }
}

// === impl TeardownThread ===

impl TeardownThread {
    fn begin() -> Option<Self> {
        let (to, from) = sync_channel(MOST);
        let named = std::thread::Builder::new().name("belljar-remains".to_owned());
        let thread = named.spawn(move || clear(&from)).ok()?;
        Some(Self { to, thread })
    }
}

fn clear(from: &Receiver<OwnedFd>) {
    while let Ok(first) = from.recv() {
        std::thread::sleep(AWHILE);
        drop(first);
        from.try_iter().for_each(drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;

    #[test]
    fn everything_is_let_go_of_however_much_there_is_and_nothing_is_left_behind() {
        let remains = MountTeardown::default();
        let (watched, kept) = pipe().unwrap();
        for _ in 0..3 * MOST {
            remains.clear_away(kept.try_clone().unwrap());
        }
        drop(kept);
        drop(remains);
        // End of file: the pipe has no writer any more.
        assert_eq!(rustix::io::read(&watched, &mut [0]), Ok(0));
    }
}
