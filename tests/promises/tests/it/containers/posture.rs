//! The posture of programs in containers.

use crate::scene::Scene;
use crate::tally::Tally;
use crate::way::Way;

/// What is found in every container of a scene is what must be.
pub(super) fn judge(scene: &Scene<'_>, tally: &Tally) {
    for way in [Way::Copy, Way::Session] {
        crate::posture::judge(scene, way, crate::posture::compare, tally);
    }
}
