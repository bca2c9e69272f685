//! The native backend on another kernel: older, and with only version 2 of control groups.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod built;

use belljar_testkit::share::Share;
use belljar_testkit::skip::skip;
use belljar_vm::guest::{Guest, Task, User, busybox};
use belljar_vm::kernel::Kernel;
use belljar_vm::machine;
use belljar_vm::transcript::Transcript;
use std::time::Duration;

const NAME: &str = "virtual machine";

/// Time limit. With emulation, everything takes ten times as long as on the host.
const PATIENCE: Duration = Duration::from_secs(600);

/// A twelfth of the conformance tests: the number for one user when runs divide the tests.
const LEAST_TESTS: u32 = 3;

/// Memory and processor time are limited by the single hierarchy, and by nothing else.
const LIMITS: &str = "/programs/belljar exec --cpus 0.5 --require memory_limit,cpu_limit --isolation -- true 2>&1 | \
     grep -c 'by control groups, version 2' | grep -qx 3";

#[test]
fn promises_hold_on_debian_kernel_with_cgroup_v2_only() {
    let missing = match (machine::is_there(), busybox()) {
        (false, _) => Some("qemu-system-x86 is not installed"),
        (_, None) => Some("busybox-static is not installed"),
        _ => None,
    };
    if let Some(missing) = missing {
        return skip(NAME, missing);
    }
    let kernel = match Kernel::of_debian() {
        Ok(kernel) => kernel,
        Err(error) => return skip(NAME, &format!("there is no other kernel to be had: {error}")),
    };
    let guest = guest();
    let (transcript, acceleration) = machine::run(&kernel, &guest, PATIENCE).unwrap();
    let complaints = complaints(&guest, &transcript);
    assert!(
        complaints.is_empty(),
        "{complaints:#?}\n{acceleration:?}\n{}",
        transcript.failures(guest.tasks())
    );
}

fn guest() -> Guest {
    let mut guest = Guest::default();
    let built = built::programs();
    guest.program("conformance", &built.conformance).unwrap();
    guest.program("belljar", &built.belljar).unwrap();
    let share = Share::current();
    let tests = built::native_tests(&built.conformance);
    for (way, user) in [(0, User::Root), (1, User::Ordinary)] {
        let mut task = |name, command: &str, seconds| {
            guest.task(Task {
                name,
                user,
                command: command.to_owned(),
                timeout: Duration::from_secs(seconds),
            });
        };
        // A variable of cargo, for the test that checks whether variables are inherited.
        let mut native =
            "CARGO_PKG_NAME=x /programs/conformance --color never --test-threads 2 native::".to_owned();
        let others = (0..).zip(&tests).filter(|(number, _)| !share.is_turn(way, *number));
        others.for_each(|(_, test)| native.extend([" --skip ", test]));
        task("conformance", &native, 300);
        task("doctor", "/programs/belljar doctor", 30);
        task("exec", "/programs/belljar exec -- sh -c 'test $(id -u) = 1000 && test ! -e /programs'", 20);
        if user == User::Root {
            task("limits", LIMITS, 20);
        }
    }
    guest
}

/// Returns the failures.
fn complaints(guest: &Guest, transcript: &Transcript) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut wants = |what: &str, is: bool| {
        if !is {
            complaints.push(what.to_owned());
        }
    };
    let controllers = transcript.fact("controllers").unwrap_or_default();
    wants(
        "control groups of version 2",
        ["cpu", "memory", "pids"].iter().all(|name| controllers.contains(name)),
    );
    wants("no control groups of version 1", transcript.fact("version-1") == Some("0"));
    let here = rustix::system::uname().release().to_string_lossy().into_owned();
    wants("a kernel that is not this one", transcript.fact("kernel").is_some_and(|kernel| kernel != here));
    wants("an end", transcript.is_done());
    for task in guest.tasks() {
        let whose = format!("{} as {}", task.name, task.user.as_str());
        match transcript.ended(task) {
            Some(ended) if ended.code != 0 => {
                wants(&format!("{whose} to end well, not with {}", ended.code), false);
            }
            Some(ended) if task.name == "conformance" => {
                wants(
                    &format!("{whose} to run a twelfth of the tests at least"),
                    ended.tests_passed().is_some_and(|passed| passed >= LEAST_TESTS),
                );
            }
            Some(_) => {}
            None => wants(&format!("{whose} to end"), false),
        }
    }
    complaints
}
