//! Properties that hold for all histories of an agent.

use super::milestone::MILESTONE;
use super::per_category::PER_CATEGORY;
use super::weighted::WEIGHTED;
use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::collections::BTreeMap;

/// Next event of a history.
#[derive(Debug, Clone)]
enum NextEvent {
    Is(TrustEventKind),
    /// A user answers the proposal of that number, or an earlier one; true for an approval.
    Answered(usize, bool),
}

const CATEGORIES: [Option<Category>; 4] =
    [None, Some(Category::FileSystem), Some(Category::Deployment), Some(Category::Web)];

/// Strategy with gates that are easily met, so that most kinds of outcomes occur.
const EASY: &str = "
strategy: milestone
milestones:
  sandboxed_to_restricted: {tasks_completed: 1, quality_score_min: 0}
  restricted_to_standard: {tasks_completed: 2, quality_score_min: 2}
  standard_to_elevated: {tasks_completed: 2, quality_score_min: 2, requires_human_approval: true}
re_verification: {enabled: true, interval_days: 7, decay_on_idle_days: 3, decay_on_error_rate: 0.3}
";

const BY_CATEGORY: &str = "
strategy: per_category
initial_levels: {file_system: standard, deployment: sandboxed}
promotion_criteria:
  file_system: {standard_to_elevated: {tasks_completed: 1, quality_score_min: 1, requires_human_approval: true}}
  deployment:
    sandboxed_to_restricted: {tasks_completed: 1, quality_score_min: 0}
    restricted_to_standard: {tasks_completed: 1, quality_score_min: 0}
    standard_to_elevated: {tasks_completed: 1, quality_score_min: 0, requires_human_approval: true}
re_verification: {enabled: true, interval_days: 7, decay_on_idle_days: 3, decay_on_error_rate: 0.3}
";

fn configs() -> impl Generated<Value = TrustConfig> {
    let lapsing = format!("{WEIGHTED}re_verification: {{enabled: true, decay_on_idle_days: 2}}\n");
    let low = lapsing.replace("0.4", "0.05").replace("0.6", "0.1").replace("score: 0.8", "score: 0.15");
    let texts = [EASY, BY_CATEGORY, MILESTONE, PER_CATEGORY, WEIGHTED, &low, "initial_level: restricted"];
    proptest::sample::select(texts.map(config).to_vec())
}

use proptest::strategy::Strategy as Generated;

fn next() -> impl Generated<Value = NextEvent> {
    let category = || proptest::sample::select(CATEGORIES.to_vec());
    let level = || proptest::sample::select(TrustLevel::ALL.to_vec());
    let completed = (category(), proptest::option::of(0..=10_000_u64), proptest::option::of(0..=10_000_u64));
    let completed = completed.prop_map(|(category, difficulty, quality)| TrustEventKind::TaskCompleted {
        category,
        difficulty: difficulty.map(Share::from_steps),
        quality: quality.map(Quality::from_steps),
    });
    let kinds = prop_oneof![
        12 => completed,
        3 => category().prop_map(failed),
        3 => (0..=10_000_u64).prop_map(|steps| TrustEventKind::HumanFeedback { score: Share::from_steps(steps) }),
        12 => Just(TrustEventKind::Evaluated),
        1 => (level(), category()).prop_map(|(level, category)| set(level, category)),
        1 => Just(TrustEventKind::SecurityIncident),
        1 => Just(TrustEventKind::ReVerified { by: UserId::parse("grace").unwrap() }),
        1 => Just(hired()),
    ];
    prop_oneof![
        10 => kinds.prop_map(NextEvent::Is),
        4 => (0..3_usize, proptest::bool::weighted(0.8)).prop_map(|(which, yes)| NextEvent::Answered(which, yes)),
    ]
}

/// History of events, each with the hours before it.
fn history() -> impl Generated<Value = Vec<(u16, NextEvent)>> {
    let hours = prop_oneof![6 => 0..3_u16, 2 => 0..100_u16, 1 => 0..1_000_u16];
    proptest::collection::vec((hours, next()), 0..60)
}

/// Returns an agent with that history, and its outcomes.
fn lived(config: TrustConfig, history: Vec<(u16, NextEvent)>) -> (TrustHistory, Vec<Outcome>) {
    let mut world = TrustHistory::before_hiring("{}");
    world.config = config;
    world.does(hired());
    let (mut outcomes, mut proposals) = (Vec::new(), Vec::new());
    for (hours, next) in history {
        world.passes(SignedDuration::from_hours(hours.into()));
        let kind = match next {
            NextEvent::Is(kind) => kind,
            NextEvent::Answered(which, yes) => {
                let Some(proposal) = proposals.iter().rev().nth(which) else { continue };
                answer(proposal, yes)
            }
        };
        let event = world.event(kind);
        let came = world.trust.apply(&world.config, &event);
        world.events.push(event);
        let came = came.unwrap_or_default();
        proposals.extend(came.iter().filter_map(|outcome| proposed(std::slice::from_ref(outcome))));
        outcomes.extend(came);
    }
    (world, outcomes)
}

fn answer(proposal: &ProposedPromotion, yes: bool) -> TrustEventKind {
    match yes {
        true => TrustHistory::approval(proposal),
        false => TrustEventKind::PromotionDenied {
            approval_id: Uuid::from_u128(78),
            proposal_id: proposal.proposal_id,
        },
    }
}

fn levels(world: &TrustHistory) -> Vec<TrustLevel> {
    let state = world.state();
    state.category_levels.into_values().chain([state.global_level]).collect()
}

/// Control of the following tests: most kinds of outcomes occur in some history.
#[test]
fn generated_histories_reach_every_outcome() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let (config, history) = (configs(), history()).new_tree(&mut runner).unwrap().current();
        let (_, outcomes) = lived(config, history);
        seen.extend(changes(&outcomes).iter().map(|change| (change.new, change.reason)));
    }
    let reasons: std::collections::BTreeSet<_> = seen.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons.len(), 8, "{reasons:?}");
    assert!(seen.contains(&(TrustLevel::Elevated, ChangeReason::HumanApproval)));
    assert!(
        seen.iter().all(|(level, reason)| {
            *level != TrustLevel::Elevated || *reason == ChangeReason::HumanApproval
        })
    );
}

proptest! {
    /// The outcomes alone, which a user sees, explain every level.
    #[test]
    fn elevated_requires_approval_of_that_very_proposal(config in configs(), history in history()) {
        let (world, outcomes) = lived(config, history);
        let mut pending: BTreeMap<Option<Category>, ProposedPromotion> = BTreeMap::new();
        let mut explained: BTreeMap<Option<Category>, TrustLevel> = BTreeMap::new();
        for outcome in &outcomes {
            match outcome {
                Outcome::NeedsApproval(proposal) => {
                    prop_assert_eq!(pending.insert(proposal.category, proposal.clone()), None);
                }
                Outcome::Withdrawn { proposal_id } => {
                    let before = pending.len();
                    pending.retain(|_, proposal| proposal.proposal_id != *proposal_id);
                    prop_assert_eq!(pending.len() + 1, before);
                }
                Outcome::Changed(change) => {
                    let known = explained.insert(change.category, change.new);
                    prop_assert!(known.is_none_or(|known| known == change.old));
                    if change.reason == ChangeReason::HumanApproval {
                        let proposal = pending.remove(&change.category).unwrap();
                        let step = (proposal.transition.from(), proposal.transition.to());
                        prop_assert_eq!((change.old, change.new), step);
                        let event = world.events.iter().find(|event| Some(event.event_id) == change.event_id);
                        let approval = TrustHistory::approval(&proposal);
                        prop_assert_eq!(&event.unwrap().kind, &approval);
                    } else if change.new > change.old {
                        prop_assert!(change.new <= TrustLevel::Standard);
                        let by_itself = Some(change.new) == change.old.next().map(Transition::to);
                        prop_assert!(by_itself || change.reason == ChangeReason::Manual);
                    }
                }
                Outcome::Ignored(_) => {}
            }
        }
        let state = world.state();
        prop_assert_eq!(pending.into_values().collect::<Vec<_>>(), state.pending);
        for (category, level) in explained {
            let shown = category.map_or(state.global_level, |category| state.category_levels[&category]);
            prop_assert_eq!(shown, level);
        }
    }

    /// Without answers and decisions of users, no agent gets beyond the levels that gates lead to automatically.
    #[test]
    fn gate_with_human_approval_is_never_passed_without_it(config in configs(), history in history()) {
        let alone = history.into_iter().filter(|(_, next)| {
            !matches!(next, NextEvent::Answered(..) | NextEvent::Is(TrustEventKind::LevelSet { .. }))
        });
        let (world, outcomes) = lived(config, alone.collect());
        prop_assert!(levels(&world).into_iter().all(|level| level <= TrustLevel::Standard));
        for change in changes(&outcomes).iter().filter(|change| change.new > change.old) {
            let step = change.old.next().unwrap();
            let gate = world.config.gate(change.category, step);
            prop_assert!(gate.is_some_and(|gate| !gate.asks_person) && step.to() == change.new);
        }
    }

    #[test]
    fn replay_is_independent_of_event_order(
        config in configs(), history in history(), hours in 0..500_i64, seed in any::<u64>(),
    ) {
        let (mut world, outcomes) = lived(config, history);
        world.passes(SignedDuration::from_hours(hours));
        let once = world.replayed();
        let mut shuffled = world.events.clone();
        shuffled.sort_by_key(|event| identity::of([seed.to_string().as_str(), &event.event_id.to_string()]));
        prop_assert_eq!(&replay(&world.config, &agent(), &shuffled, world.now), &once);
        // A replay has the same result as the live evaluation.
        let at_last = world.trust.evaluate(&world.config, world.now);
        prop_assert_eq!(&world.trust, &once.trust);
        let all: Vec<Outcome> = outcomes.into_iter().chain(at_last).collect();
        prop_assert_eq!(changes(&all), once.changes);
    }

    /// The trust at each moment of a replayed history equals what was known then.
    #[test]
    fn single_pass_history_equals_the_replay_at_each_moment(
        config in configs(), history in history(), between in proptest::collection::vec(0..200_i64, 1..8),
    ) {
        let (world, _) = lived(config, history);
        let mut all = History::new(&world.config, &agent(), &world.events);
        let mut moment = world.events.iter().map(|event| event.at).min().unwrap_or(world.now);
        for hours in between {
            let known: Vec<_> = world.events.iter().filter(|event| event.at <= moment).cloned().collect();
            prop_assert_eq!(all.at(moment), replay(&world.config, &agent(), &known, moment));
            moment = moment.checked_add(SignedDuration::from_hours(hours)).unwrap();
        }
    }

    #[test]
    fn repeated_evaluation_at_a_moment_changes_nothing(config in configs(), history in history(), hours in 0..500_i64) {
        let (mut world, _) = lived(config, history);
        world.passes(SignedDuration::from_hours(hours));
        world.trust.evaluate(&world.config, world.now);
        let before = world.trust.clone();
        prop_assert_eq!(world.trust.evaluate(&world.config, world.now), vec![]);
        prop_assert_eq!(&world.trust, &before);
        // Evaluating an earlier time changes nothing, either.
        let back = world.now.checked_sub(SignedDuration::from_hours(1)).unwrap();
        prop_assert_eq!(world.trust.evaluate(&world.config, back), vec![]);
        prop_assert_eq!(&world.trust, &before);
    }

    /// Time only lowers levels, and the number of evaluations makes no difference.
    #[test]
    fn time_only_lowers_trust_regardless_of_evaluations(
        config in configs(), history in history(), looks in proptest::collection::vec(0..300_i64, 0..20),
    ) {
        let (mut world, _) = lived(config, history);
        // Without gates nothing can be earned by an evaluation.
        world.config.gates.clear();
        let mut unwatched = world.clone();
        let mut lost = Vec::new();
        for hours in looks {
            let before = levels(&world);
            world.passes(SignedDuration::from_hours(hours));
            lost.extend(changes(&world.trust.evaluate(&world.config, world.now)));
            prop_assert!(levels(&world).iter().zip(&before).all(|(after, before)| after <= before));
        }
        // The last evaluation is at the same time as the only one.
        lost.extend(changes(&world.trust.evaluate(&world.config, world.now)));
        let at_once = changes(&unwatched.trust.evaluate(&world.config, world.now));
        prop_assert_eq!(lost, at_once);
        prop_assert_eq!(levels(&world), levels(&unwatched));
    }

    /// Of two agents with the same history, the one with one more failure has no higher level, if nothing else differs.
    #[test]
    fn failure_never_raises_a_level(config in configs(), history in history()) {
        let (world, _) = lived(config, history);
        let (mut clean, mut worse) = (world.clone(), world);
        worse.does_at_once(failed(None));
        clean.days(1);
        worse.days(1);
        let [clean_levels, worse_levels] = [&mut clean, &mut worse].map(|world| {
            world.trust.evaluate(&world.config, world.now);
            levels(world)
        });
        // A failure counts as activity, so it may prevent a loss by idleness, but no other one.
        let is_idle = clean.replayed().changes.iter().any(|change| change.reason == ChangeReason::IdleDecay);
        prop_assert!(is_idle || worse_levels.iter().zip(&clean_levels).all(|(worse, clean)| worse <= clean));
    }
}
