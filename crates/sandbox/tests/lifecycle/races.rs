//! What happens at the same time.

use crate::double::{Setting, exec, number};
use belljar_sandbox::backend::BackendError;
use belljar_sandbox::clock::{Alarm, Clock, SystemClock};
use belljar_sandbox::config::Strategy;
use belljar_sandbox::event::LifecycleChange;
use belljar_sandbox::lifecycle::Tenure;
use proptest::prelude::{Just, ProptestConfig, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

#[test]
fn of_two_that_are_made_for_one_owner_the_second_is_destroyed_at_once() {
    let setting = Setting::new(Strategy::PerAgent);
    // While the first is being made, another call of the same agent comes and is quicker.
    let slow = setting.try_acquire(
        "a",
        Box::new(|| {
            let made = setting.sandbox();
            assert_eq!(number(&setting.acquire("a")), 2);
            made
        }),
    );
    assert_eq!(number(&slow.unwrap()), 2);
    assert_eq!(setting.alive(), [2]);
    assert_eq!(setting.told(), [LifecycleChange::Surplus]);
}

#[test]
fn what_is_made_for_a_task_that_is_released_meanwhile_is_for_that_call_alone() {
    let setting = Setting::new(Strategy::PerTask);
    let create = || {
        setting.release("a");
        setting.sandbox()
    };
    let lease = setting.try_acquire("a", Box::new(create)).unwrap();
    assert_eq!(*lease.tenure(), Tenure::Call);
    assert!(exec(&lease).is_ok());
    drop(lease);
    assert_eq!(setting.alive(), []);
}

#[test]
fn what_is_made_for_an_agent_that_is_released_meanwhile_is_in_its_grace() {
    let setting = Setting::new(Strategy::PerAgent);
    let create = || {
        setting.release("a");
        setting.sandbox()
    };
    drop(setting.try_acquire("a", Box::new(create)).unwrap());
    setting.advance(29);
    assert_eq!(setting.alive(), [1]);
    setting.advance(1);
    assert_eq!(setting.alive(), []);
}

#[test]
fn an_acquisition_that_panics_leaves_nothing_behind() {
    let setting = Setting::new(Strategy::PerTask);
    let panicking = setting.clone();
    let panicked = std::thread::spawn(move || panicking.try_acquire("a", Box::new(|| panic!("no")))).join();
    assert!(panicked.is_err());
    setting.release("a");
    let lease = setting.acquire("a");
    assert!(matches!(lease.tenure(), Tenure::Owner(_)));
}

#[derive(Debug, Clone)]
enum Act {
    Acquire(u8),
    Exec,
    Drop,
    Release(u8),
    Advance(u8),
    Break,
    CleanUp,
}

fn act() -> impl Generator<Value = Act> {
    prop_oneof![
        4 => (0..2_u8).prop_map(Act::Acquire),
        2 => Just(Act::Exec),
        2 => Just(Act::Drop),
        2 => (0..2_u8).prop_map(Act::Release),
        2 => (0..40_u8).prop_map(Act::Advance),
        1 => Just(Act::Break),
        1 => Just(Act::CleanUp),
    ]
}

/// Does it all, and says whether anything but what may be came of it.
fn carry_out(setting: &Setting, acts: &[Act]) {
    let mut leases = Vec::new();
    for act in acts {
        match act {
            Act::Acquire(owner) => match setting.try_acquire(&format!("o{owner}"), setting.create()) {
                Ok(lease) => leases.push(lease),
                Err(error) => assert!(matches!(error, BackendError::Gone), "{error}"),
            },
            Act::Exec => {
                for lease in &leases {
                    let done = exec(lease);
                    assert!(matches!(done, Ok(_) | Err(BackendError::Gone)), "{done:?}");
                }
            }
            Act::Drop => drop(leases.pop()),
            Act::Release(owner) => setting.release(&format!("o{owner}")),
            Act::Advance(seconds) => setting.advance((*seconds).into()),
            Act::Break => {
                let mut record = setting.record();
                let last = record.made;
                record.gone.insert(last);
            }
            Act::CleanUp => setting.lifecycle.cleanup_all(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn whatever_two_do_at_once_every_sandbox_is_destroyed_once_and_none_is_forgotten(
        strategy in prop_oneof![Just(Strategy::PerCall), Just(Strategy::PerTask), Just(Strategy::PerAgent)],
        acts in prop::array::uniform2(prop::collection::vec(act(), 0..60)),
    ) {
        let setting = Setting::new(strategy);
        std::thread::scope(|scope| {
            for acts in &acts {
                let setting = &setting;
                scope.spawn(move || carry_out(setting, acts));
            }
        });
        // All leases are dropped: one sandbox for each owner may be kept, and no more.
        prop_assert!(setting.alive().len() <= 2);
        setting.lifecycle.cleanup_all();
        let record = setting.record();
        let mut destroyed = record.destroyed.clone();
        destroyed.sort_unstable();
        prop_assert_eq!(destroyed, (1..=record.made).collect::<Vec<_>>());
        prop_assert!(record.dropped.is_empty());
    }
}

struct Bell(AtomicUsize);

impl Alarm for Bell {
    fn ring(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        assert!(self.0.load(Ordering::SeqCst) != 1, "the first ring fails");
    }
}

#[test]
fn the_real_clock_rings_in_time_and_after_an_alarm_that_failed() {
    let clock = SystemClock::start().unwrap();
    let bell = Arc::new(Bell(AtomicUsize::new(0)));
    let alarm: Weak<dyn Alarm> = Arc::downgrade(&(Arc::clone(&bell) as Arc<dyn Alarm>));
    let begun = Instant::now();
    clock.wake(begun + Duration::from_secs(3_600), Weak::clone(&alarm));
    clock.wake(begun + Duration::from_millis(40), Weak::clone(&alarm));
    clock.wake(begun + Duration::from_millis(20), alarm);
    belljar_testkit::wait::until(|| bell.0.load(Ordering::SeqCst) == 2);
    assert!(begun.elapsed() >= Duration::from_millis(40));
    drop(clock);
    assert_eq!(bell.0.load(Ordering::SeqCst), 2);
}
