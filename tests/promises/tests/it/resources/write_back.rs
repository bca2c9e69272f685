//! RS7: write-back of other programs' files. A program in a sandbox can write back single files that it has open. It can't
//! write back files of others, either all at once or by a flag that no filter sees. How much the remaining load slows other
//! programs down is measured in `bench/src/neighbour.rs`.

use crate::case::{Case, HERE, OutsideExpectation, Script, args, words};
use crate::scene::PreparedHost;
use crate::way::{AttemptPlace, StartMethod};
use libc::{ENOSYS, ENOTTY, EOPNOTSUPP, O_CREAT, O_RDWR};

/// Each control writes back the host's files, which takes long: so each of the two policies is tried once.
const ONCE: &[StartMethod] = &[StartMethod::Empty, StartMethod::Job];

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
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

/// Returns a case that asks for a file's extents, and writes the file back first (`FIEMAP_FLAG_SYNC`). Not every file system
/// supports that.
fn by_its_extents(path: &str) -> Case {
    const FS_IOC_FIEMAP: u32 = 0xc020_660b;
    const FIEMAP_FLAG_SYNC: u64 = 1;
    let mut one = Script::default();
    let file = one.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    one.prepared();
    one.call("ioctl", args![file, FS_IOC_FIEMAP, words(args![0, 1 << 20, FIEMAP_FLAG_SYNC, 0])]);
    Case::denied("RS7", "FIEMAP: a file by its extents", one)
        .fails(&[ENOTTY])
        .outside(OutsideExpectation::Reaches(&[EOPNOTSUPP]))
}
