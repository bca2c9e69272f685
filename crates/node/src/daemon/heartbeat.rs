//! The heartbeat: signals that this instance lives, detects instances that are gone, and picks up requests about jobs that
//! came by other nodes.

use super::recovery::give_up;
use crate::delivery::Deliverer;
use crate::job::NodeState;
use crate::job::dispatcher::Dispatcher;
use crate::job::runnable_jobs::InstanceCapabilities;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Interval of the heartbeat.
const INTERVAL: Duration = Duration::from_secs(1);

/// Lease of an instance: it is given up, and its jobs with it, if its heartbeat doesn't change for this long.
pub(super) const LEASE: Duration = Duration::from_secs(20);

/// Last heartbeats of the other instances, timed by a monotonic clock.
#[derive(Default)]
struct PeerHeartbeats {
    beats: HashMap<String, (u64, Instant)>,
    last: Option<Instant>,
}

/// The heartbeat task, and the parts of the node that it drives.
pub(super) struct HeartbeatTask {
    pub(super) workplace: Arc<NodeState>,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) deliverer: Arc<Deliverer>,
    /// Abilities of this instance that were announced last.
    pub(super) announced: String,
}

/// Number of heartbeats between two comparisons of pending callbacks with the database.
const BEATS_BETWEEN_LOOKS: u64 = 30;

/// Maximum gap between two heartbeats. After a longer gap this instance was suspended or cut off, so the times of the others'
/// heartbeats mean nothing.
const LONGEST_GAP: Duration = Duration::from_secs(5);

// === impl HeartbeatTask ===

impl HeartbeatTask {
    /// Sends heartbeats until it is stopped.
    pub(super) async fn beat(mut self, stop: CancellationToken) {
        let (mut heard, mut beats) = (PeerHeartbeats::default(), 0);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => self.once(&mut heard, &mut beats).await,
            }
        }
    }

    async fn once(&mut self, heard: &mut PeerHeartbeats, beats: &mut u64) {
        let Self { workplace, dispatcher, deliverer, announced } = self;
        let instance = &workplace.owner.instance;
        let beaten = workplace.jobs.beat(instance).await;
        workplace.is_recording.store(beaten.is_ok(), Ordering::Relaxed);
        match beaten {
            Ok(true) => {}
            // Other instances have taken this one for dead: its jobs are no longer its own, and have to be stopped.
            Ok(false) => {
                dispatcher.lose_all();
                let _ = workplace.jobs.register(&workplace.owner, workplace.now()).await;
                announced.clear();
            }
            // Without a database this instance can't receive requests either. Jobs continue, and their results wait. Other
            // instances may also have been unable to send heartbeats.
            Err(_) => return heard.forget(),
        }
        let abilities = InstanceCapabilities::of(workplace).announcement();
        if abilities != *announced && workplace.jobs.announce(instance, &abilities).await.is_ok() {
            *announced = abilities;
        }
        dispatcher.look().await;
        let Ok(instances) = workplace.jobs.instances().await else { return heard.forget() };
        let others = instances.into_iter().filter(|other| other.id != *instance);
        let silent = heard.hear(others.map(|other| (other.id, other.beat)), Instant::now());
        for silent in &silent {
            // If it fails, the next heartbeat tries again.
            let _ = give_up(workplace, silent).await;
        }
        deliverer.take_over().await;
        *beats += 1;
        if beats.is_multiple_of(BEATS_BETWEEN_LOOKS) {
            deliverer.look().await;
        }
    }
}

// === impl PeerHeartbeats ===

impl PeerHeartbeats {
    /// Discards all noted heartbeats.
    fn forget(&mut self) {
        *self = Self::default();
    }

    /// Notes the heartbeats of all others, and returns the instances whose lease is over.
    fn hear(&mut self, beats: impl Iterator<Item = (String, u64)>, now: Instant) -> Vec<String> {
        if self.last.is_some_and(|last| now.duration_since(last) > LONGEST_GAP) {
            self.forget();
        }
        self.last = Some(now);
        let before = std::mem::take(&mut self.beats);
        for (instance, beat) in beats {
            let since = match before.get(&instance) {
                Some((known, since)) if *known == beat => *since,
                _ => now,
            };
            self.beats.insert(instance, (beat, since));
        }
        let silent = self.beats.iter().filter(|(_, (_, since))| now.duration_since(*since) >= LEASE);
        silent.map(|(instance, _)| instance.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(heard: &mut PeerHeartbeats, begun: Instant, beat: u64, seconds: u64) -> Vec<String> {
        let beats = [("silent".to_owned(), 7), ("alive".to_owned(), beat)];
        heard.hear(beats.into_iter(), begun + Duration::from_secs(seconds))
    }

    #[test]
    fn instance_without_heartbeat_for_a_lease_is_reported_once() {
        let (mut heard, begun) = (PeerHeartbeats::default(), Instant::now());
        for second in 0..20 {
            assert_eq!(hear(&mut heard, begun, second, second), Vec::<String>::new());
        }
        assert_eq!(hear(&mut heard, begun, 20, 20), ["silent"]);
        // An instance that was forgotten and comes back starts with a new lease.
        let none = heard.hear(std::iter::empty(), begun + Duration::from_secs(21));
        assert_eq!(none, Vec::<String>::new());
        assert_eq!(hear(&mut heard, begun, 22, 22), Vec::<String>::new());
    }

    #[test]
    fn missed_heartbeats_are_not_counted_while_this_instance_was_away() {
        let (mut heard, begun) = (PeerHeartbeats::default(), Instant::now());
        assert_eq!(hear(&mut heard, begun, 1, 0), Vec::<String>::new());
        // The database was away, or this instance was asleep.
        assert_eq!(hear(&mut heard, begun, 2, 25), Vec::<String>::new());
        assert_eq!(hear(&mut heard, begun, 3, 26), Vec::<String>::new());
        heard.forget();
        assert_eq!(hear(&mut heard, begun, 4, 27), Vec::<String>::new());
    }
}
