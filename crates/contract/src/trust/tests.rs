//! Stored trust documents are read back unchanged, and nothing else is accepted.

use super::*;
use crate::access::AccessLevel;
use serde_json::{Value, from_value, json, to_value};

const ID: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

fn event(kind: &Value) -> Value {
    json!({ "at": "2026-01-01T00:00:00Z", "event_id": ID, "agent_id": "ada", "kind": kind })
}

#[test]
fn trust_event_round_trips() {
    for kind in [
        json!({ "type": "agent_hired" }),
        json!({ "type": "agent_hired", "level": "standard" }),
        json!({ "type": "task_completed" }),
        json!({ "type": "task_completed", "category": "web", "difficulty": 0.125, "quality": 8.5 }),
        json!({ "type": "job_assessed", "job_id": ID, "quality": 8.5, "by": "grace" }),
        json!({ "type": "task_failed", "category": "version_control" }),
        json!({ "type": "human_feedback", "score": 1.0 }),
        json!({ "type": "evaluated" }),
        json!({ "type": "promotion_approved", "approval_id": ID, "proposal_id": ID, "transition": "standard_to_elevated", "category": "deployment" }),
        json!({ "type": "promotion_denied", "approval_id": ID, "proposal_id": ID }),
        json!({ "type": "level_set", "level": "sandboxed", "reason": "a look at it", "by": "grace" }),
        json!({ "type": "security_incident" }),
        json!({ "type": "re_verified", "by": "grace" }),
    ] {
        let read: TrustEvent = from_value(event(&kind)).unwrap();
        assert_eq!(to_value(&read).unwrap(), event(&kind));
    }
}

#[test]
fn trust_event_rejects_invalid_members() {
    for kind in [
        json!({ "type": "agent_promoted" }),
        json!({ "type": "agent_hired", "level": "custom" }),
        json!({ "type": "agent_hired", "level": "Elevated" }),
        json!({ "type": "task_completed", "quality": 10.001 }),
        json!({ "type": "task_completed", "difficulty": -0.1 }),
        json!({ "type": "task_completed", "grade": 1 }),
        json!({ "type": "human_feedback" }),
        json!({ "type": "human_feedback", "score": 1.1 }),
        json!({ "type": "promotion_approved", "approval_id": ID, "transition": "standard_to_elevated" }),
        json!({ "type": "promotion_approved", "approval_id": ID, "proposal_id": ID, "transition": "sandboxed_to_elevated" }),
        json!({ "type": "level_set", "level": "elevated", "by": "grace" }),
    ] {
        assert!(from_value::<TrustEvent>(event(&kind)).is_err(), "{kind}");
    }
}

#[test]
fn trust_measure_rounds_down_and_round_trips() {
    for steps in 0..=10_000 {
        let share = Share::from_steps(steps);
        assert_eq!(from_value::<Share>(to_value(share).unwrap()).unwrap(), share);
        let quality = Quality::from_steps(steps);
        assert_eq!(from_value::<Quality>(to_value(quality).unwrap()).unwrap(), quality);
    }
    assert_eq!(from_value::<Share>(json!(0.799_99)).unwrap().steps(), 7_999);
    assert_eq!(from_value::<Quality>(json!(6.999_9)).unwrap().steps(), 6_999);
    assert_eq!(Share::from_steps(u64::MAX), Share::MOST);
    for none in [json!(-1e-9), json!(1.000_1), json!(null), json!("1")] {
        assert!(from_value::<Share>(none.clone()).is_err(), "{none}");
    }
    assert!(Share::try_from(f64::NAN).is_err() && Quality::try_from(f64::INFINITY).is_err());
    assert_eq!(
        (Share::from_steps(8_050).to_string(), Quality::MOST.to_string()),
        ("0.805".into(), "10".into())
    );
}

#[test]
fn transition_connects_adjacent_trust_levels() {
    for transition in Transition::ALL {
        let (from, to) = (transition.from(), transition.to());
        assert_eq!((from.next(), to.by(), to.lower()), (Some(transition), Some(transition), Some(from)));
        assert_eq!(transition.as_str(), format!("{from}_to_{to}"));
        assert_eq!(to_value(transition).unwrap(), transition.as_str());
    }
    assert_eq!((TrustLevel::Sandboxed.by(), TrustLevel::Sandboxed.lower()), (None, None));
    assert_eq!(TrustLevel::Elevated.next(), None);
    assert!(TrustLevel::ALL.is_sorted());
    for level in TrustLevel::ALL {
        assert_eq!(to_value(level).unwrap(), level.as_str());
        assert_eq!(AccessLevel::named(level.as_str()), Some(level.access()));
    }
}

#[test]
fn category_without_own_level_uses_global_level() {
    let state: TrustState = from_value(json!({
        "agent_id": "ada", "global_level": "sandboxed", "category_levels": { "web": "standard" },
        "created_at": "2026-01-01T00:00:00Z", "last_active_at": null, "last_verified_at": null, "as_of": null,
    }))
    .unwrap();
    use crate::category::Category;
    assert_eq!(state.level_for(Category::Web), AccessLevel::Standard);
    assert_eq!(state.level_for(Category::Database), AccessLevel::Sandboxed);
}

#[test]
fn change_reason_names_match_serialized_names() {
    use ChangeReason::{
        ErrorRate, HumanApproval, IdleDecay, Manual, MilestoneAchieved, ReVerificationFailed, ScoreThreshold,
        SecurityIncident,
    };
    for reason in [
        ScoreThreshold,
        MilestoneAchieved,
        HumanApproval,
        IdleDecay,
        ErrorRate,
        ReVerificationFailed,
        SecurityIncident,
        Manual,
    ] {
        assert_eq!(to_value(reason).unwrap(), reason.as_str());
    }
}
