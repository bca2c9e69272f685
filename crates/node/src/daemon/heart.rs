//! The beat: says that this instance lives, looks whether others do, and hears what was asked for of jobs by way of other
//! nodes.

use super::recovery::give_up;
use crate::delivery::Deliverer;
use crate::job::Workplace;
use crate::job::dispatcher::Dispatcher;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How often it beats.
const INTERVAL: Duration = Duration::from_secs(1);

/// An instance whose beat nobody has heard for so long is given up, and its jobs with it.
const LEASE: Duration = Duration::from_secs(20);

/// The others, as this instance has last heard of them, by a clock that nobody can set.
#[derive(Default)]
struct Heard {
    beats: HashMap<String, (u64, Instant)>,
}

/// What beats, and what it keeps going.
pub(super) struct Heart {
    pub(super) workplace: Arc<Workplace>,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) deliverer: Arc<Deliverer>,
}

// === impl Heart ===

impl Heart {
    /// Beats until it is stopped.
    pub(super) async fn beat(self, stop: CancellationToken) {
        let mut heard = Heard::default();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => self.once(&mut heard).await,
            }
        }
    }

    async fn once(&self, heard: &mut Heard) {
        let Self { workplace, dispatcher, deliverer } = self;
        let instance = &workplace.owner.instance;
        match workplace.jobs.beat(instance).await {
            Ok(true) => {}
            // Others have taken this one for dead: what it has is not its own any more, and is to be stopped.
            Ok(false) => {
                dispatcher.lose_all();
                let _ = workplace.jobs.register(&workplace.owner, workplace.now()).await;
            }
            // Whoever can't be told can't be asked either. Jobs go on; what they come to waits.
            Err(_) => return,
        }
        dispatcher.look().await;
        let Ok(instances) = workplace.jobs.instances().await else { return };
        let beats = instances.into_iter().filter(|other| other.id != *instance);
        let silent = heard.hear(beats.map(|other| (other.id, other.beat)), Instant::now());
        for silent in &silent {
            // Once more at the next beat if it fails.
            let _ = give_up(workplace, silent).await;
        }
        if !silent.is_empty() {
            deliverer.take_over().await;
        }
    }
}

// === impl Heard ===

impl Heard {
    /// Takes the beats of all others down, and says who has been silent for too long.
    fn hear(&mut self, beats: impl Iterator<Item = (String, u64)>, now: Instant) -> Vec<String> {
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

    #[test]
    fn who_is_silent_for_a_lease_is_told_and_who_beats_never_is() {
        let (mut heard, begun) = (Heard::default(), Instant::now());
        let hear = |heard: &mut Heard, beat: u64, seconds: u64| {
            let beats = [("silent".to_owned(), 7), ("alive".to_owned(), beat)];
            heard.hear(beats.into_iter(), begun + Duration::from_secs(seconds))
        };
        assert_eq!(hear(&mut heard, 1, 0), Vec::<String>::new());
        assert_eq!(hear(&mut heard, 2, 19), Vec::<String>::new());
        assert_eq!(hear(&mut heard, 3, 20), ["silent"]);
        assert_eq!(hear(&mut heard, 3, 39), ["silent"]);
        // One that was forgotten, and comes again, begins anew.
        let none = heard.hear(std::iter::empty(), begun + Duration::from_secs(40));
        assert_eq!(none, Vec::<String>::new());
        assert_eq!(hear(&mut heard, 3, 41), Vec::<String>::new());
    }
}
