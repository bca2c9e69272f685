//! The isolation report of the subprocess backend: many layers are not in force.

use super::settings::SubprocessSettings;
use crate::limits::Limits;
use belljar_confine::supervised::SupervisedWalls;
use belljar_contract::isolation::{Isolation, Layer};

/// Landlock ABI from which on every change to a file outside of the workspace is refused that Landlock covers.
const REFUSES_TRUNCATION: u32 = 3;
/// Landlock ABI from which on signals to processes outside are refused.
const REFUSES_SIGNALS: u32 = 6;

/// The report for a sandbox with these walls.
pub(super) fn report(
    (settings, limits): (&SubprocessSettings, &Limits),
    walls: SupervisedWalls,
    (user, landlock_abi): (u32, u32),
) -> Isolation {
    let mut layers: Vec<Layer> =
        NAMESPACES.iter().map(|(name, detail)| layer(name, false, (*detail).to_owned())).collect();
    let is_root = user == 0;
    let host_user = match is_root {
        true => "on the host it is root, without capabilities: files in the workspace are root's",
        false if rustix::process::geteuid().is_root() => "on the host it is the owner of the workspace",
        false => "on the host it is the user who started it",
    };
    layers.push(layer("host_user", !is_root, host_user.to_owned()));
    layers.push(layer("capabilities", true, "none, and none to gain".to_owned()));
    layers.push(layer("no_new_privs", true, "set-user-id programs gain nothing".to_owned()));
    layers.push(match walls.seccomp {
        true => layer(
            "seccomp",
            true,
            "system calls by allowlist; no sockets but pairs, no tracing, no shared memory of the host's"
                .to_owned(),
        ),
        false => layer("seccomp", false, "disabled by configuration".to_owned()),
    });
    layers.push(landlock(settings, walls, landlock_abi));
    let asked = belljar_confine::plan::Limits { open_files: limits.open_files, ..Default::default() };
    let each = format!("{} open files of each process, no core dumps", asked.in_force().open_files);
    layers.push(layer("resource_limits", true, each));
    layers.extend(UNLIMITED.iter().map(|(name, detail)| layer(name, false, (*detail).to_owned())));
    Isolation { backend: super::SubprocessBackend::NAME.to_owned(), container_id: None, layers }
}

const NAMESPACES: [(&str, &str); 7] = [
    ("user_namespace", "this backend makes none"),
    (
        "mount_namespace",
        "this backend makes none: programs see the host's paths, and Landlock limits which they can use",
    ),
    ("pid_namespace", "this backend makes none: a supervisor finds and ends every process"),
    ("network_namespace", "this backend makes none: sockets are refused instead"),
    ("ipc_namespace", "this backend makes none: shared memory and queues are refused instead"),
    ("uts_namespace", "this backend makes none: programs see the host's name"),
    ("cgroup_namespace", "this backend makes none"),
];

const UNLIMITED: [(&str, &str); 6] = [
    (
        "kernel_tables",
        "allowed resources (pipes, timers, open files) count against the user's limits, with all other programs of that user",
    ),
    ("memory_limit", "this backend has no control group"),
    ("process_limit", "only the total of the user's processes is limited, and root is exempt"),
    ("cpu_limit", "this backend has no control group"),
    ("disk_limit", "the workspace is a directory of the host"),
    ("scratch_limit", "home and temporary files are in a directory of the host"),
];

fn landlock(settings: &SubprocessSettings, walls: SupervisedWalls, abi: u32) -> Layer {
    let signals =
        if abi >= REFUSES_SIGNALS { "" } else { "; signals to the user's other processes are not refused" };
    let (in_force, detail) = match abi {
        _ if !walls.landlock => (false, "disabled by configuration".to_owned()),
        0 => (false, "this kernel has no Landlock".to_owned()),
        _ if !settings.workspace_only => {
            (false, format!("ABI {abi}: files are not limited, because workspace_only is off{signals}"))
        }
        1..REFUSES_TRUNCATION => {
            (false, format!("ABI {abi}: files outside can be cut to another length{signals}"))
        }
        _ => (true, format!("ABI {abi}: the system's files to read, the workspace to write{signals}")),
    };
    layer("landlock", in_force, detail)
}

fn layer(name: &str, in_force: bool, detail: String) -> Layer {
    Layer { name: name.to_owned(), in_force, detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::isolation::LAYERS;

    fn reported(settings: &SubprocessSettings, walls: SupervisedWalls, abi: u32) -> Isolation {
        report((settings, &Limits::default()), walls, (rustix::process::geteuid().as_raw(), abi))
    }

    fn in_force(isolation: &Isolation, name: &str) -> bool {
        isolation.layers.iter().find(|layer| layer.name == name).unwrap().in_force
    }

    #[test]
    fn every_layer_is_reported_once() {
        let isolation = reported(&SubprocessSettings::default(), SupervisedWalls::default(), 6);
        let mut names: Vec<&str> = isolation.layers.iter().map(|layer| layer.name.as_str()).collect();
        let mut known = LAYERS.to_vec();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
    }

    #[test]
    fn a_wall_that_does_not_stand_is_not_reported_as_standing() {
        let settings = SubprocessSettings::default();
        for (abi, stands) in [(0, false), (2, false), (3, true), (7, true)] {
            assert_eq!(
                in_force(&reported(&settings, SupervisedWalls::default(), abi), "landlock"),
                stands,
                "{abi}"
            );
        }
        let without = SupervisedWalls { landlock: false, seccomp: false };
        assert!(!in_force(&reported(&settings, without, 0), "landlock"));
        assert!(!in_force(&reported(&settings, without, 0), "seccomp"));
        let open = SubprocessSettings { workspace_only: false, ..settings };
        assert!(!in_force(&reported(&open, SupervisedWalls::default(), 7), "landlock"));
    }
}
