//! The isolation report of the native backend.
//!
//! A layer is reported as in force only if the launch would have failed without it, or the launch told so; nothing is
//! taken for granted that some kernel might lack.

use super::identity::Chosen;
use belljar_confine::plan::Plan;
use belljar_contract::isolation::{Isolation, Layer};

/// The report for a sandbox that was launched from that plan.
pub(super) fn report(plan: &Plan, chosen: &Chosen, landlock_abi: u32) -> Isolation {
    let identity = plan.identity;
    let limits = plan.limits;
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
        (
            "resource_limits",
            format!("{} open files, {} processes, no core dumps", limits.open_files, limits.processes),
        ),
    ];
    let mut layers: Vec<Layer> =
        in_force.into_iter().map(|(name, detail)| layer(name, true, detail)).collect();
    layers.push(match landlock_abi {
        0 => layer("landlock", false, "this kernel has no Landlock".to_owned()),
        abi => layer("landlock", true, format!("ABI {abi}: writes in {}", plan.writable.join(", "))),
    });
    layers.push(unprivileged(chosen));
    layers.push(layer("memory_limit", false, "no control group is used yet".to_owned()));
    layers.push(layer("workspace_limit", false, "only what is in memory is limited".to_owned()));
    Isolation { backend: "native".to_owned(), layers }
}

fn unprivileged(chosen: &Chosen) -> Layer {
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
