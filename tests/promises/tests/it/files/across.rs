//! FS4: moving files across the boundary, changing what is mounted, and misusing overlay markers.

use super::changing::UNCHANGEABLE;
use crate::case::{
    BAD, Case, ControlPlacement, HERE, InsideExpectation, OutsideExpectation, Script, args, numbers, words,
};
use crate::scene::PreparedHost;
use crate::way::{AttemptPlace, StartMethod};
use belljar_promises::attempt::Argument;
use libc::{EFAULT, EINVAL, EPERM, EXDEV, O_CREAT, O_RDWR};

/// Returns requests by which file systems reserve space, change flags that quotas depend on, or exchange file contents.
fn requests(place: &AttemptPlace) -> Vec<Case> {
    // struct space_resv: from the beginning, offset 0, this many bytes.
    let space = || words(args![0, 0, 1 << 20, 0, 0, 0]);
    let requests: [(&str, u32, Argument); 9] = [
        ("FS_IOC_RESVSP", 0x4030_5828, space()),
        ("FS_IOC_RESVSP64", 0x4030_582a, space()),
        ("FS_IOC_UNRESVSP", 0x4030_5829, space()),
        ("FS_IOC_UNRESVSP64", 0x4030_582b, space()),
        ("FS_IOC_ZERO_RANGE", 0x4030_5839, space()),
        ("FS_IOC_SETFLAGS", 0x4008_6602, BAD.into()),
        ("FS_IOC_FSSETXATTR", 0x401c_5820, BAD.into()),
        ("FIDEDUPERANGE", 0xc018_9436, BAD.into()),
        ("EXT4_IOC_MOVE_EXT", 0xc028_660f, BAD.into()),
    ];
    let case = |(name, request, argument): (&str, u32, Argument)| {
        let mut script = Script::default();
        let file = script.call("creat", args![place.path("/workspace/requested"), 0o600]);
        script.prepared();
        script.call("ioctl", args![file, request, argument]);
        let reaches = OutsideExpectation::Reaches(&[libc::EOPNOTSUPP, EFAULT, EINVAL, EPERM]);
        let case = Case::denied("RS3", name, script).fails(&[libc::ENOTTY]).outside(reaches);
        if name.starts_with("EXT4") { case.needs("ext4") } else { case }
    };
    requests.into_iter().map(case).collect()
}

pub(crate) fn cases(_: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases = links_and_renames(place);
    cases.extend(mounts(place));
    cases.extend(overlay_marks(place));
    cases
}

fn links_and_renames(place: &AttemptPlace) -> Vec<Case> {
    let path = |inside: &str| place.path(inside);
    let case = |what: &str, name: &str, arguments| {
        Case::call("FS4", what, name, arguments).fails(&[EXDEV, EPERM, libc::EROFS, libc::EACCES])
    };
    let (program, lent) = (path("/usr/bin/true"), path("/lent/link/other"));
    vec![
        case("a program into the workspace", "link", args![&program, path("/workspace/linked")]),
        case("a program into /tmp", "linkat", args![HERE, &program, HERE, path("/tmp/linked"), 0]),
        case("a lent file into the workspace", "link", args![&lent, path("/workspace/lent-linked")]),
        case("a lent file into /tmp", "linkat", args![HERE, &lent, HERE, path("/tmp/lent-linked"), 0]),
        case(
            "by a magic link",
            "linkat",
            args![HERE, format!("/proc/self/root{lent}"), HERE, path("/tmp/lent-linked-again"), 0],
        ),
        case(
            "a lent file into the workspace",
            "rename",
            args![path("/lent/rename/other"), path("/workspace/renamed")],
        ),
        case("own file among what is lent", "rename", args![path("/tmp/file"), path("/lent/rename/over")])
            .after("creat", args![path("/tmp/file"), 0o600]),
        case(
            "swap a folder with a lent one",
            "renameat2",
            args![HERE, path("/tmp/swapped"), HERE, path("/lent/replace"), 2],
        )
        .after("mkdir", args![path("/tmp/swapped"), 0o700]),
    ]
}

/// Returns calls that would mount other files here. The control makes them in a namespace of its own.
fn mounts(place: &AttemptPlace) -> Vec<Case> {
    const BIND: i32 = 0x1000;
    const REMOUNT: i32 = 0x20;
    let path = |inside: &str| place.path(inside);
    let free = |what: &str, name: &str, arguments| {
        Case::call("FS4", what, name, arguments).by(ControlPlacement::Free)
    };
    let (tmp, lent) = (path("/tmp"), path("/lent"));
    vec![
        free("a bind mount", "mount", args![&lent, &tmp, "none", BIND, 0]),
        free("writable again", "mount", args!["none", &lent, "none", BIND | REMOUNT, 0])
            .outside(OutsideExpectation::Reaches(&[EINVAL])),
        free("a new file system", "mount", args!["mark", &tmp, "tmpfs", 0, 0]),
        free("a second /proc", "mount", args!["mark", &tmp, "proc", 0, 0]),
        free(
            "an overlay",
            "mount",
            args!["mark", &tmp, "overlay", 0, format!("lowerdir={lent}/append:{lent}/write")],
        ),
        free("take something off", "umount2", args![&lent, 2])
            .outside(OutsideExpectation::Reaches(&[EINVAL])),
        free("a detached bind", "open_tree", args![HERE, &lent, 1]),
        free("a detached bind", "open_tree_attr", args![HERE, &lent, 1, 0, 0]).needs("that call"),
        free("a new file system", "fsopen", args!["tmpfs", 0]),
        free("an attribute", "mount_setattr", args![HERE, &lent, 0, BAD, 32])
            .outside(OutsideExpectation::Reaches(&[EFAULT])),
        free("another root", "chroot", args![&tmp]),
        free("another root", "pivot_root", args![BAD, BAD]).outside(OutsideExpectation::Reaches(&[EFAULT])),
    ]
}

/// Returns cases with the attributes and devices that mark removed and opaque entries in an overlay.
fn overlay_marks(place: &AttemptPlace) -> Vec<Case> {
    let file = place.path("/workspace/kept/file");
    let mut cases: Vec<Case> = ["trusted.overlay.opaque", "trusted.overlay.redirect", "security.capability"]
        .map(|name| {
            let value = numbers(&[0x0200_0000, 0xffff_ffff, 0, 0, 0]);
            Case::call("FS4", name, "setxattr", args![&file, name, value, 20, 0])
                .fails(UNCHANGEABLE)
                .by(ControlPlacement::Root)
                .only(StartMethod::GIVEN)
        })
        .into();
    let whiteout = place.path("/workspace/whiteout");
    cases.push(
        Case::call("FS4", "a whiteout", "mknod", args![whiteout, libc::S_IFCHR | 0o600, 0])
            .fails(&[EPERM, libc::EACCES]),
    );
    let (from, to) = (place.path("/workspace/renamed-away"), place.path("/workspace/renamed"));
    cases.push(
        Case::call("FS4", "a whiteout where something was", "renameat2", args![HERE, &from, HERE, to, 4])
            .after("creat", args![&from, 0o600])
            .fails(&[EINVAL]),
    );
    // PID 1 reserves space for programs; it refuses other modes of the call.
    const ZERO_RANGE: i32 = 0x10;
    let mut zeroed = Script::default();
    let opened = zeroed.call("creat", args![place.path("/workspace/zeroed"), 0o600]);
    zeroed.prepared();
    zeroed.call("fallocate", args![opened, ZERO_RANGE, 0, 4096]);
    let zeroed = Case::denied("RS3", "a range zeroed in place", zeroed).fails(&[libc::EOPNOTSUPP]);
    cases.push(zeroed.needs("files that can be zeroed in place"));
    cases.extend(requests(place));
    // In an overlay that stores its markers in user attributes, those of programs are kept apart from them.
    for name in
        ["user.overlay.opaque", "user.overlay.redirect", "user.overlay.metacopy", "user.overlay.whiteout"]
    {
        let mut script = Script::default();
        script.call_or("setxattr", args![&file, name, "y", 1, 0], &[EPERM, libc::EOPNOTSUPP]);
        let opened = script.call("openat", args![HERE, &file, O_RDWR | O_CREAT, 0]);
        script.call("write", args![opened, "other", 5]);
        cases.push(
            Case::denied("FS4", name, script).inside(InsideExpectation::Harmless).only(StartMethod::COPIES),
        );
    }
    cases
}
