//! Tests of `milestone`: one level, by completed work.

use super::*;

/// Example of the specification.
pub(super) const MILESTONE: &str = "
strategy: milestone
initial_level: sandboxed
milestones:
  sandboxed_to_restricted:
    tasks_completed: 5
    quality_score_min: 7.0
    auto_promote: true
  restricted_to_standard:
    tasks_completed: 20
    quality_score_min: 8.0
    time_active_days: 7
    auto_promote: true
  standard_to_elevated:
    requires_human_approval: true
    clean_history_days: 14
re_verification:
  enabled: true
  interval_days: 90
  decay_on_idle_days: 30
  decay_on_error_rate: 0.15
";

/// Returns that agent at `standard`.
pub(super) fn standard() -> TrustHistory {
    let mut world = TrustHistory::new(MILESTONE);
    world.does_times(20, &done(None));
    world.days(7);
    world.looks_on();
    assert_eq!(world.level(), TrustLevel::Standard);
    world
}

#[test]
fn milestone_requires_all_of_its_criteria() {
    let with = |quality| TrustEventKind::TaskCompleted { category: None, difficulty: None, quality };
    let to_restricted = (TrustLevel::Sandboxed, TrustLevel::Restricted, ChangeReason::MilestoneAchieved);
    for (times, how_well, expected) in [
        (4, quality(10.0), vec![]),
        (5, quality(7.0), vec![to_restricted]),
        (5, quality(6.9), vec![]),
        (5, None, vec![]),
        (0, None, vec![]),
        (100, quality(10.0), vec![to_restricted]),
    ] {
        let mut world = TrustHistory::new(MILESTONE);
        world.does_times(times, &with(how_well));
        assert_eq!(reasons(&world.looks_on()), expected, "{times} {how_well:?}");
    }
}

#[test]
fn milestone_requires_its_minimum_time() {
    let mut world = TrustHistory::new(MILESTONE);
    world.does_times(20, &done(None));
    world.looks_on();
    assert_eq!(world.level(), TrustLevel::Restricted);
    let hired_at = world.state().created_at.unwrap();
    world.now = hired_at.checked_add(SignedDuration::from_hours(24 * 7)).unwrap();
    let before = world.now.checked_sub(SignedDuration::from_nanos(1)).unwrap();
    assert_eq!(world.trust.clone().evaluate(&world.config, before), []);
    let outcomes = world.does_at_once(TrustEventKind::Evaluated);
    assert_eq!(
        reasons(&outcomes),
        [(TrustLevel::Restricted, TrustLevel::Standard, ChangeReason::MilestoneAchieved)]
    );
    assert_eq!(changes(&outcomes)[0].details.active_days, 7);
}

#[test]
fn step_is_dated_when_its_gate_is_met_regardless_of_evaluations() {
    let mut unwatched = TrustHistory::new(MILESTONE);
    unwatched.does_times(20, &done(None));
    let mut watched = unwatched.clone();
    for _ in 0..40 {
        watched.days(1);
        watched.looks();
    }
    unwatched.now = watched.now;
    let [once, often] = [&unwatched, &watched].map(TrustHistory::replayed);
    let (hired_at, week) = (unwatched.state().created_at.unwrap(), SignedDuration::from_hours(24 * 7));
    let steps: Vec<_> = once.changes.iter().map(|change| (change.new, change.at)).collect();
    let fifth = unwatched.events[5].at;
    let idle_from = unwatched.events[20].at + SignedDuration::from_hours(24 * 30);
    assert_eq!(
        steps,
        [
            (TrustLevel::Restricted, fifth),
            (TrustLevel::Standard, hired_at + week),
            (TrustLevel::Restricted, idle_from)
        ]
    );
    assert_eq!((once.changes, once.trust.state(&unwatched.config)), (often.changes, watched.state()));
    // A proposal has one id, whenever it is computed.
    let ids = |days: i64| {
        let at = hired_at + SignedDuration::from_hours(24 * days);
        let state = replay(&unwatched.config, &agent(), &unwatched.events, at).trust.state(&unwatched.config);
        state.pending.into_iter().map(|proposal| proposal.proposal_id).collect::<Vec<_>>()
    };
    assert_eq!((ids(13).len(), ids(14).len(), ids(15) == ids(14), ids(20) == ids(14)), (0, 1, true, true));
}

#[test]
fn clean_history_is_long_enough_and_free_of_failures() {
    let mut world = standard();
    assert_eq!(world.looks(), [], "seven days are not fourteen");
    world.does(failed(None));
    world.days(13);
    world.does(done(None));
    assert_eq!(world.looks(), []);
    world.days(1);
    let proposal = proposed(&world.looks()).unwrap();
    assert_eq!((proposal.transition, proposal.details.clean_days), (Transition::StandardToElevated, 14));
    assert_eq!((world.level(), proposal.reason), (TrustLevel::Standard, ChangeReason::MilestoneAchieved));
    // Without the failure it would have been sooner.
    let mut world = standard();
    world.days(7);
    assert!(proposed(&world.looks()).is_some());
}

#[test]
fn manual_step_is_proposed_and_step_without_gate_is_not_taken() {
    let yaml = "
strategy: milestone
milestones:
  sandboxed_to_restricted: {auto_promote: false, tasks_completed: 0, quality_score_min: 0}
";
    let mut world = TrustHistory::new(yaml);
    let proposal = proposed(&world.looks()).unwrap();
    assert_eq!(world.level(), TrustLevel::Sandboxed);
    world.does(TrustHistory::approval(&proposal));
    assert_eq!((world.level(), world.looks_on()), (TrustLevel::Restricted, vec![]));
}

#[test]
fn empty_gate_promotes_one_step_per_moment() {
    let yaml = "
strategy: milestone
milestones:
  sandboxed_to_restricted: {tasks_completed: 0, quality_score_min: 0}
  restricted_to_standard: {tasks_completed: 0, quality_score_min: 0}
  standard_to_elevated: {tasks_completed: 0, quality_score_min: 0, requires_human_approval: true}
";
    let mut world = TrustHistory::new(yaml);
    assert_eq!(world.does_at_once(TrustEventKind::Evaluated), [], "at the moment of hiring");
    for expected in [TrustLevel::Restricted, TrustLevel::Standard, TrustLevel::Standard] {
        world.passes(SignedDuration::from_millis(1));
        assert_eq!(world.does_at_once(TrustEventKind::Evaluated).len(), 1);
        assert_eq!(world.does_at_once(TrustEventKind::Evaluated), [], "at the same moment");
        assert_eq!(world.level(), expected);
    }
    assert_eq!(world.state().pending.len(), 1);
}
