//! Tests of what an agent has earned for its calls by its recorded events.

use super::milestone::MILESTONE;
use super::*;
use crate::autonomy::Setback;

#[test]
fn what_is_earned_is_the_level_each_category_has_and_what_has_set_it_back() {
    let mut world = World::before_hiring("strategy: disabled\ninitial_level: standard");
    let earned = |world: &World| world.replayed().earned(&world.config);
    assert_eq!((earned(&world), world.config.of_newcomer()), (None, None));
    world.does(hired());
    assert_eq!(earned(&world), None, "where nothing is earned, what the configuration says counts");
    world.does(set(TrustLevel::Restricted, None));
    assert_eq!(earned(&world).unwrap().level, AccessLevel::Restricted, "unless a person has spoken");

    let mut world = World::new(MILESTONE);
    let newcomer = world.config.of_newcomer().unwrap();
    assert_eq!((earned(&world), newcomer.setback), (Some(newcomer.clone()), None));
    world.does(set(TrustLevel::Standard, None));
    assert_eq!(earned(&world).unwrap().setback, None);
    world.does(TrustEventKind::SecurityIncident);
    let after = earned(&world).unwrap();
    assert_eq!((after.level, after.setback), (AccessLevel::Sandboxed, Some(Setback::SecurityIncident)));
}

#[test]
fn who_failed_too_often_is_set_back_until_a_person_says_otherwise() {
    let earned = |world: &World| world.replayed().earned(&world.config);
    let mut world = World::new(MILESTONE);
    world.does(set(TrustLevel::Standard, None));
    world.does_times(2, &failed(None));
    let after = earned(&world).unwrap();
    assert_eq!((after.level, after.setback), (AccessLevel::Restricted, Some(Setback::HighErrorRate)));
    world.does(set(TrustLevel::Standard, None));
    assert_eq!(earned(&world).unwrap().setback, None, "a person's word ends a setback");
}
