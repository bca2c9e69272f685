//! `trust` in the configuration file: how agents earn higher levels (`docs/contracts/tools.md#t17`).
//!
//! ```yaml
//! trust:
//!   strategy: milestone                # disabled, weighted, per_category, milestone
//!   initial_level: sandboxed
//!   milestones:
//!     sandboxed_to_restricted: {tasks_completed: 5, quality_score_min: 7.0}
//!     standard_to_elevated: {requires_human_approval: true, clean_history_days: 14}
//!   re_verification: {enabled: true}
//!   jobs: {an_hour: 4, a_day: 12, hours_at_level: 24}
//! ```

mod step;

use super::gate::{Gate, Weights};
use super::jobs::JobRules;
use super::record::Record;
use crate::access::EarnedLevels;
use belljar_contract::category::Category;
use belljar_contract::trust::{Quality, Share, Transition, TrustLevel};
use belljar_contract::yaml::{
    Members, MistakeLog, Node, below, boolean, by_category, decimal, one_of, quoted, whole,
};
use std::collections::BTreeMap;

/// Configuration of progressive trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustConfig {
    strategy: Strategy,
    /// Initial levels: for all categories, or for each of some.
    begins: BTreeMap<Option<Category>, TrustLevel>,
    pub(super) gates: BTreeMap<(Option<Category>, Transition), Gate>,
    weights: Option<Weights>,
    re_verification: ReVerification,
    jobs: JobRules,
}

/// Strategy by which higher levels are earned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// None: only users set levels.
    Disabled,
    /// By a score.
    Weighted,
    /// By work in a category, for that category.
    PerCategory,
    /// By all work together.
    Milestone,
}

/// Rules by which trust lapses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReVerification {
    is_enabled: bool,
    /// Interval of verifications.
    pub(super) interval_days: u32,
    /// Days of idleness that cost a level.
    pub(super) decay_on_idle_days: u32,
    /// Maximum error rate that costs no level.
    decay_on_error_rate: Share,
}

/// Members of each strategy.
const MEMBERS: [(Strategy, &[&str]); 4] = [
    (Strategy::Disabled, &["initial_level"]),
    (Strategy::Weighted, &["initial_level", "weights", "promotion_thresholds", "re_verification", "jobs"]),
    (Strategy::PerCategory, &["initial_levels", "promotion_criteria", "re_verification", "jobs"]),
    (Strategy::Milestone, &["initial_level", "milestones", "re_verification", "jobs"]),
];

/// Default minimum quality.
pub(super) const USUAL_QUALITY: Quality = step::USUAL_QUALITY;

/// Maximum difference of the sum of weights from 1, in thousandths.
const TOLERANCE: u64 = 10;

/// Maximum span in days.
const LONGEST: u64 = 3_650;

// === impl TrustConfig ===

impl TrustConfig {
    /// Reads the section. Errors in it go to `log`.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let Some(mut members) = Members::open(node, log) else { return Self::default() };
        let written = members.optional("strategy", |node, log| one_of(node, log, &Strategy::NAMES));
        let is_known = written.is_some() || members.node("strategy").is_none();
        let strategy = written.unwrap_or(Strategy::Disabled);
        let initial = members.or("initial_level", strategy.usual_level(), |node, log| {
            level(node, log, strategy == Strategy::Disabled)
        });
        let initials = members.or("initial_levels", BTreeMap::new(), |n, log| {
            by_category(n, log, |n, log| level(n, log, false))
        });
        let weights = members.or("weights", Weights::default(), weights);
        let thresholds = members.or("promotion_thresholds", BTreeMap::new(), step::thresholds);
        let criteria = members
            .or("promotion_criteria", BTreeMap::new(), |node, log| by_category(node, log, step::criteria));
        let milestones = members.or("milestones", BTreeMap::new(), step::milestones);
        let re_verification = members.section("re_verification", ReVerification::read);
        let jobs = members.section("jobs", JobRules::read);
        if is_known {
            strategy.check(node, &mut members);
        }
        for category in criteria.keys().filter(|category| !initials.contains_key(category)) {
            let Some(node) = members.node("promotion_criteria") else { continue };
            let found = format!("criteria for {}", quoted(category.as_str()));
            members.log.note(node.position, &node.path, found, "categories that `initial_levels` has");
        }
        members.finish();
        let of_all = |gates: BTreeMap<Transition, Gate>| {
            gates.into_iter().map(|(transition, gate)| ((None, transition), gate)).collect()
        };
        let one = || BTreeMap::from([(None, initial)]);
        let (begins, gates, weights) = match strategy {
            Strategy::Disabled => (one(), BTreeMap::new(), None),
            Strategy::Weighted => (one(), of_all(thresholds), Some(weights)),
            Strategy::PerCategory => {
                let begins = initials.into_iter().map(|(category, level)| (Some(category), level)).collect();
                (begins, by_each(criteria), None)
            }
            Strategy::Milestone => (one(), of_all(milestones), None),
        };
        Self { strategy, begins, gates, weights, re_verification, jobs }
    }

    /// Returns the strategy.
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Returns true if nothing is earned, so that only users set levels.
    pub fn is_disabled(&self) -> bool {
        self.strategy == Strategy::Disabled
    }

    /// Returns the levels of an agent without recorded events; `None` if nothing is earned.
    pub fn of_newcomer(&self) -> Option<EarnedLevels> {
        let level = self.begins.values().min().filter(|_| !self.is_disabled())?.access();
        let begins = self.begins.iter();
        let by_category = begins.filter_map(|(category, level)| Some(((*category)?, level.access())));
        Some(EarnedLevels { level, by_category: by_category.collect(), setback: None })
    }

    /// Returns the initial levels.
    pub(super) fn begins(&self) -> impl Iterator<Item = (Option<Category>, TrustLevel)> {
        self.begins.iter().map(|(category, level)| (*category, *level))
    }

    /// Returns the gate of a step; a step without one isn't possible.
    pub(super) fn gate(&self, category: Option<Category>, transition: Transition) -> Option<&Gate> {
        self.gates.get(&(category, transition))
    }

    /// Returns the weights of the score, if the strategy has one.
    pub(super) fn weights(&self) -> Option<&Weights> {
        self.weights.as_ref()
    }

    /// Returns the rules by which trust lapses, if it does.
    pub(super) fn re_verification(&self) -> Option<&ReVerification> {
        Some(&self.re_verification).filter(|decay| decay.is_enabled && !self.is_disabled())
    }

    /// Returns the rules by which completed jobs count.
    pub(super) fn jobs(&self) -> &JobRules {
        &self.jobs
    }

    /// Returns true if an agent's error rate costs it a level.
    pub(super) fn fails_too_often(&self, record: &Record) -> bool {
        self.re_verification().is_some_and(|decay| record.error_rate() > decay.decay_on_error_rate)
    }
}

impl Default for TrustConfig {
    fn default() -> Self {
        let strategy = Strategy::Disabled;
        Self {
            strategy,
            begins: BTreeMap::from([(None, strategy.usual_level())]),
            gates: BTreeMap::new(),
            weights: None,
            re_verification: ReVerification::default(),
            jobs: JobRules::default(),
        }
    }
}

type Gates = BTreeMap<(Option<Category>, Transition), Gate>;

fn by_each(criteria: BTreeMap<Category, BTreeMap<Transition, Gate>>) -> Gates {
    let each = criteria.into_iter().flat_map(|(category, gates)| {
        gates.into_iter().map(move |(transition, gate)| ((Some(category), transition), gate))
    });
    each.collect()
}

/// Reads a level. Where levels are earned, none may begin with the one that requires an approval.
fn level(node: &Node, log: &mut MistakeLog, with_highest: bool) -> Option<TrustLevel> {
    let known = TrustLevel::ALL.map(|level| (level.as_str(), level));
    one_of(node, log, if with_highest { &known } else { &known[..known.len() - 1] })
}

fn weights(node: &Node, log: &mut MistakeLog) -> Option<Weights> {
    let mut members = Members::open(node, log)?;
    let usual = Weights::default();
    let mut weight = |name, usual| members.or(name, usual, |node, log| decimal(node, log, 1));
    let weights = Weights {
        task_difficulty: weight("task_difficulty", usual.task_difficulty),
        completion_rate: weight("completion_rate", usual.completion_rate),
        error_rate: weight("error_rate", usual.error_rate),
        human_feedback: weight("human_feedback", usual.human_feedback),
    };
    let sum = weights.sum();
    if sum.abs_diff(1_000) > TOLERANCE {
        let found = format!("weights that make {}.{:03}", sum / 1_000, sum % 1_000);
        members.log.note(node.position, &node.path, found, "weights that make 1, give or take 0.01");
    }
    members.finish();
    Some(weights)
}

// === impl Strategy ===

impl Strategy {
    /// All strategies, by name.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("disabled", Self::Disabled),
        ("weighted", Self::Weighted),
        ("per_category", Self::PerCategory),
        ("milestone", Self::Milestone),
    ];

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Weighted => "weighted",
            Self::PerCategory => "per_category",
            Self::Milestone => "milestone",
        }
    }

    fn usual_level(self) -> TrustLevel {
        if self == Self::Disabled { TrustLevel::Standard } else { TrustLevel::Sandboxed }
    }

    /// Reports members of other strategies, and missing required ones.
    fn check(self, node: &Node, members: &mut Members<'_, '_>) {
        let own: Vec<&str> =
            MEMBERS.iter().filter(|(of, _)| *of == self).flat_map(|(_, own)| own.iter().copied()).collect();
        let others: Vec<&str> = MEMBERS.iter().flat_map(|(_, all)| all.iter().copied()).collect();
        for (at, name) in others.iter().enumerate().filter(|(_, name)| !own.contains(name)) {
            let Some(other) = members.node(name).filter(|_| !others[..at].contains(name)) else { continue };
            let found = format!("`{name}` beside `strategy: {}`", self.as_str());
            members.log.note(other.position, &other.path, found, "what belongs to that strategy");
        }
        let required: &[&str] = match self {
            Self::Disabled => &[],
            Self::Weighted => &["promotion_thresholds"],
            Self::PerCategory => &["initial_levels", "promotion_criteria"],
            Self::Milestone => &["milestones"],
        };
        for name in required {
            if members.node(name).is_some() {
                continue;
            }
            let found = format!("`strategy: {}` without it", self.as_str());
            members.log.note(node.position, &below(&node.path, name), found, "this member");
        }
    }
}

// === impl ReVerification ===

impl ReVerification {
    fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let usual = Self::default();
        let Some(mut members) = Members::open(node, log) else { return usual };
        let span = |node: &Node, log: &mut MistakeLog| u32::try_from(whole(node, log, 1..=LONGEST)?).ok();
        let read = Self {
            is_enabled: members.or("enabled", usual.is_enabled, boolean),
            interval_days: members.or("interval_days", usual.interval_days, span),
            decay_on_idle_days: members.or("decay_on_idle_days", usual.decay_on_idle_days, span),
            decay_on_error_rate: members.or("decay_on_error_rate", usual.decay_on_error_rate, step::share),
        };
        members.finish();
        read
    }
}

impl Default for ReVerification {
    fn default() -> Self {
        Self {
            is_enabled: false,
            interval_days: 90,
            decay_on_idle_days: 30,
            decay_on_error_rate: Share::from_steps(1_500),
        }
    }
}
