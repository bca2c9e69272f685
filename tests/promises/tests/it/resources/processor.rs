//! RS6: processor time. A sandbox gets its share and no more, with any number of processes and any niceness.

use crate::belljar::belljar;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use belljar_confine::group::CgroupHierarchies;
use belljar_testkit::world::{User, World};

/// Four processes that spin for a second, and the processor time of all of them.
const SPIN: &str = "for i in 1 2 3 4; do timeout 1 sh -c 'while :; do :; done' & done; wait; times";

#[test]
fn sandbox_gets_no_more_than_its_cpu_share() {
    let tally = Tally::new("processor");
    World::as_everyone(belljar(), |world| judge(&PreparedHost::lay(world), &tally));
    tally.close();
}

/// Spins in sandboxes of a scene.
pub(crate) fn judge(scene: &PreparedHost<'_>, tally: &Tally) {
    let place = format!("{:?}", scene.world.user());
    let unlimited = match most_seconds(scene, &["--cpus", "none"], 0.5) {
        used if used > 0.5 => Verdict::Held,
        used => Verdict::Blocked(format!("{used} s of a second on each processor")),
    };
    tally.count("RS6", "RS6 spinning without a limit", &place, unlimited);
    let required = scene.make(&["exec"], &["--cpus", "0.25", "--require", "cpu_limit"], &["true"]);
    let verdict = match required.code {
        0 => {
            let limited = most_seconds(scene, &["--cpus", "0.25"], 0.55);
            let free = most_seconds(scene, &[], 1.5 * limited);
            match (limited < 0.55, free > 1.5 * limited) {
                (true, true) => Verdict::Held,
                (false, _) => Verdict::Escaped(format!("{limited} s of 0.25")),
                (true, false) => Verdict::Invalid(format!("{free} s without a limit, {limited} s with one")),
            }
        }
        // Refused with a message: that is the purpose of `--require`.
        _ if required.stderr.contains("cpu_limit") && !may_be_limited(scene) => {
            Verdict::NotShown("control groups".to_owned())
        }
        _ => Verdict::Escaped(format!("{required:?}")),
    };
    tally.count("RS6", "RS6 spinning", &place, verdict);
}

/// Returns true if the user who makes this scene's sandboxes has control groups for processor time. For users other than this
/// process's own it is unknown.
fn may_be_limited(scene: &PreparedHost<'_>) -> bool {
    let all = |groups: CgroupHierarchies| groups.version() == 2 || groups.parents().len() > 1;
    scene.world.user() == User::Own && CgroupHierarchies::find().is_ok_and(all)
}

/// Returns the maximum processor time in several attempts, or the first value above `enough`: on a busy machine even an
/// unlimited sandbox may get little.
fn most_seconds(scene: &PreparedHost<'_>, options: &[&str], enough: f64) -> f64 {
    const ATTEMPTS: usize = 5;
    let mut most: f64 = 0.0;
    for _ in 0..ATTEMPTS {
        most = most.max(seconds(scene, options));
        if most > enough {
            break;
        }
    }
    most
}

/// Returns the processor time of the shell's children in seconds, from the second line of `times`.
fn seconds(scene: &PreparedHost<'_>, options: &[&str]) -> f64 {
    let ran = scene.make(&["exec"], options, &["sh", "-c", SPIN]).succeeded();
    let of_children = ran.stdout.lines().nth(1).unwrap();
    let seconds = of_children.split_whitespace().map(|time| {
        let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    });
    seconds.sum()
}
