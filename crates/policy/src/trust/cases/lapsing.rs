//! Tests of losing trust: by idleness, by failures, by a verification that finds too little, by an incident.

use super::milestone::{MILESTONE, standard};
use super::weighted::WEIGHTED;
use super::*;

const DOWN: [(TrustLevel, TrustLevel); 2] =
    [(TrustLevel::Standard, TrustLevel::Restricted), (TrustLevel::Restricted, TrustLevel::Sandboxed)];

fn idle_after(world: &mut TrustHistory, span: SignedDuration) -> Vec<(TrustLevel, TrustLevel, ChangeReason)> {
    let active_at = world.state().last_active_at.unwrap();
    world.now = active_at.checked_add(span).unwrap();
    reasons(&world.does_at_once(TrustEventKind::Evaluated))
}

#[test]
fn each_idle_span_costs_a_level_regardless_of_evaluation_times() {
    let day = SignedDuration::from_hours(24);
    let idle = |(from, to)| (from, to, ChangeReason::IdleDecay);
    let mut world = standard();
    assert_eq!(idle_after(&mut world, day * 30 - SignedDuration::from_nanos(1)), []);
    assert_eq!(idle_after(&mut world, day * 30), [idle(DOWN[0])]);
    assert_eq!(idle_after(&mut world, day * 59), []);
    assert_eq!(idle_after(&mut world, day * 60), [idle(DOWN[1])]);
    assert_eq!(idle_after(&mut world, day * 3_000), [], "nothing is below");
    let mut often = standard();
    for hours in 0..(24 * 61) {
        idle_after(&mut often, SignedDuration::from_hours(hours).max(day * 8));
    }
    let mut once = standard();
    assert_eq!(idle_after(&mut once, day * 61), [idle(DOWN[0]), idle(DOWN[1])]);
    assert_eq!(once.level(), often.level());
    let at =
        |world: &TrustHistory| world.replayed().changes.iter().map(|change| change.at).collect::<Vec<_>>();
    assert_eq!(at(&once), at(&often), "each at the end of its span");
    assert_eq!(world.replayed().changes.last().unwrap().details.idle_days, 60);
}

#[test]
fn only_own_activity_ends_idleness() {
    let by = UserId::parse("grace").unwrap();
    for (kind, is_activity) in [
        (done(None), true),
        (failed(None), true),
        (TrustEventKind::Evaluated, false),
        (TrustEventKind::HumanFeedback { score: Share::MOST }, false),
        (TrustEventKind::ReVerified { by }, false),
        (set(TrustLevel::Standard, None), false),
    ] {
        let mut world = standard();
        world.days(20);
        let before = world.state().last_active_at;
        world.does(kind.clone());
        assert_eq!(world.state().last_active_at != before, is_activity, "{kind:?}");
        world.days(9);
        world.looks();
        assert_eq!(world.level() == TrustLevel::Standard, is_activity, "{kind:?}");
    }
}

#[test]
fn exceeded_error_rate_costs_a_level_at_once_and_resets_the_record() {
    let mut world = standard();
    // Three failures of twenty are tolerated.
    assert_eq!(world.does_times(3, &failed(None)), []);
    let outcomes = world.does(failed(None));
    assert_eq!(reasons(&outcomes), [(TrustLevel::Standard, TrustLevel::Restricted, ChangeReason::ErrorRate)]);
    let change = &changes(&outcomes)[0];
    assert_eq!((change.details.error_rate, change.details.tasks_failed), (share(0.2), 4));
    assert_eq!(change.event_id, Some(world.events.last().unwrap().event_id));
    assert_eq!(world.looks_on(), [], "what was earned before is gone");
    assert_eq!(world.does(failed(None)), [], "and so are the failures that it was for");
    world.does_times(20, &done(None));
    assert_eq!(world.looks_on(), []);
    world.days(7);
    assert_eq!(reasons(&world.looks_on()).len(), 1);
    // Control: without re-verification nothing is lost.
    let mut world = TrustHistory::new(&MILESTONE.replace("enabled: true", "enabled: false"));
    world.does(set(TrustLevel::Standard, None));
    assert_eq!(world.does_times(20, &failed(None)), []);
}

#[test]
fn agent_with_a_demoting_error_rate_is_not_promoted() {
    let mut world = TrustHistory::new(MILESTONE);
    world.does_times(4, &failed(None));
    assert_eq!(world.looks_on(), [], "the lowest has no level to lose");
    world.does_times(16, &done(None));
    assert_eq!(world.looks_on(), [], "four of twenty");
    world.does(done(None));
    assert_eq!(reasons(&world.looks_on()).len(), 1, "three of twenty");
}

#[test]
fn due_verification_judges_work_since_the_last_one() {
    let failed = ChangeReason::ReVerificationFailed;
    let with = |quality| TrustEventKind::TaskCompleted { category: None, difficulty: None, quality };
    // The step to `standard` requires 8.0.
    for (how_well, expected) in [
        (quality(8.0), vec![]),
        (quality(7.999), vec![(TrustLevel::Standard, TrustLevel::Restricted, failed)]),
        (None, vec![(TrustLevel::Standard, TrustLevel::Restricted, failed)]),
    ] {
        let mut world = TrustHistory::new(MILESTONE);
        world.does(set(TrustLevel::Standard, None));
        for _ in 0..4 {
            world.days(20);
            assert_eq!(world.does(with(how_well)), []);
        }
        world.days(12);
        assert_eq!(reasons(&world.does(TrustEventKind::Evaluated)), expected, "{how_well:?}");
        let state = world.state();
        let due = SignedDuration::from_hours(24 * 90);
        assert_eq!(state.last_verified_at, Some(state.created_at.unwrap().checked_add(due).unwrap()));
    }
}

#[test]
fn work_counts_for_the_next_verification_only() {
    let mut world = TrustHistory::new(MILESTONE);
    world.does(set(TrustLevel::Restricted, None));
    let with =
        |number| TrustEventKind::TaskCompleted { category: None, difficulty: None, quality: quality(number) };
    // Less than the next step requires.
    world.does_times(50, &with(7.9));
    for days in [29, 29, 29, 29] {
        world.days(days);
        // No worse than before, but little work.
        world.does(with(7.5));
    }
    let mut outcomes = Vec::new();
    for days in [0, 29, 29, 7] {
        world.days(days);
        outcomes.extend(world.does(with(6.0)));
    }
    assert_eq!(
        reasons(&outcomes),
        [(TrustLevel::Restricted, TrustLevel::Sandboxed, ChangeReason::ReVerificationFailed)]
    );
    let second = SignedDuration::from_hours(24 * 180);
    assert_eq!(changes(&outcomes)[0].at, world.state().created_at.unwrap().checked_add(second).unwrap());
}

#[test]
fn manual_verification_postpones_the_next_one() {
    let unsaid = TrustEventKind::TaskCompleted { category: None, difficulty: None, quality: None };
    let mut world = standard();
    for _ in 0..4 {
        world.days(20);
        world.does_times(6, &unsaid);
    }
    let mut other = world.clone();
    world.does(TrustEventKind::ReVerified { by: UserId::parse("grace").unwrap() });
    assert_eq!(world.state().last_verified_at, Some(world.now));
    for world in [&mut world, &mut other] {
        world.days(4);
        world.does(unsaid.clone());
    }
    assert_eq!((world.level(), other.level()), (TrustLevel::Standard, TrustLevel::Restricted));
    for _ in 0..3 {
        world.days(29);
        world.does(unsaid.clone());
    }
    assert_eq!(world.level(), TrustLevel::Restricted, "and no further than to the next");
}

#[test]
fn verification_after_a_demotion_covers_work_since_the_last_one() {
    let rarely_idle = MILESTONE.replace("decay_on_idle_days: 30", "decay_on_idle_days: 365");
    for (tasks, expected) in [(20, TrustLevel::Restricted), (0, TrustLevel::Sandboxed)] {
        let mut world = TrustHistory::new(&rarely_idle);
        world.does(set(TrustLevel::Standard, None));
        world.does_times(tasks, &done(None));
        world.does(set(TrustLevel::Restricted, None));
        world.days(90);
        world.looks();
        assert_eq!(world.level(), expected, "{tasks}");
    }
}

#[test]
fn weighted_strategy_verifies_the_default_quality() {
    let yaml = format!("{WEIGHTED}re_verification: {{enabled: true, decay_on_idle_days: 3650}}\n");
    for (how_well, expected) in [(7.0, TrustLevel::Restricted), (6.999, TrustLevel::Sandboxed)] {
        let mut world = TrustHistory::new(&yaml);
        world.does(set(TrustLevel::Restricted, None));
        let kind =
            TrustEventKind::TaskCompleted { category: None, difficulty: None, quality: quality(how_well) };
        world.does(kind);
        world.days(90);
        world.does(done(None));
        assert_eq!(world.level(), expected);
    }
}

#[test]
fn incident_drops_to_the_lowest_level_and_discards_earlier_work() {
    let mut world = standard();
    world.days(14);
    assert!(proposed(&world.looks()).is_some());
    let pending = world.state().pending[0].proposal_id;
    let outcomes = world.does(TrustEventKind::SecurityIncident);
    assert_eq!(
        reasons(&outcomes),
        [(TrustLevel::Standard, TrustLevel::Sandboxed, ChangeReason::SecurityIncident)]
    );
    assert_eq!(outcomes[1..], [Outcome::Withdrawn { proposal_id: pending }]);
    assert_eq!(world.looks_on(), []);
    world.does_times(5, &done(None));
    world.looks_on();
    assert_eq!(world.level(), TrustLevel::Restricted);
    // An agent at the lowest level loses its record.
    let mut world = TrustHistory::new(MILESTONE);
    world.does_times(4, &done(None));
    assert_eq!(world.does(TrustEventKind::SecurityIncident), []);
    world.does(done(None));
    assert_eq!(world.looks_on(), []);
}

#[test]
fn level_lost_at_a_moment_is_not_regained_at_it() {
    let yaml = "
strategy: milestone
milestones:
  sandboxed_to_restricted: {tasks_completed: 0, quality_score_min: 0}
  restricted_to_standard: {tasks_completed: 0, quality_score_min: 0}
re_verification: {enabled: true}
";
    let mut world = TrustHistory::new(yaml);
    world.looks_on();
    let mut outcomes = Vec::new();
    let hired_at = world.state().created_at.unwrap();
    world.now = hired_at.checked_add(SignedDuration::from_hours(24 * 30)).unwrap();
    outcomes.extend(world.does_at_once(TrustEventKind::Evaluated));
    assert_eq!(reasons(&outcomes), [(TrustLevel::Standard, TrustLevel::Restricted, ChangeReason::IdleDecay)]);
    // Control: a moment later nothing prevents the step.
    assert_eq!(reasons(&world.looks()).len(), 1);
}

#[test]
fn evaluation_over_unbounded_idle_time_terminates() {
    let mut world = standard();
    let hired_at = world.state().created_at.unwrap();
    assert_eq!(changes(&world.trust.evaluate(&world.config, Timestamp::MAX)).len(), 2);
    let state = world.state();
    assert_eq!((state.global_level, state.as_of), (TrustLevel::Sandboxed, Some(Timestamp::MAX)));
    let verified = state.last_verified_at.unwrap();
    let spans = verified.duration_since(hired_at).as_hours();
    assert_eq!(spans % (24 * 90), 0, "where it would be by single steps");
    assert!(Timestamp::MAX.duration_since(verified).as_hours() < 24 * 90);
}
