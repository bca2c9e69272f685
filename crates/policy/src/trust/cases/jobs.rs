//! Tests of completed jobs, which no user has judged: which of them count, and how soon.

use super::*;
use belljar_contract::id::{JobId, TaskId};

const FIVE: &str = "strategy: milestone
milestones: {sandboxed_to_restricted: {tasks_completed: 5, quality_score_min: 0}}
";

/// Checked job with that content and a task of its own.
fn job(number: u128) -> TrustEventKind {
    job_of(number, number, true)
}

fn job_of(task: u128, content: u128, is_checked: bool) -> TrustEventKind {
    let task_id = TaskId::parse(&Uuid::from_u128(task).to_string()).unwrap();
    TrustEventKind::JobCompleted { category: None, task_id, content: Uuid::from_u128(content), is_checked }
}

fn ignored(outcomes: &[Outcome]) -> Option<IgnoredReason> {
    outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Ignored(why) => Some(*why),
        _ => None,
    })
}

#[test]
fn burst_of_jobs_earns_no_step_and_distinct_jobs_over_days_do() {
    let mut world = TrustHistory::new(FIVE);
    for number in 0..100 {
        world.passes(SignedDuration::from_millis(16));
        let outcomes = world.does_at_once(job(number));
        assert_eq!(ignored(&outcomes), (number >= 4).then_some(IgnoredReason::TooFast), "{number}");
    }
    world.days(2);
    assert_eq!(world.looks(), [], "four have counted");
    // Control: one more job that counts.
    assert_eq!(ignored(&world.does(job(1_000))), None);
    world.looks();
    assert_eq!(world.level(), TrustLevel::Restricted);
    assert_eq!(world.replayed().trust, world.trust);
}

#[test]
fn job_counts_once_for_its_content_and_once_for_its_task() {
    let mut world = TrustHistory::new(FIVE);
    for _ in 0..25 {
        world.passes(SignedDuration::from_hours(7));
        world.does_at_once(job_of(1, 1, true));
        world.does_at_once(job_of(2, 1, true));
        world.does_at_once(job_of(1, 2, true));
    }
    let why = world.replayed().ignored;
    assert_eq!((world.looks(), why.len()), (Vec::new(), 74));
    assert!(why.iter().all(|(_, why)| *why == IgnoredReason::Repeated), "{why:?}");
}

#[test]
fn unchecked_job_counts_only_if_configured() {
    for (rules, level) in
        [("", TrustLevel::Sandboxed), ("jobs: {needs_check: false}", TrustLevel::Restricted)]
    {
        let mut world = TrustHistory::new(&format!("{FIVE}{rules}\n"));
        for number in 0..5 {
            world.days(1);
            world.does(job_of(number, number, false));
        }
        world.looks();
        assert_eq!(world.level(), level, "{rules}");
    }
}

#[test]
fn jobs_count_up_to_the_hourly_and_daily_limits() {
    let rules = "jobs: {an_hour: 2, a_day: 3, hours_at_level: 0}";
    let mut world = TrustHistory::new(&format!("{FIVE}{rules}\n"));
    let mut counts = |after: i64, number: u128| {
        world.passes(SignedDuration::from_mins(after));
        ignored(&world.does_at_once(job(number))).is_none()
    };
    assert!(counts(1, 1) && counts(1, 2) && !counts(1, 3));
    assert!(counts(58, 4), "an hour after the first");
    assert!(!counts(120, 5), "three within a day");
    assert!(counts(24 * 60, 6));
}

#[test]
fn jobs_promote_after_a_day_at_a_level_and_assessments_at_once() {
    let mut world = TrustHistory::new(&format!("{FIVE}jobs: {{an_hour: 100, a_day: 100}}\n"));
    for number in 0..5 {
        world.does(job(number));
    }
    assert_eq!(world.looks(), []);
    world.passes(SignedDuration::from_hours(23));
    assert_eq!(world.looks(), []);
    world.passes(SignedDuration::from_hours(1));
    world.looks();
    assert_eq!(world.level(), TrustLevel::Restricted);
    // Control: judged tasks count as specified.
    let mut judged = TrustHistory::new(FIVE);
    judged.does_times(5, &done(None));
    judged.looks();
    assert_eq!(judged.level(), TrustLevel::Restricted);
}

#[test]
fn jobs_that_counted_before_a_demotion_count_for_nothing_after_it() {
    let mut world =
        TrustHistory::new(&format!("{FIVE}jobs: {{an_hour: 100, a_day: 100, hours_at_level: 0}}\n"));
    let all = |world: &mut TrustHistory| (0..5).for_each(|number| drop(world.does(job(number))));
    all(&mut world);
    world.looks();
    assert_eq!(world.level(), TrustLevel::Restricted);
    world.does(TrustEventKind::SecurityIncident);
    all(&mut world);
    world.days(3);
    assert_eq!(world.looks(), []);
}

#[test]
fn assessed_job_counts_once_with_its_difficulty_and_quality() {
    let yaml = "strategy: milestone
milestones: {sandboxed_to_restricted: {tasks_completed: 2, quality_score_min: 7.0}}
";
    let job_id = |number: u128| JobId::parse(&Uuid::from_u128(number).to_string()).unwrap();
    let ended = |world: &mut TrustHistory, number: u128| {
        world.passes(SignedDuration::from_mins(1));
        let event = TrustEvent { event_id: end_of_job(&job_id(number)), ..world.event(job(number)) };
        world.trust.apply(&world.config, &event).unwrap();
        world.events.push(event);
    };
    let assessed = |number: u128, how_well: f64| TrustEventKind::JobAssessed {
        job_id: job_id(number),
        difficulty: Some(share(0.5)),
        quality: quality(how_well),
        by: UserId::parse("grace").unwrap(),
    };
    let mut world = TrustHistory::new(yaml);
    (0..2).for_each(|number| ended(&mut world, number));
    world.days(2);
    assert_eq!(world.looks(), [], "without a quality rating");
    assert_eq!(world.does(assessed(0, 6.0)), []);
    assert_eq!(ignored(&world.does(assessed(0, 10.0))), Some(IgnoredReason::Assessed));
    assert_eq!(ignored(&world.does(assessed(7, 10.0))), Some(IgnoredReason::NotCounted));
    assert_eq!((world.looks(), world.level()), (vec![], TrustLevel::Sandboxed));
    // Judged jobs need no day at the level: 6.0 and 8.0 average to 7.0.
    let mut soon = TrustHistory::new(yaml);
    (0..2).for_each(|number| ended(&mut soon, number));
    for world in [&mut world, &mut soon] {
        world.does(assessed(1, 8.0));
    }
    soon.does(assessed(0, 6.0));
    assert_eq!((world.level(), soon.level()), (TrustLevel::Restricted, TrustLevel::Restricted));
    assert_eq!(world.replayed().changes.last().unwrap().details.quality, Quality::of_whole(7));
    // A job from before a demotion doesn't count any more.
    ended(&mut soon, 3);
    soon.does(TrustEventKind::SecurityIncident);
    assert_eq!(ignored(&soon.does(assessed(3, 10.0))), Some(IgnoredReason::NotCounted));
}

#[test]
fn job_rules_require_an_earning_strategy() {
    insta::assert_snapshot!(mistakes("strategy: disabled\njobs: {an_hour: 1}"), @"2:7: jobs: found `jobs` beside `strategy: disabled`; expected what belongs to that strategy");
    let wrong = mistakes(&format!("{FIVE}jobs: {{an_hour: 0}}"));
    assert!(wrong.contains("jobs.an_hour: found"), "{wrong}");
}
