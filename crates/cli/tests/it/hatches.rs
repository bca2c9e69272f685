//! Unix hatches and the descriptors that a sandbox can send over them: none of them blocks a thread of the host for longer
//! than its timeout.

use crate::BELLJAR;
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const LINGERS: &str = include_str!("hatches/lingers.py");

/// Maximum delay of a run's end after its timeout on a busy machine. The socket lingers far longer.
const ENDS_WITHIN: Duration = Duration::from_secs(7);

/// Returns a world in which the kernel can't refuse descriptors, as before Linux 6.16. `None` if this user can't have one.
pub(crate) fn older_kernel() -> Option<World> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let text =
        format!("#!/usr/bin/python3\nBELLJAR = {BELLJAR:?}\n{}", include_str!("hatches/older_kernel.py"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("older-kernel-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("belljar");
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    Some(World::new(program))
}

/// Returns true if this kernel lets a Unix socket refuse descriptors.
pub(crate) fn refuses_descriptors() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers =
        release.split(|letter: char| !letter.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 16)
}

/// Runs the attack for this many seconds.
fn attacked(world: &World, seconds: u64) -> ProgramOutput {
    world.write("policy.yaml", "rules: []\n");
    let (begun, timeout) = (Instant::now(), format!("{seconds}s"));
    let options = ["exec", "--timeout", &timeout, "--egress", "policy.yaml", "--"];
    let ran = world.run(&[&options[..], &["python3", "-c", LINGERS, "/web-sock/web.sock", "3600"]].concat());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(seconds) + ENDS_WITHIN, "{took:?}: {}", ran.stderr);
    ran
}

#[test]
fn hatch_refuses_file_descriptors_and_keeps_reading() {
    if !refuses_descriptors() {
        return skip("hatches::hatch_refuses_file_descriptors_and_keeps_reading", "Linux before 6.16");
    }
    let ran = attacked(&World::new(BELLJAR), 5);
    assert_eq!((ran.code, ran.stdout.as_str()), (124, "refused\nanswers\n"), "{}", ran.stderr);
}

#[test]
fn reader_continues_after_closing_a_passed_socket() {
    let Some(world) = older_kernel() else {
        return skip(
            "hatches::reader_continues_after_closing_a_passed_socket",
            "needs root: the socket option is hidden from belljar",
        );
    };
    // Also the control of the test above: where descriptors aren't refused, they arrive.
    let ran = attacked(&world, 9);
    assert_eq!((ran.code, ran.stdout.as_str()), (124, "sent\nanswers\n"), "{}", ran.stderr);
}
