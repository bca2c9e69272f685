//! Tests of trust, by examples and by properties.

mod approvals;
mod configuration;
mod earned;
mod jobs;
mod lapsing;
mod milestone;
mod per_category;
mod properties;
mod weighted;

use super::*;
use belljar_contract::id::UserId;
use belljar_contract::trust::{
    ChangeReason, Quality, Share, Transition, TrustChange, TrustEvent, TrustEventKind,
};
use belljar_contract::yaml::{MistakeLog, parse};
use jiff::SignedDuration;

/// Maximum number of evaluations in a row with a result; more would be a bug.
const MOST_LOOKS: usize = 100;

/// Agent, its recorded events and their outcomes.
#[derive(Debug, Clone)]
struct TrustHistory {
    config: TrustConfig,
    trust: TrustTracker,
    events: Vec<TrustEvent>,
    now: Timestamp,
    /// Outcomes that fell due since the last evaluation, at their own times.
    unseen: Vec<Outcome>,
}

fn config(yaml: &str) -> TrustConfig {
    let mut log = MistakeLog::default();
    let config = parse(yaml.as_bytes(), &mut log).map(|node| TrustConfig::read(&node, &mut log));
    log.finish().unwrap();
    config.unwrap()
}

fn mistakes(yaml: &str) -> String {
    let mut log = MistakeLog::default();
    let _ = parse(yaml.as_bytes(), &mut log).map(|node| TrustConfig::read(&node, &mut log));
    log.finish().expect_err("a mistake").to_string()
}

fn agent() -> AgentId {
    AgentId::parse("ada").unwrap()
}

fn hired() -> TrustEventKind {
    TrustEventKind::AgentHired { level: None }
}

fn quality(number: f64) -> Option<Quality> {
    Some(Quality::try_from(number).unwrap())
}

fn share(number: f64) -> Share {
    Share::try_from(number).unwrap()
}

/// Completed task of the best quality.
fn done(category: Option<Category>) -> TrustEventKind {
    TrustEventKind::TaskCompleted { category, difficulty: Some(share(1.0)), quality: quality(10.0) }
}

fn failed(category: Option<Category>) -> TrustEventKind {
    TrustEventKind::TaskFailed { category }
}

fn set(level: TrustLevel, category: Option<Category>) -> TrustEventKind {
    let by = UserId::parse("grace").unwrap();
    TrustEventKind::LevelSet { level, category, reason: "for a reason".into(), by }
}

/// Returns the changes among some outcomes.
fn changes(outcomes: &[Outcome]) -> Vec<TrustChange> {
    let changes = outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Changed(change) => Some(change.clone()),
        _ => None,
    });
    changes.collect()
}

fn reasons(outcomes: &[Outcome]) -> Vec<(TrustLevel, TrustLevel, ChangeReason)> {
    changes(outcomes).iter().map(|change| (change.old, change.new, change.reason)).collect()
}

fn proposed(outcomes: &[Outcome]) -> Option<ProposedPromotion> {
    outcomes.iter().find_map(|outcome| match outcome {
        Outcome::NeedsApproval(proposal) => Some(proposal.clone()),
        _ => None,
    })
}

fn is_earned(outcome: &Outcome) -> bool {
    let reason = match outcome {
        Outcome::Changed(change) => change.reason,
        Outcome::NeedsApproval(proposal) => proposal.reason,
        Outcome::Withdrawn { .. } | Outcome::Ignored(_) => return false,
    };
    matches!(reason, ChangeReason::MilestoneAchieved | ChangeReason::ScoreThreshold)
}

// === impl TrustHistory ===

impl TrustHistory {
    /// Creates an agent that has just been hired.
    fn new(yaml: &str) -> Self {
        let mut world = Self::before_hiring(yaml);
        world.does(hired());
        world
    }

    fn before_hiring(yaml: &str) -> Self {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        Self {
            config: config(yaml),
            trust: TrustTracker::new(agent()),
            events: Vec::new(),
            now,
            unseen: Vec::new(),
        }
    }

    fn event(&self, kind: TrustEventKind) -> TrustEvent {
        let event_id = Uuid::from_u128(self.events.len() as u128 + 1);
        TrustEvent { at: self.now, event_id, agent_id: agent(), kind }
    }

    /// Applies an event one minute later.
    #[track_caller]
    fn does(&mut self, kind: TrustEventKind) -> Vec<Outcome> {
        self.passes(SignedDuration::from_mins(1));
        self.does_at_once(kind)
    }

    /// Returns the outcomes of the event itself; an evaluation also returns what was earned until then.
    #[track_caller]
    fn does_at_once(&mut self, kind: TrustEventKind) -> Vec<Outcome> {
        let is_look = kind == TrustEventKind::Evaluated;
        let event = self.event(kind);
        let outcomes = self.trust.apply(&self.config, &event).unwrap();
        self.events.push(event);
        let (earned, own) = outcomes.into_iter().partition(is_earned);
        self.unseen.extend::<Vec<_>>(earned);
        let seen = if is_look { std::mem::take(&mut self.unseen) } else { Vec::new() };
        seen.into_iter().chain::<Vec<_>>(own).collect()
    }

    #[track_caller]
    fn does_times(&mut self, times: usize, kind: &TrustEventKind) -> Vec<Outcome> {
        (0..times).flat_map(|_| self.does(kind.clone())).collect()
    }

    /// Records an evaluation one minute later.
    #[track_caller]
    fn looks(&mut self) -> Vec<Outcome> {
        self.does(TrustEventKind::Evaluated)
    }

    /// Evaluates until there are no more outcomes.
    #[track_caller]
    fn looks_on(&mut self) -> Vec<Outcome> {
        let mut all = Vec::new();
        for _ in 0..MOST_LOOKS {
            let outcomes = self.looks();
            if outcomes.is_empty() {
                return all;
            }
            all.extend(outcomes);
        }
        panic!("there is no end to what comes of it: {all:?}");
    }

    fn passes(&mut self, time: SignedDuration) {
        self.now = self.now.checked_add(time).unwrap();
    }

    fn days(&mut self, days: i64) {
        self.passes(SignedDuration::from_hours(24 * days));
    }

    fn approval(proposal: &ProposedPromotion) -> TrustEventKind {
        TrustEventKind::PromotionApproved {
            approval_id: Uuid::from_u128(77),
            proposal_id: proposal.proposal_id,
            transition: proposal.transition,
            category: proposal.category,
        }
    }

    fn level(&self) -> TrustLevel {
        self.state().global_level
    }

    fn state(&self) -> TrustState {
        self.trust.state(&self.config)
    }

    fn replayed(&self) -> Replay {
        replay(&self.config, &agent(), &self.events, self.now)
    }
}

#[test]
fn agent_that_was_not_hired_has_no_trust() {
    let mut world = TrustHistory::before_hiring("strategy: disabled\ninitial_level: elevated");
    for kind in [done(None), TrustEventKind::Evaluated, set(TrustLevel::Elevated, None)] {
        let event = world.event(kind);
        assert_eq!(world.trust.apply(&world.config, &event), Err(IgnoredReason::NotHired));
    }
    assert_eq!(world.trust, TrustTracker::new(agent()));
    assert_eq!(world.trust.evaluate(&world.config, world.now), []);
    assert_eq!(world.trust.level_for(Category::Web), AccessLevel::Sandboxed);
    // Control.
    world.does(hired());
    assert_eq!(world.trust.level_for(Category::Web), AccessLevel::Elevated);
}

#[test]
fn disabled_trust_strategy_uses_configured_and_manual_levels() {
    for (yaml, level, expected) in [
        ("{}", None, "standard"),
        ("initial_level: restricted", None, "restricted"),
        ("initial_level: restricted", Some(TrustLevel::Elevated), "elevated"),
        ("strategy: disabled", Some(TrustLevel::Sandboxed), "sandboxed"),
    ] {
        let mut world = TrustHistory::before_hiring(yaml);
        world.does(TrustEventKind::AgentHired { level });
        let mut outcomes = world.does_times(100, &done(None));
        outcomes.extend(world.does_times(100, &failed(None)));
        world.days(1_000);
        outcomes.extend(world.looks());
        assert_eq!((world.level().as_str(), outcomes), (expected, vec![]), "{yaml}");
        let incident = world.does(TrustEventKind::SecurityIncident);
        assert_eq!(incident, [Outcome::Ignored(IgnoredReason::Disabled)]);
        assert_eq!((world.level().as_str(), world.state().score), (expected, None));
        let said = world.does(set(TrustLevel::Sandboxed, None));
        assert_eq!(
            (world.level(), said.len()),
            (TrustLevel::Sandboxed, usize::from(expected != "sandboxed"))
        );
    }
    assert_eq!(TrustConfig::default(), config("{}"));
    assert_eq!(TrustConfig::default().strategy(), Strategy::Disabled);
}

#[test]
fn foreign_duplicate_or_late_event_changes_nothing() {
    let mut world = TrustHistory::new("initial_level: restricted");
    world.does(done(None));
    let before = world.trust.clone();
    let last = world.events.last().unwrap().clone();
    let kind = || set(TrustLevel::Elevated, None);
    let early = world.now.checked_sub(SignedDuration::from_nanos(1)).unwrap();
    for (event, why) in [
        (
            TrustEvent { agent_id: AgentId::parse("eve").unwrap(), ..world.event(kind()) },
            IgnoredReason::OtherAgent,
        ),
        (TrustEvent { kind: kind(), ..last.clone() }, IgnoredReason::Duplicate),
        (TrustEvent { at: early, ..world.event(kind()) }, IgnoredReason::Late),
        (TrustEvent { event_id: Uuid::nil(), ..world.event(kind()) }, IgnoredReason::Late),
        (world.event(hired()), IgnoredReason::HiredAlready),
    ] {
        assert_eq!(world.trust.apply(&world.config, &event), Err(why));
        assert_eq!(world.trust, before);
    }
    // An event before an evaluated time is late, too; an event at that very time is not.
    world.trust.evaluate(&world.config, world.now);
    assert_eq!(world.does_at_once(set(TrustLevel::Sandboxed, None)).len(), 1);
    world.trust.evaluate(&world.config, world.now.checked_add(SignedDuration::from_nanos(1)).unwrap());
    let late = world.event(set(TrustLevel::Standard, None));
    assert_eq!(world.trust.apply(&world.config, &late), Err(IgnoredReason::Late));
}

#[test]
fn replay_reports_ignored_events() {
    let mut world = TrustHistory::new("initial_level: restricted");
    let mut events = world.events.clone();
    world.passes(SignedDuration::from_mins(1));
    let id = Uuid::from_u128(50);
    let low = TrustEvent { event_id: id, ..world.event(set(TrustLevel::Sandboxed, None)) };
    let high = TrustEvent { at: world.now.checked_add(SignedDuration::from_mins(1)).unwrap(), ..low.clone() };
    let again = TrustEvent { kind: set(TrustLevel::Standard, None), ..high };
    let future = Uuid::from_u128(60);
    let at = world.now.checked_add(SignedDuration::from_hours(1)).unwrap();
    let yet = TrustEvent { at, event_id: future, ..world.event(set(TrustLevel::Standard, None)) };
    events.extend([again, yet, low]);
    world.passes(SignedDuration::from_mins(2));
    let replay = replay(&world.config, &agent(), &events, world.now);
    assert_eq!(replay.trust.level_for(Category::Web), AccessLevel::Sandboxed);
    assert_eq!(replay.ignored, [(id, IgnoredReason::Duplicate), (future, IgnoredReason::NotYet)]);
    // Each with its own reason; the event that counted has none.
    let why = |id| replay.ignored(id);
    let hired = world.events[0].event_id;
    assert_eq!(
        [why(id), why(future), why(hired)],
        [Some(IgnoredReason::Duplicate), Some(IgnoredReason::NotYet), None]
    );
    assert_eq!(replay.changes.len(), 1);
}

#[test]
fn each_ignored_reason_has_a_name() {
    use IgnoredReason::{
        Disabled, Duplicate, HiredAlready, Late, NoCategories, NotHired, NotJustified, NotProposed, NotYet,
        OtherAgent,
    };
    let all = [
        OtherAgent,
        Late,
        Duplicate,
        NotYet,
        NotHired,
        HiredAlready,
        Disabled,
        NoCategories,
        NotProposed,
        NotJustified,
    ];
    let told: Vec<String> = all.iter().map(|why| format!("{}: {why}", why.code())).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    other_agent: the event is about another agent
    late: the event is older than an already recorded event or evaluation
    duplicate: an event with this id is already recorded
    not_yet: the event's time is in the future
    not_hired: the agent has not been hired
    hired_already: the agent has been hired already
    disabled: trust is disabled: only a user's decision changes a level
    no_categories: no category has a level of its own
    not_proposed: no such promotion is proposed, or its proposal was withdrawn
    not_justified: the proposed promotion is no longer justified
    ");
}
