//! FS6: set-id programs, which run with the rights of their owner.

use crate::case::{Case, HERE, InsideExpectation, OutsideExpectation, Script, args};
use crate::scene::PreparedHost;
use crate::way::{AttemptPlace, StartMethod};
use belljar_promises::attempt::{AttemptResult, SpecialAct};
use libc::{O_CREAT, O_DIRECTORY, O_TMPFILE, O_WRONLY, S_IFIFO, S_IFREG};

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases = run_such_programs(place);
    cases.extend(make_such_files(scene, place));
    cases
}

/// Returns cases that run set-id programs that are mounted read-only, in the workspace, or copied inside.
fn run_such_programs(place: &AttemptPlace) -> Vec<Case> {
    let mut cases = Vec::new();
    for (folder, ways) in [("/lent", StartMethod::ALL), ("/workspace", StartMethod::GIVEN)] {
        for (name, gains) in [
            ("set-uid", gains_user as fn(&AttemptResult) -> bool),
            ("set-gid", gains_group as fn(&AttemptResult) -> bool),
        ] {
            let program = place.path(&format!("{folder}/{name}"));
            let run =
                SpecialAct::Run { command: vec![program, "identity".to_owned()], directory: "/".to_owned() };
            cases.push(
                Case::denied("FS6", format!("run {folder}/{name}"), Script::of(run))
                    .inside(InsideExpectation::Learns(is_nobody_else))
                    .outside(OutsideExpectation::Learns(gains))
                    .only(ways)
                    .needs("root, which makes such programs of other users"),
            );
        }
    }
    cases
}

fn is_nobody_else(answer: &AttemptResult) -> bool {
    let nothing = "0".repeat(16);
    answer.bytes.trim()
        == format!(
            "uid 1000 1000 1000 1000 gid 1000 1000 1000 1000 permitted {nothing} effective {nothing} new 1"
        )
}

/// Returns true if the real user differs from the effective one.
fn gains_user(answer: &AttemptResult) -> bool {
    let words: Vec<&str> = answer.bytes.split_whitespace().collect();
    words.get(1).is_some_and(|real| words.get(2) != Some(real))
}

fn gains_group(answer: &AttemptResult) -> bool {
    let words: Vec<&str> = answer.bytes.split_whitespace().collect();
    words.get(6).is_some_and(|real| words.get(7) != Some(real))
}

/// Returns every call that could give a file a set-id bit, with each of the two bits.
fn make_such_files(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases = Vec::new();
    for (bit, mode) in [("uid", 0o4755_u32), ("gid", 0o2755)] {
        let folder = place.path("/workspace");
        let name = |call: &str| format!("{folder}/{}-{bit}-{call}", scene.mark);
        let made = |call: &str| args![name(call), 0o755];
        let new = O_CREAT | O_WRONLY;
        let case = |call: &str, arguments| Case::call("FS6", &format!("set-{bit}"), call, arguments);
        cases.extend([
            case("chmod", args![name("chmod"), mode]).after("creat", made("chmod")),
            case("fchmodat", args![HERE, name("fchmodat"), mode]).after("creat", made("fchmodat")),
            case("fchmodat2", args![HERE, name("fchmodat2"), mode, 0]).after("creat", made("fchmodat2")),
            case("open", args![name("open"), new, mode]),
            case("openat", args![HERE, name("openat"), new, mode]),
            case("openat", args![HERE, &folder, O_TMPFILE | O_WRONLY, mode]).named("without a name"),
            case("openat", args![HERE, name("bare"), new | (O_TMPFILE & !O_DIRECTORY), mode])
                .named("half a flag")
                .outside(OutsideExpectation::Reaches(&[libc::EINVAL])),
            case("creat", args![name("creat"), mode]),
            case("mknod", args![name("mknod"), S_IFREG | mode, 0]),
            case("mknodat", args![HERE, name("mknodat"), S_IFREG | mode, 0]),
            case("mknodat", args![HERE, name("fifo"), S_IFIFO | mode, 0]).named("a FIFO"),
            case("mkdir", args![name("mkdir"), mode]).inside(InsideExpectation::Harmless),
        ]);
        let mut by_descriptor = Script::default();
        let file = by_descriptor.call("creat", args![name("fchmod"), 0o755]);
        by_descriptor.prepared();
        by_descriptor.call("fchmod", args![file, mode]);
        cases.push(Case::denied("FS6", format!("fchmod: set-{bit}"), by_descriptor));
    }
    cases
}
