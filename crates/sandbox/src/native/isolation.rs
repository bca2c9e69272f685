//! The isolation report of the native backend.
//!
//! A layer is reported as in force only if the launch would have failed without it, or the launch told so; nothing is
//! taken for granted that some kernel might lack.

use super::HostUser;
use super::groups::Held;
use crate::limits::{Bytes, Limits};
use crate::spec::{SandboxSpec, Workspace};
use belljar_confine::plan::Plan;
use belljar_contract::isolation::{Isolation, Layer};

/// The report for a sandbox that is launched from that plan, or not at all.
pub(super) fn report(plan: &Plan, spec: &SandboxSpec, held: &Held) -> Isolation {
    let identity = plan.identity;
    let in_force = [
        (
            "user_namespace",
            format!("uid {} inside, uid {} on the host", identity.inside_uid, identity.host_uid),
        ),
        (
            "mount_namespace",
            "a root of its own: the host's programs read-only, nothing else of the host".to_owned(),
        ),
        ("pid_namespace", "sees and signals its own processes only; all die with PID 1".to_owned()),
        (
            "network_namespace",
            "loopback only; PID 1 connects local sockets, and only to what is the sandbox's own".to_owned(),
        ),
        ("ipc_namespace", "shared memory and queues of its own".to_owned()),
        ("uts_namespace", format!("host name {}", plan.hostname)),
        ("cgroup_namespace", "the host's control groups have no names here".to_owned()),
        ("capabilities", "none, in any set".to_owned()),
        ("no_new_privs", "set-user-id programs gain nothing".to_owned()),
        ("seccomp", "system calls by allowlist; foreign architectures kill the process".to_owned()),
        ("resource_limits", format!("{} open files of one process, no core dumps", plan.limits.open_files)),
    ];
    let mut layers: Vec<Layer> =
        in_force.into_iter().map(|(name, detail)| layer(name, true, detail)).collect();
    layers.push(match belljar_confine::landlock_abi() {
        0 => layer("landlock", false, "this kernel has no Landlock".to_owned()),
        abi => layer("landlock", true, format!("ABI {abi}: writes in {}", plan.writable.join(", "))),
    });
    layers.push(unprivileged(&spec.user));
    layers.extend(limits(spec, held));
    Isolation { backend: "native".to_owned(), layers }
}

/// What it may use as a whole, and what sees to it.
fn limits(spec: &SandboxSpec, held: &Held) -> [Layer; 5] {
    let Limits { memory_bytes, processes, millicpus, disk_bytes, scratch_bytes, .. } = spec.limits;
    let memory = match (memory_bytes, &held.version) {
        (None, _) => layer("memory_limit", false, "not asked for".to_owned()),
        (Some(most), Ok(version)) => {
            layer("memory_limit", true, format!("{} by control groups, version {version}", Bytes(most)))
        }
        (Some(most), Err(why)) => {
            let detail =
                format!("{} by adding up what processes and files hold, now and then: {why}", Bytes(most));
            layer("memory_limit", true, detail)
        }
    };
    let cpu = match (millicpus, &held.version) {
        (None, _) => layer("cpu_limit", false, "not asked for".to_owned()),
        (Some(most), Ok(version)) => {
            let processors = f64::from(most) / 1000.0;
            layer("cpu_limit", true, format!("{processors} processors by control groups, version {version}"))
        }
        (Some(_), Err(why)) => layer("cpu_limit", false, why.clone()),
    };
    let processes = format!("{processes} processes and threads, of a user that no other sandbox has");
    let is_on_disk = spec.job.is_some() || !matches!(spec.workspace, Workspace::Empty);
    let disk = match (is_on_disk, disk_bytes) {
        (false, _) => layer("disk_limit", true, "nothing on disk may be written".to_owned()),
        (true, None) => layer("disk_limit", false, "not asked for".to_owned()),
        (true, Some(most)) => {
            layer("disk_limit", true, format!("{} by looking how much there is, now and then", Bytes(most)))
        }
    };
    let scratch = format!("{} in memory", Bytes(scratch_bytes));
    [memory, layer("process_limit", true, processes), cpu, disk, layer("scratch_limit", true, scratch)]
}

fn unprivileged(chosen: &HostUser) -> Layer {
    let detail = match (chosen.maps_files, chosen.identity.host_uid) {
        (true, _) => "on the host it is a user that exists for nothing else",
        (false, 0) => "on the host it is root, without capabilities: this root has no other ids to give",
        (false, _) => "on the host it is the user who started it",
    };
    layer("host_user", chosen.identity.host_uid != 0, detail.to_owned())
}

fn layer(name: &str, in_force: bool, detail: String) -> Layer {
    Layer { name: name.to_owned(), in_force, detail }
}
