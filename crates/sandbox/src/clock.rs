//! Time, handed in: the real one with a single thread that wakes whoever wants to be woken, and one that tests turn.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Debug;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Tells the time, and wakes.
pub trait Clock: Debug + Send + Sync {
    /// Now.
    fn now(&self) -> Instant;

    /// Rings an alarm when that time has come, if it still exists then. Never rings from within this call.
    fn wake(&self, at: Instant, alarm: Weak<dyn Alarm>);
}

/// Something that wants to be woken. What it does holds up other alarms.
pub trait Alarm: Send + Sync {
    /// The time has come, or nearly: an alarm looks at the clock itself.
    fn ring(&self);
}

/// The real time. One thread waits for all alarms.
#[derive(Debug)]
pub struct SystemClock {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Time that passes when it is told to.
#[derive(Debug)]
pub struct ManualClock {
    set: Mutex<Set>,
}

#[derive(Debug, Default)]
struct Shared {
    set: Mutex<Alarms>,
    changed: Condvar,
}

/// What is to be rung, the next first.
#[derive(Debug, Default)]
struct Alarms {
    pending: BinaryHeap<Reverse<Pending>>,
    next: u64,
    is_over: bool,
}

#[derive(Debug)]
struct Set {
    now: Instant,
    alarms: Alarms,
}

/// Ordered by time, then by when it was asked for.
#[derive(Debug)]
struct Pending {
    at: Instant,
    number: u64,
    alarm: Weak<dyn Alarm>,
}

// === impl SystemClock ===

impl SystemClock {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`io::Error`] when there can't be one.
    pub fn start() -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("clock".to_owned()).spawn(move || theirs.keep())?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wake(&self, at: Instant, alarm: Weak<dyn Alarm>) {
        locked(&self.shared.set).add(at, alarm);
        self.shared.changed.notify_one();
    }
}

impl Drop for SystemClock {
    fn drop(&mut self) {
        locked(&self.shared.set).is_over = true;
        self.shared.changed.notify_one();
        let Some(thread) = self.thread.take() else { return };
        // Whoever is woken last may be the one who drops the clock.
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Rings until the clock is dropped.
    fn keep(&self) {
        let mut set = locked(&self.set);
        while !set.is_over {
            let now = Instant::now();
            if let Some(alarm) = set.take_due(now) {
                drop(set);
                // One alarm that fails must not silence all others.
                let _ = catch_unwind(AssertUnwindSafe(|| ring(&alarm)));
                set = locked(&self.set);
                continue;
            }
            set = match set.pending.peek() {
                Some(Reverse(next)) => {
                    let left = next.at.saturating_duration_since(now);
                    self.changed
                        .wait_timeout(set, left)
                        .map_or_else(|error| error.into_inner().0, |(set, _)| set)
                }
                None => self.changed.wait(set).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

// === impl ManualClock ===

impl ManualClock {
    /// One that begins now.
    pub fn new() -> Self {
        Self { set: Mutex::new(Set { now: Instant::now(), alarms: Alarms::default() }) }
    }

    /// Lets time pass and rings what comes due, each at its own time.
    pub fn advance(&self, by: Duration) {
        let until = locked(&self.set).now + by;
        loop {
            let mut set = locked(&self.set);
            let next = set.alarms.pending.peek().map(|Reverse(next)| next.at).filter(|at| *at <= until);
            set.now = next.unwrap_or(until).max(set.now);
            let now = set.now;
            let Some(alarm) = set.alarms.take_due(now) else { return };
            drop(set);
            ring(&alarm);
        }
    }

    /// How many alarms are set.
    pub fn alarms(&self) -> usize {
        locked(&self.set).alarms.pending.len()
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        locked(&self.set).now
    }

    fn wake(&self, at: Instant, alarm: Weak<dyn Alarm>) {
        locked(&self.set).alarms.add(at, alarm);
    }
}

// === impl Alarms ===

impl Alarms {
    fn add(&mut self, at: Instant, alarm: Weak<dyn Alarm>) {
        let number = self.next;
        self.next += 1;
        self.pending.push(Reverse(Pending { at, number, alarm }));
    }

    fn take_due(&mut self, now: Instant) -> Option<Weak<dyn Alarm>> {
        self.pending.peek().filter(|Reverse(next)| next.at <= now)?;
        self.pending.pop().map(|Reverse(due)| due.alarm)
    }
}

// === impl Pending ===

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl Debug for dyn Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Alarm")
    }
}

fn ring(alarm: &Weak<dyn Alarm>) {
    if let Some(alarm) = alarm.upgrade() {
        alarm.ring();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
