//! Watches a sandbox while its program runs: relays what it writes, and ends it when its time is over.

use crate::streams::{Stream, Streams};
use belljar_confine::sealed::{Ending, Sealed};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Hears what a program writes, and says when it shall stop.
pub(super) trait Hearer {
    /// It has written something.
    fn heard(&mut self, stream: Stream, bytes: &[u8]);
    /// Some time has passed; called several times a second.
    fn tick(&mut self) {}
    /// Whether somebody wants it to stop, and how long it may take until then.
    fn is_to_stop(&self) -> Option<Duration>;
}

/// How a sandbox ended.
pub(super) struct Ended {
    pub(super) ending: Ending,
    pub(super) reason: Reason,
}

/// Why the sandbox is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// It ended by itself.
    ByItself,
    /// Its time was over.
    OutOfTime,
    /// Somebody canceled it.
    Canceled,
}

/// How often the watcher hears of passing time.
const TICK: Duration = Duration::from_millis(100);

/// Watches until the sandbox has ended; kills it when its deadline, which may be put off meanwhile, is past or somebody wants it to stop.
pub(super) fn until_end(
    sealed: &mut Sealed,
    streams: &mut Streams,
    deadline: &dyn Fn() -> Instant,
    hearer: &mut dyn Hearer,
) -> Result<Ended, Errno> {
    let mut reason = Reason::ByItself;
    let mut asked_at = None;
    loop {
        let mut ready = vec![PollFd::from_borrowed_fd(sealed.ending(), PollFlags::IN)];
        streams.wait_for(&mut ready);
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        match poll(&mut ready, Some(&tick)) {
            // A signal may be why somebody wants the job to stop: not waited on, however many come.
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let ended = ready[0].revents().intersects(PollFlags::IN | PollFlags::HUP);
        streams.read(|stream, bytes| hearer.heard(stream, bytes));
        hearer.tick();
        if ended {
            return Ok(Ended { ending: sealed.wait()?, reason });
        }
        if Instant::now() >= deadline() {
            // Who was to stop before that has been told so.
            if asked_at.is_none() {
                reason = Reason::OutOfTime;
            }
            sealed.kill();
        } else if let Some(grace) = hearer.is_to_stop() {
            reason = Reason::Canceled;
            let asked = *asked_at.get_or_insert_with(|| {
                if !grace.is_zero() {
                    sealed.terminate();
                }
                Instant::now()
            });
            if asked.elapsed() >= grace {
                sealed.kill();
            }
        }
    }
}
