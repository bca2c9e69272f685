//! The strategies against a model that a reader sees through at once.

use crate::double::{Setting, exec, number};
use belljar_sandbox::backend::BackendError;
use belljar_sandbox::config::Strategy;
use belljar_sandbox::lifecycle::Lease;
use proptest::prelude::{Just, ProptestConfig, prop, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
enum Act {
    Acquire(u8),
    FailToAcquire(u8),
    Exec(usize),
    DropLease(usize),
    Release(u8),
    Advance(u64),
    /// The owner's sandbox ends, and so much time passes that this is noticed.
    End(u8),
    CleanUp,
}

/// What is kept for one owner.
#[derive(Debug, Clone, Copy)]
struct Kept {
    number: u128,
    last_used_at: u64,
    grace_until: Option<u64>,
}

#[derive(Debug, Default)]
struct Model {
    now: u64,
    made: u128,
    kept: BTreeMap<u8, Kept>,
    calls: BTreeSet<u128>,
}

const GRACE: u64 = 30;
const IDLE: u64 = 300;
const CHECK: u64 = 10;

fn act() -> impl Generator<Value = Act> {
    let owner = || 0..3_u8;
    prop_oneof![
        6 => owner().prop_map(Act::Acquire),
        1 => owner().prop_map(Act::FailToAcquire),
        3 => (0..4_usize).prop_map(Act::Exec),
        3 => (0..4_usize).prop_map(Act::DropLease),
        4 => owner().prop_map(Act::Release),
        4 => prop_oneof![0..12_u64, 25..35_u64, 290..310_u64].prop_map(Act::Advance),
        1 => owner().prop_map(Act::End),
        1 => Just(Act::CleanUp),
    ]
}

// === impl Model ===

impl Model {
    fn acquire(&mut self, strategy: Strategy, owner: u8) -> u128 {
        if strategy == Strategy::PerCall {
            self.made += 1;
            self.calls.insert(self.made);
            return self.made;
        }
        let made = &mut self.made;
        let new = || {
            *made += 1;
            Kept { number: *made, last_used_at: 0, grace_until: None }
        };
        let kept = self.kept.entry(owner).or_insert_with(new);
        (kept.last_used_at, kept.grace_until) = (self.now, None);
        kept.number
    }

    fn release(&mut self, strategy: Strategy, owner: u8) {
        if strategy == Strategy::PerTask {
            self.kept.remove(&owner);
        } else if let Some(kept) = self.kept.get_mut(&owner) {
            kept.grace_until = Some(self.now + GRACE);
        }
    }

    fn advance(&mut self, by: u64) {
        self.now += by;
        let now = self.now;
        self.kept.retain(|_, kept| {
            kept.grace_until.is_none_or(|until| until > now) && kept.last_used_at + IDLE > now
        });
    }

    fn exec(&mut self, number: u128) -> bool {
        let now = self.now;
        let kept = self.kept.values_mut().find(|kept| kept.number == number);
        if let Some(kept) = kept {
            kept.last_used_at = now;
            return true;
        }
        self.calls.contains(&number)
    }

    fn alive(&self) -> Vec<u128> {
        let numbers: BTreeSet<u128> =
            self.kept.values().map(|kept| kept.number).chain(self.calls.iter().copied()).collect();
        numbers.into_iter().collect()
    }
}

/// Does the same in both.
fn carry_out(setting: &Setting, model: &mut Model, leases: &mut Vec<Lease>, act: &Act) {
    let strategy = setting.lifecycle.strategy();
    match *act {
        Act::Acquire(owner) => {
            let lease = setting.acquire(&format!("o{owner}"));
            assert_eq!(number(&lease), model.acquire(strategy, owner));
            leases.push(lease);
        }
        Act::FailToAcquire(owner) => {
            let fails = Box::new(|| Err(BackendError::Create("no room".into())));
            let lease = setting.try_acquire(&format!("o{owner}"), fails);
            assert_eq!(lease.is_ok(), model.kept.contains_key(&owner));
            if let Ok(lease) = lease {
                assert_eq!(number(&lease), model.acquire(strategy, owner));
            }
        }
        Act::Exec(index) => {
            if let Some(lease) = leases.get(index) {
                assert_eq!(exec(lease).is_ok(), model.exec(number(lease)));
            }
        }
        Act::DropLease(index) if index < leases.len() => {
            let lease = leases.remove(index);
            model.calls.remove(&number(&lease));
        }
        Act::DropLease(_) => {}
        Act::Release(owner) => {
            setting.release(&format!("o{owner}"));
            model.release(strategy, owner);
        }
        Act::Advance(seconds) => {
            setting.advance(seconds);
            model.advance(seconds);
        }
        Act::End(owner) => {
            if let Some(kept) = model.kept.remove(&owner) {
                setting.record().gone.insert(kept.number);
            }
            setting.advance(CHECK);
            model.advance(CHECK);
        }
        Act::CleanUp => {
            setting.lifecycle.cleanup_all();
            model.kept.clear();
            model.calls.clear();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_strategy_does_what_its_model_does(
        strategy in prop_oneof![Just(Strategy::PerCall), Just(Strategy::PerTask), Just(Strategy::PerAgent)],
        acts in prop::collection::vec(act(), 0..80),
    ) {
        let setting = Setting::new(strategy);
        let (mut model, mut leases) = (Model::default(), Vec::new());
        for act in &acts {
            carry_out(&setting, &mut model, &mut leases, act);
            prop_assert_eq!(setting.alive(), model.alive(), "after {:?}", act);
        }
        prop_assert_eq!(setting.record().dropped.len(), 0);
    }
}
