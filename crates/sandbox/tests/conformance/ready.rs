//! Sandboxes that are launched from a process which is ready for them have the walls of any other.

use crate::house::{BackendFixture, run, state};
use belljar_confine::launcher::Launcher;
use belljar_sandbox::backend::{Backend, Sandbox};
use belljar_sandbox::native::NativeBackend;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::state::StateDirectory;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A test that runs once, whatever backends there are.
type HostCase = (&'static str, fn(&Arc<Launcher>));

pub(crate) const CASES: &[HostCase] = &[
    ("what_is_ready_is_walled_as_any_other", what_is_ready_is_walled_as_any_other),
    ("nothing_is_used_twice", nothing_is_used_twice),
    ("one_size_bounds_all_that_may_be_written", one_size_bounds_all),
];

/// Prints the walls that a program can see. The owner of the root is not among them: it is a user inside, or one unknown
/// inside.
const LOOK: &str = r#"
grep -E '^(Cap|NoNewPrivs|Seccomp|Groups|Uid|Gid|Shd|Sig[IB])' /proc/self/status
awk '{ type = ""; for (i = 7; i <= NF; i++) if ($i == "-") type = $(i + 1); top[$5] = $6 " " type }
    END { for (point in top) print point, top[point] }' /proc/self/mountinfo | sort
for place in / /dev /etc /run /home /home/agent /tmp /workspace /dev/shm /dev/pts /proc; do
    stat -c '%A %n' "$place" "$place"/* 2>/dev/null | grep -vE '/proc/[0-9]|/dev/pts/[0-9]|/run/belljar'
    touch "$place/written" 2>&1 && echo "$place can be written"; rm -f "$place/written"
done
echo 1 2>&1 > /proc/sys/kernel/hostname; ulimit -a; hostname; cut -d: -f1 /proc/net/dev
bash -c '</dev/tcp/127.0.0.1/1' 2>&1; bash -c '</dev/tcp/10.0.0.1/1' 2>&1
unshare --user true 2>&1; mount -t tmpfs none /tmp 2>&1; umount /proc 2>&1; umount /tmp 2>&1
df --output=size,target /tmp /workspace /dev/shm /home/agent
cat /proc/1/comm; cat /etc/passwd /etc/group /etc/hosts
"#;

const PROC_MOUNTS: &str = "grep -c ' /proc ' /proc/self/mountinfo";

fn many(launcher: &Arc<Launcher>, spares: usize) -> (NativeBackend, tempfile::TempDir) {
    let state = state();
    (NativeBackend::for_many(Arc::clone(launcher), StateDirectory::at(state.path()), spares), state)
}

fn empty(backend: &NativeBackend) -> Box<dyn Sandbox> {
    backend.create(BackendFixture::wanted(WorkspaceChoice::Empty)).unwrap()
}

fn what_is_ready_is_walled_as_any_other(launcher: &Arc<Launcher>) {
    let house = BackendFixture::native(launcher).unwrap();
    let other = run(&*house.sandbox(), LOOK);
    assert_eq!(run(&*house.sandbox(), PROC_MOUNTS).stdout, "1\n");
    assert!(other.stdout.contains("NoNewPrivs:\t1") && other.stdout.contains("/workspace can be written"));
    for spares in [0, 1] {
        let (backend, _state) = many(launcher, spares);
        // The second is one that was made ahead.
        for _ in 0..2 {
            let sandbox = empty(&backend);
            let ready = run(&*sandbox, LOOK);
            for (line, (ready, other)) in ready.stdout.lines().zip(other.stdout.lines()).enumerate() {
                assert_eq!(ready, other, "line {line}");
            }
            assert_eq!(ready.stdout.len(), other.stdout.len());
            // One of its own covers that of the launcher, so that is where it comes from.
            assert_eq!(run(&*sandbox, PROC_MOUNTS).stdout, "2\n");
            assert_eq!(ready.stderr, other.stderr);
            assert_eq!(
                sandbox
                    .isolation()
                    .layers
                    .iter()
                    .map(|layer| (&layer.name, layer.in_force))
                    .collect::<Vec<_>>(),
                house
                    .sandbox()
                    .isolation()
                    .layers
                    .iter()
                    .map(|layer| (&layer.name, layer.in_force))
                    .collect::<Vec<_>>()
            );
        }
    }
}

fn nothing_is_used_twice(launcher: &Arc<Launcher>) {
    const LOOK: &str =
        "readlink /proc/self/ns/*; stat -c %d /tmp /dev/pts /proc; ls -A /tmp /dev/shm /workspace";
    let (backend, _state) = many(launcher, 1);
    let mut seen: BTreeSet<String> =
        std::fs::read_dir("/proc/self/ns").unwrap().map(|name| namespace(&name.unwrap().path())).collect();
    // They live on: of what is gone the kernel gives the number to another.
    let mut all = Vec::new();
    for _ in 0..6 {
        let sandbox = empty(&backend);
        let told = run(&*sandbox, LOOK).stdout;
        for namespace in told.lines().filter(|line| line.contains(":[") && !line.starts_with("time")) {
            let fresh = seen.insert(namespace.to_owned());
            // `…_for_children` names the same one once more.
            assert!(fresh || told.matches(namespace).count() > 1, "{namespace} again: {seen:?}");
        }
        run(&*sandbox, "touch /tmp/left /dev/shm/left /workspace/left");
        assert!(!told.contains("left"), "{told}");
        all.push(sandbox);
    }
}

fn namespace(path: &std::path::Path) -> String {
    std::fs::read_link(path).unwrap().to_str().unwrap().to_owned()
}

fn one_size_bounds_all(launcher: &Arc<Launcher>) {
    let (backend, _state) = many(launcher, 0);
    let mut wanted = BackendFixture::wanted(WorkspaceChoice::Empty);
    wanted.provision.limits.scratch_bytes = 1 << 20;
    let sandbox = backend.create(wanted).unwrap();
    let fill = |place: &str| format!("head -c 700000 /dev/zero > {place}/filling && echo filled");
    assert_eq!(run(&*sandbox, &fill("/tmp")).stdout, "filled\n");
    for place in ["/tmp/../workspace", "/dev/shm", "/home/agent"] {
        let ran = run(&*sandbox, &fill(place));
        assert!(ran.stderr.contains("No space left"), "{place}: {ran:?}");
    }
    assert_eq!(run(&*sandbox, "rm /tmp/filling").stderr, "");
    assert_eq!(run(&*sandbox, "rm -f /workspace/filling /dev/shm/filling /home/agent/filling").stderr, "");
    assert_eq!(run(&*sandbox, &fill("/workspace")).stdout, "filled\n");
}
