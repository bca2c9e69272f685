//! Tests of presets and lists.

use super::*;
use belljar_contract::action::BuiltInAction;

fn preset(level: AutonomyLevel) -> Autonomy {
    Autonomy::new(&ActionRegistry::default(), level, &AutonomyLists::default()).unwrap()
}

fn lists(auto: &[&str], human: &[&str]) -> AutonomyLists {
    let owned = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
    AutonomyLists { auto_approve: owned(auto), human_approval: owned(human) }
}

fn by_itself(autonomy: &Autonomy) -> Vec<&'static str> {
    BuiltInAction::ALL
        .into_iter()
        .filter(|leaf| !autonomy.asks(&(*leaf).into()))
        .map(BuiltInAction::as_str)
        .collect()
}

/// No action is forgotten, and none is in both lists.
#[test]
fn each_preset_covers_every_action_once() {
    let registry = ActionRegistry::default();
    for level in AutonomyLevel::ALL {
        let preset = presets::of(level);
        let mut seen = Vec::new();
        for pattern in preset.auto_approve.iter().chain(&preset.human_approval) {
            seen.extend(registry.expand(pattern).unwrap());
        }
        seen.sort();
        assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{level}: {seen:?}");
        assert_eq!(seen.len(), BuiltInAction::ALL.len(), "{level}");
    }
}

#[test]
fn presets_match_the_documented_table() {
    assert_eq!(by_itself(&preset(AutonomyLevel::Full)).len(), 41);
    assert_eq!(by_itself(&preset(AutonomyLevel::Locked)), Vec::<&str>::new());
    let semi = preset(AutonomyLevel::Semi);
    for leaf in BuiltInAction::ALL {
        let name = leaf.as_str();
        let is_own = ["code:", "test:", "docs:", "vcs:", "memory:", "browser:", "desktop:"]
            .iter()
            .any(|own| name.starts_with(own))
            || ["comms:internal", "db:query"].contains(&name);
        assert_eq!(semi.asks(&leaf.into()), !is_own, "{name}");
    }
    let supervised = preset(AutonomyLevel::Supervised);
    let expected = [
        "code:read",
        "test:run",
        "vcs:read",
        "db:query",
        "memory:read",
        "browser:screenshot",
        "browser:diff",
        "browser:accessibility_scan",
    ];
    // The displayed list equals the one that decisions use.
    let shown: Vec<&str> = supervised.by_itself().map(ActionType::as_str).collect();
    assert_eq!(shown.len(), expected.len(), "{shown:?}");
    for leaf in BuiltInAction::ALL {
        assert_eq!(!supervised.asks(&leaf.into()), expected.contains(&leaf.as_str()), "{leaf}");
    }
}

#[test]
fn higher_autonomy_never_requires_more_approvals() {
    let levels = AutonomyLevel::ALL;
    for pair in levels.windows(2) {
        let (less, more) = (by_itself(&preset(pair[0])), by_itself(&preset(pair[1])));
        assert!(less.iter().all(|action| more.contains(action)), "{pair:?}");
        assert!(pair[0] < pair[1]);
    }
}

#[test]
fn specific_pattern_wins_and_required_approval_wins_ties() {
    let registry = ActionRegistry::default();
    let said = |level, auto: &[&str], human: &[&str]| Autonomy::new(&registry, level, &lists(auto, human));
    let autonomy = said(AutonomyLevel::Locked, &["code"], &["code:create"]).unwrap();
    assert_eq!(by_itself(&autonomy), ["code:read", "code:write", "code:delete", "code:refactor"]);
    let autonomy = said(AutonomyLevel::Full, &[], &["deploy"]).unwrap();
    assert_eq!(by_itself(&autonomy).len(), 39);
    let staging = BuiltInAction::DeployStaging.into();
    assert!(autonomy.asks(&staging) && autonomy.asked_by(&staging) == ApprovalReason::Agent);
    let both = said(AutonomyLevel::Semi, &["code"], &["code"]);
    assert_eq!(both, Err(AutonomyError::InBoth { pattern: "code".to_owned() }));
    let none = said(AutonomyLevel::Semi, &["code:create"], &["code"]);
    assert_eq!(none, Err(AutonomyError::NoEffect { pattern: "code:create".to_owned() }));
    assert!(matches!(said(AutonomyLevel::Semi, &[], &["code:craete"]), Err(AutonomyError::Pattern(_))));
    assert!(matches!(said(AutonomyLevel::Semi, &["cod"], &[]), Err(AutonomyError::Pattern(_))));
}

#[test]
fn unlisted_action_requires_an_approval() {
    let acme = ActionType::parse("acme:rotate").unwrap();
    let row = crate::action::RegisteredAction { action: acme.clone(), risk: None, why: None };
    let registry = ActionRegistry::with([row]).unwrap();
    let of = |level| Autonomy::new(&registry, level, &AutonomyLists::default()).unwrap();
    for level in [AutonomyLevel::Semi, AutonomyLevel::Supervised] {
        assert!(of(level).asks(&acme) && of(level).asked_by(&acme) == ApprovalReason::Unlisted, "{level}");
    }
    assert!(!of(AutonomyLevel::Full).asks(&acme));
    assert!(of(AutonomyLevel::Locked).asked_by(&acme) == ApprovalReason::Level);
    // An unknown action requires an approval, too.
    assert!(preset(AutonomyLevel::Full).asks(&acme));
}

#[test]
fn nearest_autonomy_level_applies_and_juniors_never_get_full() {
    use AutonomyLevel::{Full, Locked, Semi, Supervised};
    let resolve = AutonomyLevel::resolve;
    assert_eq!(resolve(Some(Full), Some(Locked), Semi, None), Full);
    assert_eq!(resolve(None, Some(Locked), Semi, None), Locked);
    assert_eq!(resolve(None, None, Supervised, Some(Seniority::Senior)), Supervised);
    assert_eq!(resolve(Some(Full), None, Full, Some(Seniority::Mid)), Full);
    for (own, department, house) in
        [(Some(Full), None, Locked), (None, Some(Full), Locked), (None, None, Full)]
    {
        assert_eq!(resolve(own, department, house, Some(Seniority::Junior)), Semi);
    }
    assert_eq!(resolve(Some(Locked), None, Full, Some(Seniority::Junior)), Locked);
}

#[test]
fn setback_never_raises_autonomy() {
    use AutonomyLevel::{Full, Locked, Semi, Supervised};
    for setback in [Setback::HighErrorRate, Setback::BudgetExhausted] {
        let after: Vec<_> = AutonomyLevel::ALL.into_iter().map(|level| level.after(setback)).collect();
        assert_eq!(after, [Locked, Supervised, Supervised, Supervised]);
    }
    assert!(
        [Locked, Supervised, Semi, Full].iter().all(|level| level.after(Setback::SecurityIncident) == Locked)
    );
}

#[test]
fn autonomy_names_match_their_serialised_form() {
    let names: Vec<_> = AutonomyLevel::ALL.into_iter().map(|level| level.to_string()).collect();
    assert_eq!(names, ["locked", "supervised", "semi", "full"]);
    assert_eq!(Seniority::ALL.map(Seniority::as_str), ["junior", "mid", "senior"]);
}
