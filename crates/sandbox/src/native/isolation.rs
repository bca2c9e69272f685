//! The isolation report of the native backend.
//!
//! A layer is reported as in force only if the launch would have failed without it: putting it up would have, or the look
//! that is taken from outside when all of them stand (`belljar_confine::inspection`).

use super::HostUser;
use super::groups::ResourceControls;
use crate::host;
use crate::limits::{Bytes, Limits};
use crate::spec::{SandboxSpec, Workspace};
use belljar_confine::plan::{Identity, Plan};
use belljar_contract::isolation::{Isolation, Layer};
use belljar_files::reserve::OR_LESS;

/// The layer that holds a limit of processor time.
const CPU_LIMIT: &str = "cpu_limit";

/// Means by which a sandbox is kept within its limits, besides the plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitEnforcement<'a> {
    pub(super) held: &'a ResourceControls,
    /// True if its disk usage is watched.
    pub(super) is_disk_watched: bool,
}

/// The report for a sandbox that is launched from that plan, or not at all.
pub(super) fn report(plan: &Plan, spec: &SandboxSpec, keepers: LimitEnforcement<'_>) -> Isolation {
    let (identity, in_force_limits) = (plan.identity, plan.limits.in_force());
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
            "loopback only; PID 1 connects local sockets, to the sandbox's own sockets only".to_owned(),
        ),
        ("ipc_namespace", "shared memory and queues of its own".to_owned()),
        ("uts_namespace", format!("host name {}", plan.hostname)),
        ("cgroup_namespace", "the host's control groups have no names here".to_owned()),
        ("capabilities", "none, in any set".to_owned()),
        ("no_new_privs", "set-user-id programs gain nothing".to_owned()),
        ("seccomp", "system calls by allowlist; those of other architectures are refused".to_owned()),
        ("resource_limits", open_files(plan.limits.open_files, in_force_limits.open_files)),
        ("kernel_tables", tables(in_force_limits)),
    ];
    let mut layers: Vec<Layer> =
        in_force.into_iter().map(|(name, detail)| layer(name, true, detail)).collect();
    layers.push(match belljar_confine::landlock_abi() {
        0 => layer("landlock", false, "this kernel has no Landlock".to_owned()),
        abi => {
            let started = plan.programs.as_ref().map(|programs| match programs.names.len() {
                0 => "; starts no program".to_owned(),
                count => format!("; starts {count} programs by name and no other"),
            });
            let started = started.unwrap_or_default();
            layer("landlock", true, format!("ABI {abi}: writes in {}{started}", plan.writable.join(", ")))
        }
    });
    layers.push(unprivileged(&spec.user));
    layers.extend(limits(plan, spec, keepers));
    Isolation { backend: "native".to_owned(), container_id: None, layers }
}

/// Describes the limit in force, and the requested one if that differs.
fn open_files(asked: u64, in_force: u64) -> String {
    let lowered = match in_force < asked {
        true => format!(" (the host's hard limit, lower than the requested {asked})"),
        false => String::new(),
    };
    format!("{in_force} open files of one process{lowered}, no core dumps")
}

/// Describes its share of tables that all programs of the machine use.
fn tables(limits: belljar_confine::plan::Limits) -> String {
    format!(
        "{} terminals, {} seccomp filters, {} inotify instances and {} watches on its own files, {} queued signals and \
         timers; no asynchronous I/O contexts, leases, socket filters, io_uring or keys",
        limits.terminals,
        limits.filters,
        limits.inotify_instances,
        limits.inotify_watches,
        limits.pending_signals
    )
}

/// The layers that must be in force and aren't. A limit of processor time that was set must be held, wherever it was set: by itself
/// there is none.
pub(super) fn missing(isolation: &Isolation, spec: &SandboxSpec) -> Vec<Layer> {
    let mut missing = isolation.missing(&spec.provision.required);
    let cpu = isolation.layers.iter().find(|layer| layer.name == CPU_LIMIT);
    let is_held = cpu.is_none_or(|layer| layer.in_force) || spec.provision.limits.millicpus.is_none();
    if !is_held && missing.iter().all(|layer| layer.name != CPU_LIMIT) {
        missing.extend(cpu.cloned());
    }
    missing
}

/// Describes its limits as a whole, and their enforcement.
fn limits(
    plan: &Plan,
    spec: &SandboxSpec,
    LimitEnforcement { held, is_disk_watched }: LimitEnforcement<'_>,
) -> [Layer; 5] {
    let Limits { memory_bytes, millicpus, disk_bytes, scratch_bytes, .. } = spec.provision.limits;
    let memory = match (memory_bytes, &held.version) {
        (None, _) => layer("memory_limit", false, "not requested".to_owned()),
        (Some(most), Ok(version)) if held.limits.memory_bytes.is_some() => {
            layer("memory_limit", true, format!("{} by control groups, version {version}", Bytes(most)))
        }
        (Some(most), Err(why)) if plan.watched_memory_bytes.is_some() => {
            let detail = format!(
                "{}, enforced by measuring the memory of processes and files periodically: {why}",
                Bytes(most)
            );
            layer("memory_limit", true, detail)
        }
        (Some(_), _) => layer("memory_limit", false, "nothing enforces it".to_owned()),
    };
    let cpu = match (millicpus, &held.version) {
        (None, _) => layer(CPU_LIMIT, false, "not requested".to_owned()),
        (Some(most), Ok(version)) if held.limits.millicpus.is_some() => {
            let processors = f64::from(most) / 1000.0;
            layer(CPU_LIMIT, true, format!("{processors} processors by control groups, version {version}"))
        }
        (Some(_), Ok(_)) => layer(CPU_LIMIT, false, "nothing enforces it".to_owned()),
        (Some(_), Err(why)) => layer(
            CPU_LIMIT,
            false,
            format!("control groups alone limit processor time, and there are none: {why}"),
        ),
    };
    let is_on_disk = spec.job.is_some() || !matches!(spec.workspace, Workspace::Empty);
    let disk = match (is_on_disk, disk_bytes) {
        (true, Some(_)) if !is_disk_watched => layer("disk_limit", false, "nothing enforces it".to_owned()),
        (false, _) => layer("disk_limit", true, "nothing on the host's disk can be written".to_owned()),
        (true, None) => layer("disk_limit", false, "not requested".to_owned()),
        (true, Some(most)) => {
            let detail = format!("{}{OR_LESS}, enforced by measuring disk usage periodically", Bytes(most));
            layer("disk_limit", true, detail)
        }
    };
    let scratch = format!("{} in memory", Bytes(scratch_bytes));
    [memory, process_limit(plan, held), cpu, disk, layer("scratch_limit", true, scratch)]
}

/// The kernel counts the processes of a user, but never stops its own root, in whatever namespace and by whatever number
/// that one goes.
fn process_limit(plan: &Plan, held: &ResourceControls) -> Layer {
    let most = plan.limits.in_force().processes;
    let is_by_group = held.version == Ok(2) && held.limits.processes.is_some();
    let (in_force, how) = match is_by_group {
        true => (true, "by control groups, version 2".to_owned()),
        false if is_machines_root(plan.identity) => {
            let why = "the kernel limits no processes of root, and there is no control group of version 2 that does";
            return layer("process_limit", false, why.to_owned());
        }
        // Since Linux 5.14 they are counted by namespace and user, and before by user alone.
        false if host::kernel_version() < (5, 14) => {
            (true, "with whatever else that user of the host runs".to_owned())
        }
        false => (true, "counted in a user namespace of its own".to_owned()),
    };
    layer("process_limit", in_force, format!("{most} processes and threads, {how}"))
}

/// Returns true if that user owns `/proc`: root of the machine, under its id here. Where root has no id here, no user here
/// is root.
fn is_machines_root(identity: Identity) -> bool {
    rustix::fs::stat("/proc").map_or(true, |proc| proc.st_uid == identity.host_uid)
}

fn unprivileged(chosen: &HostUser) -> Layer {
    let detail = match (chosen.maps_files, chosen.identity.host_uid) {
        (true, _) => "on the host it is a user that exists for nothing else",
        (false, 0) => "on the host it is root, without capabilities: no other user ids are available",
        (false, _) => "on the host it is the user who started it",
    };
    layer("host_user", chosen.identity.host_uid != 0, detail.to_owned())
}

fn layer(name: &str, in_force: bool, detail: String) -> Layer {
    Layer { name: name.to_owned(), in_force, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_hard_limit_of_the_host_is_what_the_report_tells() {
        let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
        let hard = hard.unwrap_or(u64::MAX - 1);
        let told = |asked| {
            let limits = belljar_confine::plan::Limits { open_files: asked, ..Default::default() };
            open_files(asked, limits.in_force().open_files)
        };
        let lowered = told(hard + 1);
        assert!(
            lowered.starts_with(&format!("{hard} open files")) && lowered.contains("requested"),
            "{lowered}"
        );
        assert_eq!(told(8), "8 open files of one process, no core dumps");
    }
}
