//! Gates of steps, such as `sandboxed_to_restricted`, in the three formats of the strategies.

use super::super::gate::{Criteria, Gate, StepRequirements};
use super::LONGEST;
use belljar_contract::trust::{Quality, Share, Transition};
use belljar_contract::yaml::{Members, MistakeLog, Node, Value, boolean, decimal, place, thousandths, whole};
use std::collections::BTreeMap;

/// Gates of steps.
type Steps = BTreeMap<Transition, Gate>;

/// Expected formats of a score.
const SCORE: &str = "a number from 0 to 1, or `score` and perhaps `requires_human_approval`";
const SCORE_AND_PERSON: &str = "`score` and `requires_human_approval: true`";
const PERSON: &str = "`true`, as the level elevated requires a user's approval";
const ONE_OF_BOTH: &str = "`true` for one of `auto_promote` and `requires_human_approval`";

pub(super) const USUAL_QUALITY: Quality = Quality::of_whole(7);

/// Maximum number of required tasks.
const MOST_TASKS: u64 = 1_000_000;

/// Default criteria.
const USUAL_CRITERIA: Criteria =
    Criteria { tasks_completed: 10, quality_min: USUAL_QUALITY, time_active_days: 0, clean_history_days: 0 };
const USUAL_MILESTONE: Criteria = Criteria { tasks_completed: 5, ..USUAL_CRITERIA };

/// `promotion_thresholds`
pub(super) fn thresholds(node: &Node, log: &mut MistakeLog) -> Option<Steps> {
    let steps = steps(node, log, threshold)?;
    let scores: Vec<StepRequirements> = steps.values().map(|gate| gate.needs).collect();
    for (transition, pair) in steps.keys().skip(1).zip(scores.windows(2)) {
        if let [StepRequirements::Score(lower), StepRequirements::Score(higher)] = pair
            && higher <= lower
        {
            let found = format!("{higher} for `{transition}`, and {lower} before it");
            log.note(node.position, place(node), found, "a higher score for each further step");
        }
    }
    Some(steps)
}

/// `promotion_criteria` of a category
pub(super) fn criteria(node: &Node, log: &mut MistakeLog) -> Option<Steps> {
    if matches!(&node.value, Value::Mapping(members) if members.is_empty()) {
        log.note(node.position, place(node), "no step", "one at least, such as `sandboxed_to_restricted`");
    }
    steps(node, log, |transition, node, log| {
        let mut members = Members::open(node, log)?;
        let tasks_completed = members.or("tasks_completed", USUAL_CRITERIA.tasks_completed, tasks);
        let quality_min = members.or("quality_score_min", USUAL_CRITERIA.quality_min, quality);
        let asks_person = approval(transition, &mut members).unwrap_or_default();
        members.finish();
        let criteria = Criteria { tasks_completed, quality_min, ..USUAL_CRITERIA };
        Some(Gate { needs: StepRequirements::Record(criteria), asks_person })
    })
}

/// `milestones`
pub(super) fn milestones(node: &Node, log: &mut MistakeLog) -> Option<Steps> {
    steps(node, log, |transition, node, log| {
        let mut members = Members::open(node, log)?;
        let usual = USUAL_MILESTONE;
        let span = |node: &Node, log: &mut MistakeLog| u32::try_from(whole(node, log, 0..=LONGEST)?).ok();
        let criteria = Criteria {
            tasks_completed: members.or("tasks_completed", usual.tasks_completed, tasks),
            quality_min: members.or("quality_score_min", usual.quality_min, quality),
            time_active_days: members.or("time_active_days", usual.time_active_days, span),
            clean_history_days: members.or("clean_history_days", usual.clean_history_days, span),
        };
        let is_automatic = members.optional("auto_promote", boolean);
        let asks_person = approval(transition, &mut members);
        if let (Some(automatic), Some(asks)) = (is_automatic, asks_person)
            && automatic == asks
        {
            let found = format!("`{automatic}` for both");
            members.log.note(node.position, place(node), found, ONE_OF_BOTH);
        }
        members.finish();
        // A step that isn't automatic requires an approval.
        let asks_person = asks_person.unwrap_or(is_automatic == Some(false));
        Some(Gate { needs: StepRequirements::Record(criteria), asks_person })
    })
}

/// Reads a share between 0 and 1.
pub(super) fn share(node: &Node, log: &mut MistakeLog) -> Option<Share> {
    decimal(node, log, 1).map(share_of)
}

fn share_of(thousandths: u64) -> Share {
    Share::from_steps(thousandths * 10)
}

fn steps(
    node: &Node,
    log: &mut MistakeLog,
    mut read: impl FnMut(Transition, &Node, &mut MistakeLog) -> Option<Gate>,
) -> Option<Steps> {
    let mut members = Members::open(node, log)?;
    let mut steps = Steps::new();
    for transition in Transition::ALL {
        let gate = members.optional(transition.as_str(), |node, log| read(transition, node, log));
        steps.extend(gate.map(|gate| (transition, gate)));
    }
    members.finish();
    Some(steps)
}

fn threshold(transition: Transition, node: &Node, log: &mut MistakeLog) -> Option<Gate> {
    let expected = if transition == Transition::StandardToElevated { SCORE_AND_PERSON } else { SCORE };
    let has_score = |members: &Vec<(belljar_contract::yaml::Key, Node)>| {
        members.iter().any(|(key, _)| key.name == "score")
    };
    let (score, asks_person) = match &node.value {
        Value::Mapping(written) if has_score(written) => {
            let mut members = Members::open(node, log)?;
            let score = members.required("score", share);
            let asks_person = approval(transition, &mut members).unwrap_or_default();
            members.finish();
            (score?, asks_person)
        }
        Value::Plain(text) if transition != Transition::StandardToElevated => {
            let score = thousandths(text).filter(|number| *number <= 1_000);
            if score.is_none() {
                log.note(node.position, place(node), node.describe(), expected);
            }
            (share_of(score?), false)
        }
        _ => {
            log.note(node.position, place(node), node.describe(), expected);
            return None;
        }
    };
    Some(Gate { needs: StepRequirements::Score(score), asks_person })
}

/// Returns whether the step requires an approval. The step to the highest level always does, and the configuration must state
/// it.
fn approval(transition: Transition, members: &mut Members<'_, '_>) -> Option<bool> {
    const NAME: &str = "requires_human_approval";
    if transition != Transition::StandardToElevated {
        return members.optional(NAME, boolean);
    }
    members.required(NAME, |node, log| {
        let said = boolean(node, log)?;
        if !said {
            log.note(node.position, place(node), "`false`", PERSON);
        }
        Some(said)
    })
}

fn tasks(node: &Node, log: &mut MistakeLog) -> Option<u64> {
    whole(node, log, 0..=MOST_TASKS)
}

fn quality(node: &Node, log: &mut MistakeLog) -> Option<Quality> {
    decimal(node, log, 10).map(Quality::from_steps)
}
