//! Tests of `weighted`: one score, one level.

use super::*;

/// Example of the specification.
pub(super) const WEIGHTED: &str = "
strategy: weighted
initial_level: sandboxed
weights:
  task_difficulty: 0.3
  completion_rate: 0.25
  error_rate: 0.25
  human_feedback: 0.2
promotion_thresholds:
  sandboxed_to_restricted: 0.4
  restricted_to_standard: 0.6
  standard_to_elevated:
    score: 0.8
    requires_human_approval: true
";

fn feedback(score: f64) -> TrustEventKind {
    TrustEventKind::HumanFeedback { score: share(score) }
}

fn score(world: &TrustHistory) -> f64 {
    world.state().score.unwrap().into()
}

#[test]
fn score_is_computed_from_recorded_events_only() {
    let task = |difficulty| TrustEventKind::TaskCompleted { category: None, difficulty, quality: None };
    let (hard, easy, unsaid) = (task(Some(share(1.0))), task(Some(share(0.2))), task(None));
    let no = failed(None);
    for (events, expected) in [
        (vec![], 0.0),
        // A single task counts as one of ten for difficulty and completion, and as one of twenty for recent errors.
        (vec![(1, &hard)], 0.03 + 0.025 + 0.0125),
        (vec![(10, &hard)], 0.3 + 0.25 + 0.125),
        (vec![(20, &hard)], 0.8),
        (vec![(20, &hard), (1, &feedback(1.0))], 1.0),
        (vec![(20, &hard), (1, &feedback(1.0)), (1, &feedback(0.5))], 0.95),
        (vec![(20, &easy)], 0.06 + 0.5),
        // A task of unknown difficulty counts as easy.
        (vec![(20, &unsaid)], 0.5),
        (vec![(10, &unsaid), (10, &hard)], 0.65),
        // All failures count for the completion rate, and recent ones for the error rate.
        (vec![(20, &no)], 0.0),
        (vec![(20, &no), (20, &hard)], 0.3 + 0.125 + 0.25),
        (vec![(20, &hard), (20, &no)], 0.3 + 0.125),
        (vec![(30, &hard), (10, &no)], 0.3 + 0.1875 + 0.125),
        (vec![(3, &feedback(1.0))], 0.2),
    ] {
        let mut world = TrustHistory::new(WEIGHTED);
        events.iter().for_each(|(times, kind)| drop(world.does_times(*times, kind)));
        assert!((score(&world) - expected).abs() < 1e-9, "{events:?}: {}", score(&world));
    }
}

#[test]
fn completion_and_recent_failures_are_separate_measures() {
    let mut world = TrustHistory::new(WEIGHTED);
    world.does_times(60, &failed(None));
    world.does_times(20, &done(None));
    let figures = world.trust.figures(&world.config, None, world.now).unwrap();
    assert_eq!((figures.completion_rate, figures.error_rate), (share(0.25), Share::ZERO));
    let mut world = TrustHistory::new(WEIGHTED);
    world.does_times(60, &done(None));
    world.does_times(20, &failed(None));
    let figures = world.trust.figures(&world.config, None, world.now).unwrap();
    assert_eq!((figures.completion_rate, figures.error_rate), (share(0.75), share(1.0)));
    assert_eq!((figures.tasks_completed, figures.tasks_failed), (60, 20));
}

#[test]
fn score_at_the_threshold_promotes_and_one_below_does_not() {
    let mut world = TrustHistory::new(WEIGHTED);
    // 5 of 10: 0.15 + 0.125 + 0.0625; a feedback of 0.3125 would just reach 0.4.
    world.does_times(5, &done(None));
    world.does(feedback(0.312));
    assert_eq!((world.looks(), score(&world)), (vec![], 0.3999));
    let mut world = TrustHistory::new(WEIGHTED);
    world.does_times(5, &done(None));
    world.does(feedback(0.3125));
    let reached_at = world.now;
    let outcomes = world.looks();
    assert_eq!(score(&world), 0.4);
    assert_eq!(
        reasons(&outcomes),
        [(TrustLevel::Sandboxed, TrustLevel::Restricted, ChangeReason::ScoreThreshold)]
    );
    assert_eq!(changes(&outcomes)[0].details.score, Some(share(0.4)));
    assert_eq!(world.state().last_promoted_at, Some(reached_at));
}

#[test]
fn score_promotes_one_step_per_moment_and_never_to_elevated() {
    let by_feedback = WEIGHTED.replace("task_difficulty: 0.3", "task_difficulty: 0").replace(
        "completion_rate: 0.25\n  error_rate: 0.25\n  human_feedback: 0.2",
        "completion_rate: 0\n  error_rate: 0\n  human_feedback: 1",
    );
    let mut world = TrustHistory::new(&by_feedback);
    world.does(feedback(1.0));
    assert_eq!((score(&world), world.level()), (1.0, TrustLevel::Restricted));
    assert_eq!(world.trust.evaluate(&world.config, world.now), [], "at the same moment");
    let outcomes = world.looks();
    assert_eq!((changes(&outcomes).len(), world.level()), (2, TrustLevel::Standard));
    let proposal = proposed(&outcomes).unwrap();
    assert_eq!((outcomes.len(), proposal.transition), (3, Transition::StandardToElevated));
    assert_eq!((proposal.reason, proposal.details.score), (ChangeReason::ScoreThreshold, Some(Share::MOST)));
    assert_eq!(world.looks_on(), [], "it is proposed once");
    assert_eq!((world.level(), world.state().pending), (TrustLevel::Standard, vec![proposal]));
}

#[test]
fn lower_step_waits_for_approval_if_configured() {
    let yaml = "
strategy: weighted
promotion_thresholds:
  sandboxed_to_restricted: {score: 0.4, requires_human_approval: true}
  restricted_to_standard: {score: 0.6, requires_human_approval: false}
";
    let mut world = TrustHistory::new(yaml);
    assert_eq!(world.level(), TrustLevel::Sandboxed, "it is the lowest where nothing is said");
    world.does_times(20, &done(None));
    let proposal = proposed(&world.looks()).unwrap();
    assert_eq!(world.level(), TrustLevel::Sandboxed);
    let outcomes = world.does(TrustHistory::approval(&proposal));
    assert_eq!(
        reasons(&outcomes),
        [(TrustLevel::Sandboxed, TrustLevel::Restricted, ChangeReason::HumanApproval)]
    );
    assert_eq!(changes(&outcomes)[0].approval_id, Some(Uuid::from_u128(77)));
    world.looks_on();
    assert_eq!(world.level(), TrustLevel::Standard, "and no gate leads on");
}

#[test]
fn weights_summing_above_one_keep_the_score_at_most_one() {
    let yaml = WEIGHTED.replace("human_feedback: 0.2", "human_feedback: 0.21");
    let mut world = TrustHistory::new(&yaml);
    world.does_times(20, &done(None));
    world.does(feedback(1.0));
    assert_eq!(score(&world), 1.0);
    let yaml = WEIGHTED.replace("human_feedback: 0.2", "human_feedback: 0.19");
    let mut world = TrustHistory::new(&yaml);
    world.does_times(20, &done(None));
    world.does(feedback(1.0));
    assert_eq!(score(&world), 0.99);
}

#[test]
fn score_never_demotes() {
    let mut world = TrustHistory::new(WEIGHTED);
    world.does_times(20, &done(None));
    world.looks_on();
    assert_eq!(world.level(), TrustLevel::Standard);
    world.does_times(40, &failed(None));
    world.days(10_000);
    world.looks_on();
    assert_eq!(world.level(), TrustLevel::Standard, "nothing lapses where nothing is to be looked at again");
}

#[test]
fn agent_starts_at_the_configured_level_and_never_elevated() {
    for (initial, hired_with, expected) in [
        ("sandboxed", Some(TrustLevel::Elevated), TrustLevel::Sandboxed),
        ("standard", Some(TrustLevel::Elevated), TrustLevel::Standard),
        ("standard", Some(TrustLevel::Restricted), TrustLevel::Restricted),
        ("standard", None, TrustLevel::Standard),
    ] {
        let yaml = WEIGHTED.replace("initial_level: sandboxed", &format!("initial_level: {initial}"));
        let mut world = TrustHistory::before_hiring(&yaml);
        world.does(TrustEventKind::AgentHired { level: hired_with });
        assert_eq!(world.level(), expected, "{initial} {hired_with:?}");
    }
}
