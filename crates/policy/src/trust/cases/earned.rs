//! Tests of what an agent has earned for its calls by its recorded events.

use super::milestone::MILESTONE;
use super::*;
use crate::autonomy::Setback;

#[test]
fn earned_levels_include_category_levels_and_the_setback() {
    let mut world = TrustHistory::before_hiring("strategy: disabled\ninitial_level: standard");
    let earned = |world: &TrustHistory| world.replayed().earned(&world.config);
    assert_eq!((earned(&world), world.config.of_newcomer()), (None, None));
    world.does(hired());
    assert_eq!(earned(&world), None, "where nothing is earned, what the configuration says counts");
    world.does(set(TrustLevel::Restricted, None));
    assert_eq!(earned(&world).unwrap().level, AccessLevel::Restricted, "unless a person has spoken");

    let mut world = TrustHistory::new(MILESTONE);
    let newcomer = world.config.of_newcomer().unwrap();
    assert_eq!((earned(&world), newcomer.setback), (Some(newcomer.clone()), None));
    world.does(set(TrustLevel::Standard, None));
    assert_eq!(earned(&world).unwrap().setback, None);
    world.does(TrustEventKind::SecurityIncident);
    let after = earned(&world).unwrap();
    assert_eq!((after.level, after.setback), (AccessLevel::Sandboxed, Some(Setback::SecurityIncident)));
}

#[test]
fn automatic_changes_do_not_end_a_setback() {
    let setback = |world: &TrustHistory| world.replayed().earned(&world.config).unwrap().setback;
    let mut idle = TrustHistory::new(MILESTONE);
    idle.does(set(TrustLevel::Standard, None));
    idle.does_times(2, &failed(None));
    assert_eq!(setback(&idle), Some(Setback::HighErrorRate));
    idle.days(31);
    idle.looks();
    assert_eq!(idle.replayed().changes.last().unwrap().reason, ChangeReason::IdleDecay);
    assert_eq!(setback(&idle), Some(Setback::HighErrorRate));

    let mut earning = TrustHistory::new(MILESTONE);
    earning.does(TrustEventKind::SecurityIncident);
    earning.does_times(5, &done(None));
    assert_eq!(earning.replayed().changes.last().unwrap().reason, ChangeReason::MilestoneAchieved);
    assert_eq!(setback(&earning), Some(Setback::SecurityIncident));
    earning.does(set(TrustLevel::Restricted, None));
    assert_eq!(setback(&earning), None, "a person's word ends it, also with the level that it has");
}

#[test]
fn high_error_rate_setback_lasts_until_a_user_ends_it() {
    let earned = |world: &TrustHistory| world.replayed().earned(&world.config);
    let mut world = TrustHistory::new(MILESTONE);
    world.does(set(TrustLevel::Standard, None));
    world.does_times(2, &failed(None));
    let after = earned(&world).unwrap();
    assert_eq!((after.level, after.setback), (AccessLevel::Restricted, Some(Setback::HighErrorRate)));
    world.does(set(TrustLevel::Standard, None));
    assert_eq!(earned(&world).unwrap().setback, None, "a person's word ends a setback");
}
