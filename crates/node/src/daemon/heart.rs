//! The beat: says that this instance lives, looks whether others do, and hears what was asked for of jobs by way of other
//! nodes.

use super::recovery::give_up;
use crate::delivery::Deliverer;
use crate::job::Workplace;
use crate::job::abilities::Abilities;
use crate::job::dispatcher::Dispatcher;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How often it beats.
const INTERVAL: Duration = Duration::from_secs(1);

/// An instance whose beat nobody has heard for so long is given up, and its jobs with it.
pub(super) const LEASE: Duration = Duration::from_secs(20);

/// The others, as this instance has last heard of them, by a clock that nobody can set.
#[derive(Default)]
struct Heard {
    beats: HashMap<String, (u64, Instant)>,
    last: Option<Instant>,
}

/// What beats, and what it keeps going.
pub(super) struct Heart {
    pub(super) workplace: Arc<Workplace>,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) deliverer: Arc<Deliverer>,
    /// What other nodes were told last that this one can run.
    pub(super) announced: String,
}

/// How often what is told is held against what is to be told, in beats.
const BEATS_BETWEEN_LOOKS: u64 = 30;

/// Who has heard nothing for so long, not even of itself, has heard nothing of others that means anything.
const LONGEST_GAP: Duration = Duration::from_secs(5);

// === impl Heart ===

impl Heart {
    /// Beats until it is stopped.
    pub(super) async fn beat(mut self, stop: CancellationToken) {
        let (mut heard, mut beats) = (Heard::default(), 0);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => self.once(&mut heard, &mut beats).await,
            }
        }
    }

    async fn once(&mut self, heard: &mut Heard, beats: &mut u64) {
        let Self { workplace, dispatcher, deliverer, announced } = self;
        let instance = &workplace.owner.instance;
        let beaten = workplace.jobs.beat(instance).await;
        workplace.is_recording.store(beaten.is_ok(), Ordering::Relaxed);
        match beaten {
            Ok(true) => {}
            // Others have taken this one for dead: what it has is not its own any more, and is to be stopped.
            Ok(false) => {
                dispatcher.lose_all();
                let _ = workplace.jobs.register(&workplace.owner, workplace.now()).await;
                announced.clear();
            }
            // Whoever can't be told can't be asked either. Jobs go on; what they come to waits. Others may not have been able
            // to say that they live, either.
            Err(_) => return heard.forget(),
        }
        let abilities = Abilities::of(workplace).announcement();
        if abilities != *announced && workplace.jobs.announce(instance, &abilities).await.is_ok() {
            *announced = abilities;
        }
        dispatcher.look().await;
        let Ok(instances) = workplace.jobs.instances().await else { return heard.forget() };
        let others = instances.into_iter().filter(|other| other.id != *instance);
        let silent = heard.hear(others.map(|other| (other.id, other.beat)), Instant::now());
        for silent in &silent {
            // Once more at the next beat if it fails.
            let _ = give_up(workplace, silent).await;
        }
        deliverer.take_over().await;
        *beats += 1;
        if beats.is_multiple_of(BEATS_BETWEEN_LOOKS) {
            deliverer.look().await;
        }
    }
}

// === impl Heard ===

impl Heard {
    /// Begins anew to listen to the others.
    fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes the beats of all others down, and says who has been silent for too long.
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

    fn hear(heard: &mut Heard, begun: Instant, beat: u64, seconds: u64) -> Vec<String> {
        let beats = [("silent".to_owned(), 7), ("alive".to_owned(), beat)];
        heard.hear(beats.into_iter(), begun + Duration::from_secs(seconds))
    }

    #[test]
    fn who_is_silent_for_a_lease_is_told_and_who_beats_never_is() {
        let (mut heard, begun) = (Heard::default(), Instant::now());
        for second in 0..20 {
            assert_eq!(hear(&mut heard, begun, second, second), Vec::<String>::new());
        }
        assert_eq!(hear(&mut heard, begun, 20, 20), ["silent"]);
        // One that was forgotten, and comes again, begins anew.
        let none = heard.hear(std::iter::empty(), begun + Duration::from_secs(21));
        assert_eq!(none, Vec::<String>::new());
        assert_eq!(hear(&mut heard, begun, 22, 22), Vec::<String>::new());
    }

    #[test]
    fn who_could_not_listen_blames_nobody_for_silence() {
        let (mut heard, begun) = (Heard::default(), Instant::now());
        assert_eq!(hear(&mut heard, begun, 1, 0), Vec::<String>::new());
        // The database was away, or this instance was asleep.
        assert_eq!(hear(&mut heard, begun, 2, 25), Vec::<String>::new());
        assert_eq!(hear(&mut heard, begun, 3, 26), Vec::<String>::new());
        heard.forget();
        assert_eq!(hear(&mut heard, begun, 4, 27), Vec::<String>::new());
    }
}
