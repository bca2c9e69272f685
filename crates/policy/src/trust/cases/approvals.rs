//! Tests of approvals and denials by users.

use super::milestone::{MILESTONE, standard};
use super::*;

/// Creates an agent that waits for an approval.
fn waiting() -> (TrustHistory, ProposedPromotion) {
    let mut world = standard();
    world.days(14);
    let proposal = proposed(&world.looks()).unwrap();
    (world, proposal)
}

const NOT_PROPOSED: [Outcome; 1] = [Outcome::Ignored(IgnoredReason::NotProposed)];

#[test]
fn approved_promotion_happens_once() {
    let (mut world, proposal) = waiting();
    let outcomes = world.does(TrustHistory::approval(&proposal));
    assert_eq!(
        reasons(&outcomes),
        [(TrustLevel::Standard, TrustLevel::Elevated, ChangeReason::HumanApproval)]
    );
    let [Outcome::Changed(change)] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    assert_eq!((change.approval_id, change.at), (Some(Uuid::from_u128(77)), world.now));
    assert_eq!((world.state().pending, world.state().last_promoted_at), (vec![], Some(world.now)));
    assert_eq!(world.trust.level_for(Category::Deployment), AccessLevel::Elevated);
    assert_eq!(world.does(TrustHistory::approval(&proposal)), NOT_PROPOSED);
    assert_eq!(world.replayed().trust, world.trust);
}

#[test]
fn answer_that_does_not_match_the_proposal_is_ignored() {
    let (world, proposal) = waiting();
    let TrustEventKind::PromotionApproved { approval_id, proposal_id, transition, category } =
        TrustHistory::approval(&proposal)
    else {
        unreachable!()
    };
    let approve = |proposal_id, transition, category| TrustEventKind::PromotionApproved {
        approval_id,
        proposal_id,
        transition,
        category,
    };
    for kind in [
        approve(Uuid::nil(), transition, category),
        approve(proposal_id, Transition::RestrictedToStandard, category),
        approve(proposal_id, transition, Some(Category::Web)),
        TrustEventKind::PromotionDenied { approval_id, proposal_id: Uuid::nil() },
    ] {
        let mut world = world.clone();
        assert_eq!(world.does(kind.clone()), NOT_PROPOSED, "{kind:?}");
        assert_eq!((world.level(), world.state().pending.len()), (TrustLevel::Standard, 1));
        // Control.
        world.does(approve(proposal_id, transition, category));
        assert_eq!(world.level(), TrustLevel::Elevated);
    }
}

#[test]
fn approval_of_a_withdrawn_proposal_does_nothing() {
    let (mut world, proposal) = waiting();
    let withdrawn = Outcome::Withdrawn { proposal_id: proposal.proposal_id };
    assert_eq!(world.does(failed(None)), [withdrawn]);
    assert_eq!(world.does(TrustHistory::approval(&proposal)), NOT_PROPOSED);
    assert_eq!((world.level(), world.state().pending), (TrustLevel::Standard, vec![]));
}

#[test]
fn answer_to_a_proposal_does_not_apply_to_the_next_one() {
    let (mut world, first) = waiting();
    world.does(failed(None));
    world.looks();
    world.days(14);
    let second = proposed(&world.looks()).unwrap();
    assert_eq!((second.transition, second.category), (first.transition, first.category));
    assert_ne!(second.proposal_id, first.proposal_id);
    assert_eq!(world.does(TrustHistory::approval(&first)), NOT_PROPOSED);
    assert_eq!(world.level(), TrustLevel::Standard);
    world.does(TrustHistory::approval(&second));
    assert_eq!(world.level(), TrustLevel::Elevated);
}

#[test]
fn due_demotion_is_applied_before_an_answer() {
    let (mut world, proposal) = waiting();
    world.days(30);
    let outcomes = world.does(TrustHistory::approval(&proposal));
    assert_eq!(reasons(&outcomes), [(TrustLevel::Standard, TrustLevel::Restricted, ChangeReason::IdleDecay)]);
    assert_eq!(outcomes[2..], NOT_PROPOSED);
    assert_eq!(world.level(), TrustLevel::Restricted);
}

#[test]
fn denied_promotion_is_proposed_again_only_once_re_earned() {
    let (mut world, proposal) = waiting();
    let denied = TrustEventKind::PromotionDenied {
        approval_id: Uuid::from_u128(1),
        proposal_id: proposal.proposal_id,
    };
    assert_eq!(world.does(denied), [Outcome::Withdrawn { proposal_id: proposal.proposal_id }]);
    assert_eq!((world.looks_on(), world.level()), (vec![], TrustLevel::Standard));
    assert_eq!(world.does(TrustHistory::approval(&proposal)), NOT_PROPOSED);
    world.days(7);
    world.does_times(4, &done(None));
    world.days(7);
    assert_eq!(world.looks_on(), [], "it takes five tasks, and four were done since");
    world.does(done(None));
    assert!(proposed(&world.looks_on()).is_some());
}

#[test]
fn denied_promotion_keeps_recorded_failures() {
    let mut world = TrustHistory::new(&MILESTONE.replace("    clean_history_days: 14\n", ""));
    world.does_times(20, &done(None));
    world.days(7);
    let proposal = proposed(&world.looks_on()).unwrap();
    world.does_times(3, &failed(None));
    let denied = TrustEventKind::PromotionDenied {
        approval_id: Uuid::from_u128(1),
        proposal_id: proposal.proposal_id,
    };
    assert_eq!(world.does(denied), [Outcome::Withdrawn { proposal_id: proposal.proposal_id }]);
    assert_eq!(changes(&world.does(failed(None)))[0].reason, ChangeReason::ErrorRate);
}

#[test]
fn manual_level_cannot_reach_elevated_without_approval() {
    let mut world = TrustHistory::new("strategy: milestone\nmilestones: {sandboxed_to_restricted: {}}");
    let outcomes = world.does(set(TrustLevel::Elevated, None));
    assert_eq!(reasons(&outcomes), [(TrustLevel::Sandboxed, TrustLevel::Standard, ChangeReason::Manual)]);
    let [Outcome::Changed(change), Outcome::NeedsApproval(proposal)] = outcomes.as_slice() else {
        panic!("{outcomes:?}")
    };
    assert_eq!(
        (change.by.as_ref().unwrap().as_str(), change.note.as_deref()),
        ("grace", Some("for a reason"))
    );
    assert_eq!(proposal.reason, ChangeReason::Manual);
    assert_eq!(world.looks_on(), [], "the proposal stays until it is answered");
    let mut other = world.clone();
    other.does(TrustHistory::approval(proposal));
    assert_eq!(other.level(), TrustLevel::Elevated);
    // A user's later decision replaces the earlier proposal.
    let outcomes = world.does(set(TrustLevel::Standard, None));
    assert_eq!(outcomes, [Outcome::Withdrawn { proposal_id: proposal.proposal_id }]);
    assert_eq!(world.does(TrustHistory::approval(proposal)), NOT_PROPOSED);
    assert_eq!(world.level(), TrustLevel::Standard);
}

#[test]
fn manual_demotion_is_not_undone_by_earlier_work() {
    let mut world = standard();
    let outcomes = world.does(set(TrustLevel::Sandboxed, None));
    assert_eq!(reasons(&outcomes), [(TrustLevel::Standard, TrustLevel::Sandboxed, ChangeReason::Manual)]);
    assert_eq!(world.looks_on(), []);
    world.does_times(5, &done(None));
    world.looks_on();
    assert_eq!(world.level(), TrustLevel::Restricted);
}

#[test]
fn recomputed_changes_keep_ids_and_distinct_changes_differ() {
    let (mut world, proposal) = waiting();
    world.does(TrustHistory::approval(&proposal));
    world.does(set(TrustLevel::Sandboxed, None));
    world.does(set(TrustLevel::Standard, None));
    world.does_at_once(set(TrustLevel::Sandboxed, None));
    world.does_at_once(set(TrustLevel::Standard, None));
    let ids: Vec<Uuid> = world.replayed().changes.iter().map(|change| change.id).collect();
    assert_eq!(ids, world.replayed().changes.iter().map(|change| change.id).collect::<Vec<_>>());
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!((distinct.len(), ids.len()), (7, 7));
    assert!(ids.iter().all(|id| id.get_version_num() == 8));
}

#[test]
fn trust_state_and_change_serialise_as_documented() {
    let (mut world, proposal) = waiting();
    let shown = serde_json::to_value(world.state()).unwrap();
    insta::assert_snapshot!(format!("{shown:#}"), @r#"
    {
      "agent_id": "ada",
      "as_of": "2026-01-22T00:24:00Z",
      "created_at": "2026-01-01T00:01:00Z",
      "global_level": "standard",
      "last_active_at": "2026-01-01T00:21:00Z",
      "last_promoted_at": "2026-01-08T00:01:00Z",
      "last_verified_at": "2026-01-01T00:01:00Z",
      "pending": [
        {
          "agent_id": "ada",
          "details": {
            "active_days": 14,
            "clean_days": 14,
            "completion_rate": 1.0,
            "difficulty": 1.0,
            "error_rate": 0.0,
            "human_feedback": 0.0,
            "idle_days": 13,
            "quality": 10.0,
            "since": "2026-01-01T00:01:00Z",
            "tasks_completed": 20,
            "tasks_failed": 0
          },
          "proposal_id": "624df78c-49be-8add-8023-843fbd03860f",
          "proposed_at": "2026-01-15T00:01:00Z",
          "reason": "milestone_achieved",
          "transition": "standard_to_elevated"
        }
      ]
    }
    "#);
    assert_eq!(serde_json::from_value::<TrustState>(shown).unwrap(), world.state());
    let change = changes(&world.does(TrustHistory::approval(&proposal))).remove(0);
    let shown = serde_json::to_value(&change).unwrap();
    insta::assert_snapshot!(format!("{shown:#}"), @r#"
    {
      "agent_id": "ada",
      "approval_id": "00000000-0000-0000-0000-00000000004d",
      "at": "2026-01-22T00:25:00Z",
      "details": {
        "active_days": 21,
        "clean_days": 21,
        "completion_rate": 1.0,
        "difficulty": 1.0,
        "error_rate": 0.0,
        "human_feedback": 0.0,
        "idle_days": 21,
        "quality": 10.0,
        "since": "2026-01-01T00:01:00Z",
        "tasks_completed": 20,
        "tasks_failed": 0
      },
      "event_id": "00000000-0000-0000-0000-000000000019",
      "id": "2089b47a-65f1-8856-b7a5-906129c086ec",
      "new": "elevated",
      "old": "standard",
      "reason": "human_approval"
    }
    "#);
    assert_eq!(serde_json::from_value::<TrustChange>(shown).unwrap(), change);
}
