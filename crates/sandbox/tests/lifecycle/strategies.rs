//! What each strategy does.

use crate::double::{Setting, exec, number};
use belljar_sandbox::backend::BackendError;
use belljar_sandbox::config::{LifecycleConfig, Strategy};
use belljar_sandbox::correlation::{Correlation, CorrelationId};
use belljar_sandbox::event::LifecycleChange;
use belljar_sandbox::lifecycle::{Claim, Tenure};
use std::time::Duration;

const ALL: [Strategy; 3] = [Strategy::PerCall, Strategy::PerTask, Strategy::PerAgent];

#[test]
fn a_call_has_a_fresh_sandbox_that_goes_with_its_lease() {
    let setting = Setting::new(Strategy::PerCall);
    let (first, second) = (setting.acquire("a"), setting.acquire("a"));
    assert_eq!((number(&first), number(&second)), (1, 2));
    assert!(!first.is_degraded());
    drop(first);
    assert_eq!(setting.alive(), [2]);
    drop(second);
    assert_eq!(setting.record().destroyed, [1, 2]);
}

#[test]
fn a_task_has_one_sandbox_until_it_is_released_and_then_none_at_once() {
    let setting = Setting::new(Strategy::PerTask);
    let first = setting.acquire("a");
    let second = setting.acquire("a");
    let other = setting.acquire("b");
    assert_eq!([number(&first), number(&second), number(&other)], [1, 1, 2]);
    setting.release("a");
    assert_eq!(setting.alive(), [2]);
    assert!(matches!(exec(&second), Err(BackendError::Gone)));
    assert_eq!(number(&setting.acquire("a")), 3);
}

#[test]
fn an_agent_that_comes_back_within_its_grace_finds_its_sandbox_warm() {
    let setting = Setting::new(Strategy::PerAgent);
    drop(setting.acquire("a"));
    setting.release("a");
    setting.advance(29);
    assert_eq!(number(&setting.acquire("a")), 1);
    // Taken up again, it is not destroyed when the grace would have been over.
    setting.advance(60);
    assert_eq!(setting.alive(), [1]);
    setting.release("a");
    setting.advance(30);
    assert_eq!(setting.record().destroyed, [1]);
    assert_eq!(number(&setting.acquire("a")), 2);
}

#[test]
fn a_second_release_begins_the_grace_anew() {
    let setting = Setting::new(Strategy::PerAgent);
    drop(setting.acquire("a"));
    setting.release("a");
    setting.advance(20);
    setting.release("a");
    setting.advance(29);
    assert_eq!(setting.alive(), [1]);
    setting.advance(1);
    assert_eq!(setting.alive(), []);
}

#[test]
fn what_runs_on_when_the_grace_is_over_goes_with_its_sandbox() {
    let setting = Setting::new(Strategy::PerAgent);
    let lease = setting.acquire("a");
    let running = exec(&lease).unwrap();
    setting.release("a");
    setting.advance(30);
    assert_eq!(setting.alive(), []);
    assert!(matches!(exec(&lease), Err(BackendError::Gone)));
    drop(running);
}

#[test]
fn without_grace_a_released_sandbox_is_destroyed_at_once() {
    let grace_period = Duration::ZERO;
    let setting = Setting::of(LifecycleConfig { grace_period, ..LifecycleConfig::default() });
    drop(setting.acquire("a"));
    setting.release("a");
    assert_eq!(setting.alive(), []);
}

#[test]
fn a_sandbox_that_nobody_releases_is_destroyed_when_nothing_was_done_in_it_for_long() {
    for strategy in [Strategy::PerTask, Strategy::PerAgent] {
        let setting = Setting::new(strategy);
        let lease = setting.acquire("a");
        setting.advance(299);
        drop(exec(&lease).unwrap());
        setting.advance(299);
        assert_eq!(setting.alive(), [1]);
        // It is held, but nothing is done in it.
        setting.advance(1);
        assert_eq!(setting.alive(), [], "{strategy}");
        assert_eq!(setting.told(), [LifecycleChange::Idle]);
        assert!(matches!(exec(&lease), Err(BackendError::Gone)));
    }
}

#[test]
fn a_sandbox_in_which_something_runs_is_not_idle() {
    let setting = Setting::new(Strategy::PerTask);
    let lease = setting.acquire("a");
    let running = exec(&lease).unwrap();
    setting.advance(10_000);
    assert_eq!(setting.alive(), [1]);
    drop(running);
    setting.advance(299);
    assert_eq!(setting.alive(), [1]);
    setting.advance(1);
    assert_eq!(setting.alive(), []);
}

#[test]
fn without_a_longest_idle_time_a_sandbox_is_kept_for_ever() {
    let setting = Setting::of(LifecycleConfig { max_idle: None, ..LifecycleConfig::default() });
    drop(setting.acquire("a"));
    setting.advance(1_000_000);
    assert_eq!(setting.alive(), [1]);
}

#[test]
fn the_owner_is_the_one_that_is_named_or_else_the_agent_or_the_task() {
    let id = |text| CorrelationId::parse(text).ok();
    let correlation = Correlation { agent_id: id("agent"), task_id: id("task"), ..Correlation::default() };
    for (strategy, expected) in [(Strategy::PerAgent, "agent"), (Strategy::PerTask, "task")] {
        let setting = Setting::new(strategy);
        let claim = Claim { owner: None, correlation: &correlation };
        let lease = setting.lifecycle.acquire(&claim, setting.create()).unwrap();
        assert_eq!(*lease.tenure(), Tenure::Owner(id(expected).unwrap()));
        let named = id("named");
        let claim = Claim { owner: named.as_ref(), correlation: &correlation };
        let lease = setting.lifecycle.acquire(&claim, setting.create()).unwrap();
        assert_eq!(*lease.tenure(), Tenure::Owner(named.unwrap()));
    }
}

#[test]
fn a_call_without_an_owner_gets_a_sandbox_for_itself_alone_and_says_so() {
    for strategy in [Strategy::PerTask, Strategy::PerAgent] {
        let setting = Setting::new(strategy);
        let nobody = Claim { owner: None, correlation: &Correlation::default() };
        let lease = setting.lifecycle.acquire(&nobody, setting.create()).unwrap();
        assert!(lease.is_degraded());
        assert_eq!(*lease.tenure(), Tenure::Call);
        assert_eq!(setting.told(), [LifecycleChange::Degraded]);
        setting.lifecycle.release(&nobody);
        assert_eq!(setting.alive(), [1]);
        drop(lease);
        assert_eq!(setting.alive(), []);
        // The strategy stays what it is for whoever is known.
        let known = setting.acquire("a");
        assert!(!known.is_degraded());
        drop(known);
        assert_eq!(setting.alive(), [2]);
    }
}

#[test]
fn a_kept_sandbox_that_is_gone_is_replaced() {
    let setting = Setting::new(Strategy::PerAgent);
    drop(setting.acquire("a"));
    setting.record().gone.insert(1);
    setting.advance(10);
    assert_eq!(setting.told(), [LifecycleChange::Gone]);
    assert_eq!(setting.record().destroyed, [1]);
    // One that is found gone in use is replaced without waiting for a check.
    let lease = setting.acquire("a");
    setting.record().gone.insert(2);
    assert!(matches!(exec(&lease), Err(BackendError::Gone)));
    assert_eq!(number(&setting.acquire("a")), 3);
}

#[test]
fn a_kept_sandbox_that_gives_no_answer_is_given_a_second_chance() {
    let setting = Setting::new(Strategy::PerAgent);
    drop(setting.acquire("a"));
    setting.record().unreachable.insert(1);
    setting.advance(10);
    setting.record().unreachable.clear();
    setting.advance(10);
    setting.record().unreachable.insert(1);
    setting.advance(10);
    assert_eq!(number(&setting.acquire("a")), 1);
    setting.advance(10);
    assert_eq!(setting.record().destroyed, [1]);
}

#[test]
fn a_sandbox_that_can_not_be_made_is_nobodys() {
    for strategy in ALL {
        let setting = Setting::new(strategy);
        let fails = || Box::new(|| Err(BackendError::Create("no room".into())));
        assert!(matches!(setting.try_acquire("a", fails()), Err(BackendError::Create(_))));
        assert_eq!(number(&setting.acquire("a")), 1);
    }
}

#[test]
fn cleaning_up_destroys_everything_once_and_what_is_being_made_the_moment_it_is_made() {
    for strategy in ALL {
        let setting = Setting::new(strategy);
        let (held, other) = (setting.acquire("a"), setting.acquire("b"));
        let swept = setting.try_acquire(
            "c",
            Box::new(|| {
                let made = setting.sandbox();
                setting.lifecycle.cleanup_all();
                made
            }),
        );
        assert!(matches!(swept, Err(BackendError::Gone)));
        assert_eq!(setting.alive(), []);
        setting.lifecycle.cleanup_all();
        drop((held, other));
        let mut destroyed = setting.record().destroyed.clone();
        destroyed.sort_unstable();
        assert_eq!(destroyed, [1, 2, 3]);
        assert_eq!(number(&setting.acquire("a")), 4);
    }
}

#[test]
fn what_can_not_be_destroyed_is_told_and_hinders_nothing() {
    for strategy in ALL {
        let setting = Setting::new(strategy);
        let leases = (setting.acquire("a"), setting.acquire("b"));
        setting.record().destroying_fails = true;
        setting.lifecycle.cleanup_all();
        assert_eq!(setting.told(), [LifecycleChange::NotDestroyed; 2]);
        assert_eq!(setting.record().destroyed.len(), 2);
        drop(leases);
    }
}

#[test]
fn however_often_it_is_used_few_alarms_are_set() {
    let setting = Setting::new(Strategy::PerAgent);
    for _ in 0..1_000 {
        drop(exec(&setting.acquire("a")).unwrap());
        setting.release("a");
        setting.advance(1);
    }
    assert!(setting.clock.alarms() <= 3, "{}", setting.clock.alarms());
}

#[test]
fn alarms_that_ring_early_are_not_set_again_and_again() {
    let grace_period = Duration::from_secs(5);
    let setting = Setting::of(LifecycleConfig { grace_period, ..LifecycleConfig::default() });
    let lease = setting.acquire("a");
    let _running = exec(&lease).unwrap();
    for _ in 0..100 {
        drop(setting.acquire("b"));
        setting.release("b");
        setting.advance(7);
    }
    assert!(setting.clock.alarms() <= 3, "{}", setting.clock.alarms());
}

#[test]
fn one_that_is_discarded_is_destroyed_whoever_uses_it_and_its_owner_gets_another() {
    for strategy in ALL {
        let setting = Setting::new(strategy);
        let (first, other) = (setting.acquire("a"), setting.acquire("b"));
        let beside = (strategy != Strategy::PerCall).then(|| setting.acquire("a"));
        first.discard("nobody knows what runs in it");
        assert_eq!(setting.alive(), [number(&other)], "{strategy:?}");
        assert!(beside.is_none_or(|beside| matches!(exec(&beside), Err(BackendError::Gone))));
        assert_eq!(number(&setting.acquire("a")), 3);
        let told = if strategy == Strategy::PerCall { Vec::new() } else { vec![LifecycleChange::Gone] };
        assert_eq!(setting.told(), told);
    }
}
