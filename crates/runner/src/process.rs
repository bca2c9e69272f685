//! Runs one program and leaves nothing of it behind.
//!
//! One thread watches the program's two outputs, its end, the deadline and the request to stop. The end is that of the
//! program itself: a descendant that holds a pipe open delays nothing. Then the whole process tree is killed, including
//! daemons and members of other sessions or process groups. Only then are the last outputs read.

mod capture;
mod descendants;
mod fence;
mod program;
mod spawn;
mod tree;

pub(crate) use capture::{CaptureLimit, CapturedOutput};
pub(crate) use fence::{AllowedPaths, Fence};
pub(crate) use spawn::{ProgramSpec, SpawnError};
pub(crate) use tree::{Survivors, end_all};

use crate::deadline::{Deadline, Interruption};
use belljar_contract::result::ResourceUsage;
use capture::Capture;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::time::{Duration, Instant};
use tree::ProcessTree;

/// Outcome of a program.
#[derive(Debug)]
pub(crate) struct ProgramOutcome {
    /// Outcome of the program.
    pub(crate) ending: Ending,
    /// Its exit code, unless a signal ended it.
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// Captured stdout.
    pub(crate) stdout: CapturedOutput,
    /// Captured stderr.
    pub(crate) stderr: CapturedOutput,
    /// Resources that it and its descendants used.
    pub(crate) usage: ResourceUsage,
    /// Time that it ran.
    pub(crate) duration: Duration,
    /// Protection of the runner from the program.
    pub(crate) fence: Fence,
    /// Processes that would not die.
    pub(crate) survivors: Option<Survivors>,
}

/// Outcome of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The program ended by itself.
    Itself,
    /// The program was killed before it was done.
    Interrupted(Interruption),
    /// The program was killed because it went on after more output than is kept.
    TooMuchOutput,
}

/// Grace period for a program that has written too much.
const GRACE: Duration = Duration::from_millis(100);

/// Poll interval for the end of a program where the kernel can't report it.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs a program to its end, whatever end that is. `progress` gets each piece of output as it arrives.
pub(crate) fn run(
    order: &ProgramSpec<'_>,
    deadline: &Deadline<'_>,
    mut progress: impl FnMut(&[u8]),
) -> Result<ProgramOutcome, SpawnError> {
    let started = Instant::now();
    let spawned = spawn::spawn(order)?;
    let mut tree = ProcessTree::of(spawned.leader);
    let mut outputs = spawned.outputs.map(|pipe| Capture::new(pipe, order.keep));
    let ending = watch(&mut tree, &mut outputs, deadline, &mut progress);
    let survivors = tree.end().err();
    for output in &mut outputs {
        output.drain(&mut progress);
    }
    let [stdout, stderr] = outputs.map(Capture::finish);
    let (exit_code, signal) = tree.leader_status();
    Ok(ProgramOutcome {
        ending,
        exit_code,
        signal,
        stdout,
        stderr,
        usage: tree.usage(),
        duration: started.elapsed(),
        fence: spawned.fence,
        survivors,
    })
}

fn watch(
    tree: &mut ProcessTree,
    outputs: &mut [Capture; 2],
    deadline: &Deadline<'_>,
    progress: &mut impl FnMut(&[u8]),
) -> Ending {
    let mut overflowed_at: Option<Instant> = None;
    loop {
        if let Err(interrupted) = deadline.check() {
            return Ending::Interrupted(interrupted);
        }
        if overflowed_at.is_some_and(|at| at.elapsed() >= GRACE) {
            return Ending::TooMuchOutput;
        }
        let until = overflowed_at.map_or(deadline.at(), |at| deadline.at().min(at + GRACE));
        wait_for_news(tree, outputs, deadline, until);
        for output in outputs.iter_mut() {
            output.read_once(progress);
        }
        if overflowed_at.is_none() && outputs.iter().any(Capture::has_overflowed) {
            overflowed_at = Some(Instant::now());
        }
        if tree.leader_has_ended() {
            return Ending::Itself;
        }
    }
}

/// Sleeps until an output has data, the program has ended, cancellation is requested, or it is `until`.
fn wait_for_news(tree: &ProcessTree, outputs: &[Capture; 2], deadline: &Deadline<'_>, until: Instant) {
    let mut polled = vec![PollFd::new(deadline.cancellation(), PollFlags::IN)];
    polled.extend(outputs.iter().filter_map(Capture::pipe).map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    let mut left = until.saturating_duration_since(Instant::now());
    match tree.leader_descriptor() {
        Some(leader) => polled.push(PollFd::new(leader, PollFlags::IN)),
        None => left = left.min(POLL_INTERVAL),
    }
    // Rounded up, so that the deadline has passed when the call returns for it.
    let timeout = Timespec::try_from(left + Duration::from_millis(1)).ok();
    // An error is an interruption, or treated like one: the caller checks for itself.
    let _ = rustix::event::poll(&mut polled, timeout.as_ref());
}
