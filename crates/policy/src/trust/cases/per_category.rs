//! Tests of `per_category`: levels of single categories, by work in each.

use super::*;

/// Example of the specification.
pub(super) const PER_CATEGORY: &str = "
strategy: per_category
initial_levels:
  file_system: restricted
  git: restricted
  code_execution: sandboxed
  deployment: sandboxed
  database: sandboxed
  terminal: sandboxed
promotion_criteria:
  file_system:
    restricted_to_standard:
      tasks_completed: 10
      quality_score_min: 7.0
  deployment:
    sandboxed_to_restricted:
      tasks_completed: 20
      quality_score_min: 8.5
      requires_human_approval: true
";

const TWO: &str = "
strategy: per_category
initial_levels: {web: restricted, database: standard}
promotion_criteria:
  web:
    restricted_to_standard: {}
    standard_to_elevated: {tasks_completed: 12, requires_human_approval: true}
  database:
    standard_to_elevated: {requires_human_approval: true}
re_verification: {enabled: true}
";

const WEB: Option<Category> = Some(Category::Web);
const DATABASE: Option<Category> = Some(Category::Database);

fn level(world: &TrustHistory, category: Category) -> AccessLevel {
    let level = world.trust.level_for(category);
    assert_eq!(level, world.state().level_for(category));
    level
}

#[test]
fn category_step_requires_its_number_and_quality_of_tasks() {
    let yaml = "
strategy: per_category
initial_levels: {web: sandboxed}
promotion_criteria: {web: {sandboxed_to_restricted: {tasks_completed: 3, quality_score_min: 9.0}}}
";
    for (times, how_well, expected) in [
        (3, 9.0, AccessLevel::Restricted),
        (2, 9.0, AccessLevel::Sandboxed),
        (100, 8.999, AccessLevel::Sandboxed),
    ] {
        let mut world = TrustHistory::new(yaml);
        let quality = quality(how_well);
        world.does_times(times, &TrustEventKind::TaskCompleted { category: WEB, difficulty: None, quality });
        world.looks();
        assert_eq!(level(&world, Category::Web), expected, "{times} {how_well}");
    }
}

#[test]
fn category_starts_at_its_initial_level_or_the_lowest() {
    let world = TrustHistory::new(PER_CATEGORY);
    assert_eq!(level(&world, Category::FileSystem), AccessLevel::Restricted);
    assert_eq!(level(&world, Category::VersionControl), AccessLevel::Restricted);
    assert_eq!(level(&world, Category::Terminal), AccessLevel::Sandboxed);
    assert_eq!(level(&world, Category::Web), AccessLevel::Sandboxed);
    assert_eq!((world.level(), world.state().category_levels.len()), (TrustLevel::Sandboxed, 6));
    let world = TrustHistory::new(TWO);
    assert_eq!(level(&world, Category::Terminal), AccessLevel::Restricted);
}

#[test]
fn work_counts_only_in_its_own_category() {
    let mut world = TrustHistory::new(PER_CATEGORY);
    world.does_times(9, &done(Some(Category::FileSystem)));
    world.does_times(50, &done(Some(Category::VersionControl)));
    world.does_times(50, &done(Some(Category::Web)));
    world.does_times(50, &done(None));
    assert_eq!(world.looks_on(), []);
    world.does(done(Some(Category::FileSystem)));
    let outcomes = world.looks_on();
    assert_eq!(
        reasons(&outcomes),
        [(TrustLevel::Restricted, TrustLevel::Standard, ChangeReason::MilestoneAchieved)]
    );
    let change = &changes(&outcomes)[0];
    assert_eq!((change.category, change.details.tasks_completed), (Some(Category::FileSystem), 10));
    assert_eq!(level(&world, Category::FileSystem), AccessLevel::Standard);
    assert_eq!(level(&world, Category::VersionControl), AccessLevel::Restricted);
    assert_eq!(level(&world, Category::Deployment), AccessLevel::Sandboxed);
    assert_eq!(world.replayed().trust.state(&world.config), world.state());
}

#[test]
fn unrated_tasks_count_as_zero_in_the_average_quality() {
    let with = |quality| TrustEventKind::TaskCompleted {
        category: Some(Category::FileSystem),
        difficulty: None,
        quality,
    };
    for (tasks, is_promoted) in [
        (vec![(10, quality(7.0))], true),
        (vec![(10, quality(6.999))], false),
        (vec![(5, quality(4.0)), (5, quality(10.0))], true),
        (vec![(9, quality(10.0)), (1, None)], true),
        (vec![(6, quality(10.0)), (4, None)], false),
        (vec![(100, None)], false),
    ] {
        let mut world = TrustHistory::new(PER_CATEGORY);
        tasks.iter().for_each(|(times, quality)| drop(world.does_times(*times, &with(*quality))));
        world.looks_on();
        let expected = if is_promoted { AccessLevel::Standard } else { AccessLevel::Restricted };
        assert_eq!(level(&world, Category::FileSystem), expected, "{tasks:?}");
    }
}

#[test]
fn category_step_waits_for_approval_if_configured() {
    let mut world = TrustHistory::new(PER_CATEGORY);
    world.does_times(20, &done(Some(Category::Deployment)));
    let outcomes = world.looks_on();
    let proposal = proposed(&outcomes).unwrap();
    assert_eq!(
        (proposal.category, proposal.transition),
        (Some(Category::Deployment), Transition::SandboxedToRestricted)
    );
    assert_eq!((outcomes.len(), level(&world, Category::Deployment)), (1, AccessLevel::Sandboxed));
    world.does(TrustHistory::approval(&proposal));
    assert_eq!(level(&world, Category::Deployment), AccessLevel::Restricted);
}

#[test]
fn answer_for_one_category_does_not_apply_to_another() {
    let mut world = TrustHistory::new(TWO);
    world.does_times(12, &done(WEB));
    world.does_times(12, &done(DATABASE));
    world.looks_on();
    let pending = world.state().pending;
    let [of_web, of_database] = pending.as_slice() else { panic!("{pending:?}") };
    assert_eq!((of_web.category, of_database.category), (WEB, DATABASE));
    let crossed = TrustEventKind::PromotionApproved {
        approval_id: Uuid::from_u128(1),
        proposal_id: of_web.proposal_id,
        transition: of_web.transition,
        category: DATABASE,
    };
    assert_eq!(world.does(crossed), [Outcome::Ignored(IgnoredReason::NotProposed)]);
    let of_all = TrustEventKind::PromotionApproved {
        approval_id: Uuid::from_u128(1),
        proposal_id: of_web.proposal_id,
        transition: of_web.transition,
        category: None,
    };
    assert_eq!(world.does(of_all), [Outcome::Ignored(IgnoredReason::NotProposed)]);
    world.does(TrustHistory::approval(of_web));
    assert_eq!(level(&world, Category::Web), AccessLevel::Elevated);
    assert_eq!(level(&world, Category::Database), AccessLevel::Standard);
    assert_eq!(level(&world, Category::Terminal), AccessLevel::Standard, "the lowest of both");
}

#[test]
fn failures_demote_their_category_or_all_if_uncategorised() {
    let mut world = TrustHistory::new(TWO);
    assert_eq!(world.does(failed(WEB)), []);
    let outcomes = world.does(failed(WEB));
    assert_eq!(
        reasons(&outcomes),
        [(TrustLevel::Restricted, TrustLevel::Sandboxed, ChangeReason::ErrorRate)]
    );
    assert_eq!(changes(&outcomes)[0].details.error_rate, share(0.2));
    assert_eq!(level(&world, Category::Database), AccessLevel::Standard);
    for whose in [None, Some(Category::Terminal)] {
        let mut world = TrustHistory::new(TWO);
        let outcomes = world.does_times(2, &failed(whose));
        assert_eq!(changes(&outcomes).len(), 2, "{whose:?}");
        assert_eq!(level(&world, Category::Database), AccessLevel::Restricted);
    }
}

#[test]
fn user_may_set_the_level_of_any_category() {
    let mut world = TrustHistory::new(TWO);
    world.does(set(TrustLevel::Sandboxed, DATABASE));
    assert_eq!(level(&world, Category::Database), AccessLevel::Sandboxed);
    assert_eq!(level(&world, Category::Web), AccessLevel::Restricted);
    let outcomes = world.does(set(TrustLevel::Standard, Some(Category::Terminal)));
    assert_eq!(reasons(&outcomes), [(TrustLevel::Sandboxed, TrustLevel::Standard, ChangeReason::Manual)]);
    assert_eq!(level(&world, Category::Terminal), AccessLevel::Standard);
    let outcomes = world.does(set(TrustLevel::Restricted, None));
    assert_eq!((changes(&outcomes).len(), world.level()), (2, TrustLevel::Restricted));
    // With a single level there are no categories.
    let mut world = TrustHistory::new("strategy: disabled");
    let outcomes = world.does(set(TrustLevel::Sandboxed, WEB));
    assert_eq!(outcomes, [Outcome::Ignored(IgnoredReason::NoCategories)]);
}
