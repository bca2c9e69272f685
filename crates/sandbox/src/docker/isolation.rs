//! The isolation report of the Docker backend: the layers that were measured inside, not those that were requested.

use super::backend::DockerBackend;
use super::container::ContainerUser;
use super::measured::{MeasuredIsolation, namespace};
use crate::limits::{Bytes, Limits};
use belljar_contract::isolation::{Isolation, Layer};
use belljar_files::reserve::OR_LESS;

/// Subject of the report.
#[derive(Debug)]
pub(super) struct ReportSubject<'a> {
    pub(super) limits: &'a Limits,
    pub(super) disk: Disk,
    pub(super) user: ContainerUser,
    /// Directories in which it may write, relative to the root.
    pub(super) writable: Vec<&'static str>,
    /// The id by which the engine knows it.
    pub(super) container_id: &'a str,
}

/// Limit on the container's use of the host's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disk {
    /// The workspace is in memory, so nothing is written to the disk.
    InMemory,
    /// The workspace is read-only, so nothing is written to the disk.
    OutOfReach,
    /// The host looks how much it has written.
    Watched,
    /// No limit.
    Free,
}

/// The report.
pub(super) fn report(measured: &MeasuredIsolation, asked: &ReportSubject<'_>) -> Isolation {
    let mut layers = namespaces(measured);
    layers.push(host_user(measured, asked.user));
    layers.extend(powers(measured, &asked.writable));
    layers.extend(limits(measured, asked));
    let container_id = Some(asked.container_id.to_owned());
    Isolation { backend: DockerBackend::NAME.to_owned(), container_id, layers }
}

fn layer(name: &str, is_in_force: bool, detail: impl Into<String>) -> Layer {
    Layer { name: name.to_owned(), in_force: is_in_force, detail: detail.into() }
}

fn namespaces(measured: &MeasuredIsolation) -> Vec<Layer> {
    // On another kernel than this one the numbers say nothing, and then nothing is taken for granted.
    let is_own = |name: &str| {
        let inside = measured.namespaces.get(name).copied();
        inside.is_some() && inside.zip(namespace(name)).is_some_and(|(inside, here)| inside != here)
    };
    let of = |name: &str, namespace: &str, detail: String| match is_own(namespace) {
        true => layer(name, true, detail),
        false => layer(name, false, "shared with the host".to_owned()),
    };
    let root = match measured.is_root_read_only {
        true => "the image's root, read-only; where bound directories lie on the host can be read inside",
        false => "the image's root, which can be written",
    };
    vec![
        match is_own("user") {
            true => layer("user_namespace", true, format!("users inside and outside: {}", measured.uid_map)),
            false => {
                layer("user_namespace", false, "the engine maps no users: ids inside are those of the host")
            }
        },
        layer("mount_namespace", is_own("mnt") && measured.is_root_read_only, root),
        of("pid_namespace", "pid", "sees and signals its own processes only; all die with PID 1".to_owned()),
        of(
            "network_namespace",
            "net",
            format!(
                "only {}; PID 1 connects local sockets, to the sandbox's own sockets only",
                measured.interfaces.join(", ")
            ),
        ),
        of("ipc_namespace", "ipc", "shared memory and queues of its own".to_owned()),
        of("uts_namespace", "uts", "host name belljar".to_owned()),
        of("cgroup_namespace", "cgroup", "the host's control groups have no names here".to_owned()),
    ]
}

fn host_user(measured: &MeasuredIsolation, user: ContainerUser) -> Layer {
    let is_the_one = (measured.uid, measured.gid) == (user.uid, user.gid);
    // An image may name any groups.
    let is_in_others = measured.groups.iter().any(|group| *group != user.gid);
    let detail = match measured.uid_map.as_str() {
        _ if is_in_others => format!("it has groups that were not requested: {:?}", measured.groups),
        "0 0 4294967295" => format!("on the host it is uid {}", measured.uid),
        map => format!("uid {} inside; inside and outside: {map}", measured.uid),
    };
    layer("host_user", is_the_one && !is_in_others && measured.uid != 0, detail)
}

fn powers(measured: &MeasuredIsolation, writable: &[&str]) -> Vec<Layer> {
    let capabilities = match measured.capabilities {
        0 => layer("capabilities", true, "none, in any set"),
        some => layer("capabilities", false, format!("there are some: {some:#x}")),
    };
    let engines = match measured.has_engines_filter {
        true => "by the engine and again by PID 1",
        false => "by PID 1; the engine has put up no filter",
    };
    let landlock = match measured.landlock_abi {
        0 => layer("landlock", false, "this kernel has no Landlock"),
        abi => layer("landlock", true, format!("ABI {abi}: writes in {}", writable.join(", "))),
    };
    vec![
        capabilities,
        layer("no_new_privs", measured.has_no_new_privs, "set-user-id programs gain nothing"),
        layer(
            "seccomp",
            measured.has_own_filter,
            format!("system calls by allowlist, {engines}; foreign architectures kill the process"),
        ),
        landlock,
    ]
}

fn limits(measured: &MeasuredIsolation, asked: &ReportSubject<'_>) -> Vec<Layer> {
    let limits = asked.limits;
    let memory = upheld("memory_limit", measured.memory_bytes, limits.memory_bytes, "bytes, no swap");
    // PID 1 and the relay are counted as well.
    let processes = Some(limits.processes.saturating_add(2));
    let cpu = limits.millicpus.map(u64::from);
    let open_files = measured.open_files.is_some_and(|found| found <= limits.open_files);
    let size = |place: &str| measured.sizes.get(place).copied();
    let scratch: Option<u64> = ["tmp", super::container::HOME, "dev/shm"].into_iter().map(size).sum();
    let (scratch, disk) = match (asked.disk, limits.disk_bytes) {
        (Disk::InMemory, _) => {
            let workspace = size("workspace");
            (
                scratch.zip(workspace).map(|(scratch, workspace)| scratch + workspace),
                upheld("disk_limit", workspace, Some(limits.scratch_bytes), "bytes, in memory"),
            )
        }
        (Disk::OutOfReach, _) => {
            (scratch, layer("disk_limit", true, "nothing on the host's disk can be written"))
        }
        (Disk::Watched, Some(most)) => {
            let detail = format!("{}{OR_LESS}, enforced by measuring disk usage periodically", Bytes(most));
            (scratch, layer("disk_limit", true, detail))
        }
        (Disk::Watched, None) | (Disk::Free, _) => (
            scratch,
            layer("disk_limit", false, "no disk quota; only the in-memory file systems are limited"),
        ),
    };
    vec![
        layer(
            "resource_limits",
            open_files,
            format!("{} open files, no core dumps", measured.open_files.unwrap_or(u64::MAX)),
        ),
        layer(
            "kernel_tables",
            false,
            format!(
                "{} seccomp filters, inotify watches on its own files; the engine limits no terminals, and no memory of TCP unless \
                 control groups are of version 2",
                limits.filters
            ),
        ),
        memory,
        upheld("process_limit", measured.processes, processes, "processes and threads, two of them our own"),
        upheld("cpu_limit", measured.millicpus, cpu, "thousandths of a processor"),
        disk,
        upheld(
            "scratch_limit",
            scratch,
            Some(limits.scratch_bytes),
            "bytes, divided among the writable directories",
        ),
    ]
}

/// Reports the layer as in force if the limit found is no higher than the requested one.
fn upheld(name: &str, found: Option<u64>, asked: Option<u64>, what: &str) -> Layer {
    match (found, asked) {
        (Some(found), Some(asked)) if found <= asked => layer(name, true, format!("{found} {what}")),
        (Some(found), Some(_)) => layer(name, false, format!("the engine allows more: {found} {what}")),
        (None, Some(_)) => layer(name, false, "the engine sets no such limit here"),
        (_, None) => layer(name, false, "not requested: only the host limits it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_found_is_not_in_force() {
        let limits = Limits { millicpus: Some(1000), ..Limits::default() };
        let asked = ReportSubject {
            limits: &limits,
            disk: Disk::InMemory,
            user: ContainerUser { uid: 1000, gid: 1000 },
            writable: Vec::new(),
            container_id: "0123456789ab",
        };
        // As where the engine has given the host's namespaces, and nothing else could be measured.
        let namespaces = super::super::measured::NAMESPACES;
        let hosts =
            namespaces.iter().filter_map(|name| Some(((*name).to_owned(), namespace(name)?))).collect();
        let measured =
            MeasuredIsolation { namespaces: hosts, capabilities: u64::MAX, ..MeasuredIsolation::default() };
        let report = report(&measured, &asked);
        let in_force: Vec<_> = report.layers.iter().filter(|layer| layer.in_force).collect();
        assert!(in_force.is_empty(), "{in_force:?}");
        assert_eq!(report.layers.len(), belljar_contract::isolation::LAYERS.len());
    }

    #[test]
    fn more_than_was_asked_for_is_no_limit() {
        assert!(upheld("memory_limit", Some(10), Some(10), "bytes").in_force);
        for (found, asked) in [(Some(11), Some(10)), (None, Some(10)), (Some(10), None), (None, None)] {
            assert!(!upheld("memory_limit", found, asked, "bytes").in_force, "{found:?} {asked:?}");
        }
    }

    #[test]
    fn a_user_with_groups_of_the_images_is_not_the_one() {
        let user = ContainerUser { uid: 1000, gid: 1000 };
        let with = |groups: &[u32]| MeasuredIsolation {
            uid: 1000,
            gid: 1000,
            groups: groups.into(),
            ..MeasuredIsolation::default()
        };
        assert!(host_user(&with(&[1000]), user).in_force);
        assert!(!host_user(&with(&[1000, 0]), user).in_force);
        assert!(!host_user(&MeasuredIsolation::default(), ContainerUser { uid: 0, gid: 0 }).in_force);
    }
}
