//! RS7: what others on the host wait for at the disk. Whoever makes files durable makes their own durable, and nobody has
//! those of others written back. How much others are slowed down by what is left is measured (`bench/src/neighbour.rs`).

use crate::case::{Case, HERE, Script, args};
use crate::scene::Scene;
use crate::way::{Place, Way};
use libc::{ENOSYS, O_CREAT, O_RDWR};

/// Each control has the host's files written back, which takes its time: by one who is behind each of the two policies.
const ONCE: &[Way] = &[Way::Empty, Way::Job];

pub(crate) fn cases(scene: &Scene<'_>, place: &Place) -> Vec<Case> {
    let mut one = Script::default();
    let path = place.path(&format!("/tmp/{}-syncfs", scene.mark));
    let file = one.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    one.prepared();
    one.call("syncfs", args![file]);
    vec![
        Case::call("RS7", "everybody's files", "sync", args![]).fails(&[ENOSYS]).only(ONCE),
        Case::denied("RS7", "syncfs: the files of everybody on one file system", one)
            .fails(&[ENOSYS])
            .only(ONCE),
    ]
}
