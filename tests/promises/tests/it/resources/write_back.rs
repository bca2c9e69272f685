//! RS7: what others on the host wait for at the disk. A program in a sandbox has single files written back that it has open,
//! and not those of others, all at once or by a flag that no filter sees. How much others are slowed down by what is left is measured (`bench/src/neighbour.rs`).

use crate::case::{Case, HERE, Outside, Script, args, words};
use crate::scene::Scene;
use crate::way::{Place, Way};
use libc::{ENOSYS, ENOTTY, EOPNOTSUPP, O_CREAT, O_RDWR};

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
        by_its_extents(&place.path(&format!("/tmp/{}-extents", scene.mark))),
    ]
}

/// Asks where a file lies, and has it written back before (`FIEMAP_FLAG_SYNC`). Not every file system knows that.
fn by_its_extents(path: &str) -> Case {
    const FS_IOC_FIEMAP: u32 = 0xc020_660b;
    const FIEMAP_FLAG_SYNC: u64 = 1;
    let mut one = Script::default();
    let file = one.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    one.prepared();
    one.call("ioctl", args![file, FS_IOC_FIEMAP, words(args![0, 1 << 20, FIEMAP_FLAG_SYNC, 0])]);
    Case::denied("RS7", "FIEMAP: a file by its extents", one)
        .fails(&[ENOTTY])
        .outside(Outside::Reaches(&[EOPNOTSUPP]))
}
