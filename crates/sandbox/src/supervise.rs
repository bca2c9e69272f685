//! Supervision of a sandbox while its program runs, for jobs, commands and agents on every backend: relays what the program
//! writes, and kills it when its time is over or its watcher wants it to stop.

use crate::enclosure::{Enclosure, EnclosureError};
use crate::streams::{PipeEnds, Stream};
use belljar_confine::ResourceUsage;
use belljar_confine::sealed::{ProgramOutcome, SandboxEnding};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Receiver of a program's output, which decides when it is to stop.
pub trait Hearer {
    /// The program has written output.
    fn heard(&mut self, stream: Stream, bytes: &[u8]);
    /// Some time has passed; called several times a second.
    fn tick(&mut self) {}
    /// Returns the grace period before the program is killed, if it is to stop. With a grace period it is asked to end first.
    fn is_to_stop(&self) -> Option<Duration>;
}

/// Ending of a sandbox, and its cause.
#[derive(Debug)]
pub struct ProgramEnd {
    /// How the program ended, with what it used.
    pub ending: SandboxEnding,
    /// Why it ended.
    pub reason: Reason,
}

/// Why the sandbox is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It ended by itself.
    ByItself,
    /// The time limit was exceeded.
    OutOfTime,
    /// It was canceled.
    Canceled,
}

/// Interval at which the watcher is called.
const TICK: Duration = Duration::from_millis(100);

/// Maximum time for a killed program to be gone: normally at once. If the kill isn't carried out, the whole sandbox is
/// ended.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// Watches until its program has ended. Kills it when its deadline is past, which may be put off meanwhile, or when the
/// watcher wants it to stop.
///
/// # Errors
/// [`EnclosureError`] when the sandbox can't be watched or doesn't respond.
pub fn until_end(
    enclosure: &mut Enclosure,
    streams: &mut PipeEnds,
    deadline: &dyn Fn() -> Instant,
    hearer: &mut dyn Hearer,
) -> Result<ProgramEnd, EnclosureError> {
    let mut reason = Reason::ByItself;
    let (mut asked_at, mut killed_at) = (None, None);
    loop {
        let has_ended = wait_for_something(enclosure, streams, deadline())
            .map_err(|source| EnclosureError::Watch { source })?;
        streams.read(|stream, bytes| hearer.heard(stream, bytes));
        hearer.tick();
        if has_ended {
            let ending = enclosure.wait()?;
            // The program's output has arrived by now, and is limited to the size of the pipes.
            streams.read(|stream, bytes| hearer.heard(stream, bytes));
            return Ok(ProgramEnd { ending, reason });
        }
        if killed_at.is_some_and(|at: Instant| at.elapsed() >= LAST_PATIENCE) {
            return Ok(ProgramEnd {
                ending: SandboxEnding { outcome: ProgramOutcome::Killed, usage: ResourceUsage::default() },
                reason,
            });
        }
        let is_to_be_killed = if Instant::now() >= deadline() {
            // A program that was asked to stop before needs no second request.
            if asked_at.is_none() {
                reason = Reason::OutOfTime;
            }
            true
        } else if let Some(grace) = hearer.is_to_stop() {
            reason = Reason::Canceled;
            if asked_at.is_none() && !grace.is_zero() {
                enclosure.terminate()?;
            }
            asked_at.get_or_insert_with(Instant::now).elapsed() >= grace
        } else {
            false
        };
        if is_to_be_killed && killed_at.is_none() {
            killed_at = Some(Instant::now());
            enclosure.kill()?;
        }
    }
}

/// Waits for an event, until the deadline or for a tick. Returns true if the program has ended.
fn wait_for_something(enclosure: &Enclosure, streams: &PipeEnds, deadline: Instant) -> Result<bool, Errno> {
    let mut ready = vec![PollFd::from_borrowed_fd(enclosure.ending(), PollFlags::IN)];
    streams.wait_for(&mut ready);
    let left = match deadline.saturating_duration_since(Instant::now()) {
        // It is killed already.
        Duration::ZERO => TICK,
        left => left.min(TICK),
    };
    let tick = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
    match poll(&mut ready, Some(&tick)) {
        // A signal may be the reason why the job is to stop: not waited on, however many come.
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno),
    }
    Ok(ready[0].revents().intersects(PollFlags::IN | PollFlags::HUP))
}
