//! The request to the engine: the one place that describes our containers. Pure.

use super::container_hatches::PendingHatches;
use super::own_program::{self, InitConfig};
use super::settings::DockerSettings;
use crate::limits::Limits;
use crate::spec::Lent;
use crate::state::JOB;
use belljar_confine::plan::scratch_inodes;
use belljar_confine::seccomp::PROFILE;
use belljar_contract::id::RunId;
use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, Mount,
    MountBindOptions, MountBindOptionsPropagationEnum, MountType, ResourcesUlimits, RestartPolicy,
    RestartPolicyNameEnum,
};
use std::collections::HashMap;
use std::path::Path;

/// Parameters in which one container differs from another.
#[derive(Debug)]
pub(super) struct ContainerBlueprint<'a> {
    pub(super) settings: &'a DockerSettings,
    pub(super) image_id: &'a str,
    pub(super) run: &'a RunId,
    /// The run's folder: its lock shows whether the process that made the container lives.
    pub(super) owner: &'a Path,
    pub(super) user: ContainerUser,
    /// The directory that is the workspace; in memory if there is none.
    pub(super) workspace: Option<&'a Path>,
    /// Source of `/job`, if the sandbox is for a job.
    pub(super) job: Option<&'a Path>,
    pub(super) writable: WritableMounts,
    pub(super) lent: &'a [Lent],
    pub(super) limits: Limits,
    /// The hatches, if there are any.
    pub(super) doors: Option<&'a PendingHatches>,
}

/// Files of the host that may be written.
#[derive(Debug, Clone, Copy)]
pub(super) struct WritableMounts {
    pub(super) workspace: bool,
    pub(super) job: bool,
}

/// The user and group inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContainerUser {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The labels by which containers are found again.
pub(super) const MANAGED: &str = "belljar.managed";
pub(super) const DEPLOYMENT: &str = "belljar.deployment";
pub(super) const RUN: &str = "belljar.run";
pub(super) const OWNER: &str = "belljar.owner";

pub(super) const HOME: &str = "home/agent";

/// Paths that Docker hides by itself, further paths that reveal the host or its kernel's internals, and all of sysfs except
/// the container's own control group. From that, PID 1 and the relay know their limits. `/proc/cgroups` stays: Java before
/// version 25 finds its container's limits by it.
const MASKED: [&str; 60] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/buddyinfo",
    "/proc/crypto",
    "/proc/diskstats",
    "/proc/fs",
    "/proc/interrupts",
    "/proc/irq",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/locks",
    "/proc/mdstat",
    "/proc/modules",
    "/proc/partitions",
    "/proc/pressure",
    "/proc/sched_debug",
    "/proc/schedstat",
    "/proc/scsi",
    "/proc/slabinfo",
    "/proc/softirqs",
    "/proc/swaps",
    "/proc/sys/fs/aio-nr",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/fs/quota",
    "/proc/sys/kernel/pty/nr",
    "/proc/sys/kernel/random/boot_id",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/vmallocinfo",
    "/proc/vmstat",
    "/proc/zoneinfo",
    "/sys/block",
    "/sys/bus",
    "/sys/class",
    "/sys/dev",
    "/sys/devices",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/fs/btrfs",
    "/sys/fs/ext4",
    "/sys/fs/f2fs",
    "/sys/fs/fuse",
    "/sys/fs/pstore",
    "/sys/fs/resctrl",
    "/sys/fs/selinux",
    "/sys/fs/smackfs",
    "/sys/fs/xfs",
    "/sys/hypervisor",
    "/sys/kernel",
    "/sys/module",
    "/sys/power",
];
const READ_ONLY: [&str; 3] = ["/proc/bus", "/proc/sys", "/proc/sysrq-trigger"];

// === impl WritableMounts ===

impl WritableMounts {
    /// Returns all writable places, relative to the root.
    pub(super) fn places(self) -> Vec<&'static str> {
        let of_the_hosts = [self.workspace.then_some("workspace"), self.job.then_some(JOB)];
        ["tmp", HOME].into_iter().chain(of_the_hosts.into_iter().flatten()).collect()
    }
}

// === impl ContainerBlueprint ===

impl ContainerBlueprint<'_> {
    /// The request for it.
    pub(super) fn body(&self) -> ContainerCreateBody {
        let orders = serde_json::to_string(&self.orders()).unwrap_or_default();
        ContainerCreateBody {
            hostname: Some("belljar".to_owned()),
            user: Some(format!("{}:{}", self.user.uid, self.user.gid)),
            // The stream to PID 1 belongs to the client that attaches first; when that client goes, PID 1 sees the end.
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(false),
            open_stdin: Some(true),
            stdin_once: Some(true),
            tty: Some(false),
            env: Some(Vec::new()),
            entrypoint: Some(vec![format!("/{}", own_program::PATH)]),
            cmd: Some(vec![own_program::INIT.to_owned(), orders]),
            // An image's own would start programs past PID 1.
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            image: Some(self.image_id.to_owned()),
            working_dir: Some("/".to_owned()),
            labels: Some(self.labels()),
            host_config: Some(self.host()),
            ..ContainerCreateBody::default()
        }
    }

    /// Returns the orders to PID 1.
    pub(super) fn orders(&self) -> InitConfig {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let mut own = texts(&["tmp", HOME, "dev/shm"]);
        own.extend(self.workspace.is_none().then(|| "workspace".to_owned()));
        own.extend(self.doors.iter().flat_map(|doors| doors.directories()));
        let mut places = texts(&["tmp", HOME, "dev/shm", "workspace", own_program::PATH]);
        places.extend(self.job.map(|_| JOB.to_owned()));
        places.extend(self.lent.iter().map(|lent| lent.inside.clone()));
        places.extend(self.doors.map(|doors| doors.inside().to_owned()));
        InitConfig {
            writable: texts(&self.writable.places()),
            own,
            open_files: self.limits.open_files,
            filters: self.limits.filters,
            places,
            handover: self.doors.map(PendingHatches::handover),
        }
    }

    fn labels(&self) -> HashMap<String, String> {
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        HashMap::from([
            label(MANAGED, "true"),
            label(DEPLOYMENT, self.settings.deployment.as_str()),
            label(RUN, self.run.as_str()),
            label(OWNER, &self.owner.to_string_lossy()),
        ])
    }

    fn host(&self) -> HostConfig {
        let limits = self.limits;
        let memory = limits.memory_bytes.map(signed);
        let shares = TmpfsShares::of(&limits, self.workspace.is_none());
        let paths = |paths: &[&str]| Some(paths.iter().map(|path| (*path).to_owned()).collect());
        HostConfig {
            privileged: Some(false),
            network_mode: Some("none".to_owned()),
            // Without these, the engine writes the host's name servers and search domains into a file inside.
            dns: Some(vec!["127.0.0.1".to_owned()]),
            dns_search: Some(vec![".".to_owned()]),
            ipc_mode: Some("private".to_owned()),
            pid_mode: Some(String::new()),
            uts_mode: Some(String::new()),
            userns_mode: Some(String::new()),
            cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
            cap_add: Some(Vec::new()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges:true".to_owned(), format!("seccomp={PROFILE}")]),
            readonly_rootfs: Some(true),
            masked_paths: paths(&MASKED),
            readonly_paths: paths(&READ_ONLY),
            mounts: Some(self.mounts()),
            tmpfs: Some(self.scratch(&shares)),
            shm_size: Some(signed(shares.shared_memory)),
            memory,
            // No more than the memory, so no swap.
            memory_swap: memory,
            // One more for PID 1 and one for the relay.
            pids_limit: Some(signed(limits.processes.saturating_add(2))),
            nano_cpus: limits.millicpus.map(|millicpus| i64::from(millicpus) * 1_000_000),
            oom_kill_disable: Some(false),
            // No file is as small as one byte; unlike 0, it also keeps the kernel from starting what collects cores. Other
            // limits are set by PID 1, who takes less where there is less; the engine would refuse.
            ulimits: Some(vec![ulimit("core", 1)]),
            devices: Some(Vec::new()),
            init: Some(false),
            auto_remove: Some(false),
            restart_policy: Some(RestartPolicy {
                name: Some(RestartPolicyNameEnum::NO),
                ..RestartPolicy::default()
            }),
            // The output of PID 1 is no log, and would fill the host's disk.
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            runtime: self.settings.runtime.clone(),
            ..HostConfig::default()
        }
    }

    fn mounts(&self) -> Vec<Mount> {
        let helper = bind(&self.settings.helper, own_program::PATH, true);
        let workspace = self.workspace.map(|path| bind(path, "workspace", !self.writable.workspace));
        let job = self.job.map(|path| bind(path, JOB, false));
        let lent = self.lent.iter().map(|lent| bind(lent.path.as_path(), &lent.inside, true));
        let doors = self.doors.map(|doors| bind(doors.folder().as_path(), doors.inside(), true));
        workspace.into_iter().chain(job).chain(lent).chain(doors).chain([helper]).collect()
    }

    fn scratch(&self, shares: &TmpfsShares) -> HashMap<String, String> {
        let ContainerUser { uid, gid } = self.user;
        let options = |bytes: u64, more: &str| {
            let inodes = scratch_inodes(bytes);
            format!("rw,exec,nosuid,nodev,size={bytes},nr_inodes={inodes},{more}")
        };
        let own = format!("mode=0700,uid={uid},gid={gid}");
        let mut scratch = HashMap::from([
            ("/tmp".to_owned(), options(shares.temporary, "mode=1777")),
            (format!("/{HOME}"), options(shares.home, &own)),
        ]);
        for directory in self.doors.iter().flat_map(|doors| doors.directories()) {
            // Only for a socket; PID 1's walls prevent programs from putting anything else there.
            scratch.insert(format!("/{directory}"), options(4096, &own));
        }
        if let Some(workspace) = shares.workspace {
            scratch.insert("/workspace".to_owned(), options(workspace, &own));
        }
        scratch
    }
}

/// Shares of the memory limit for file systems: the engine has no limit for several of its file systems together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TmpfsShares {
    temporary: u64,
    home: u64,
    shared_memory: u64,
    workspace: Option<u64>,
}

// === impl TmpfsShares ===

impl TmpfsShares {
    pub(super) fn of(limits: &Limits, has_workspace: bool) -> Self {
        let eighth = (limits.scratch_bytes / 8).max(4096);
        // Half is `/tmp` in any case: `sandboxing.docker.tmpfs_size` sets its size.
        match has_workspace {
            true => Self {
                temporary: eighth * 4,
                home: eighth,
                shared_memory: eighth,
                workspace: Some(eighth * 2),
            },
            false => {
                Self { temporary: eighth * 4, home: eighth * 2, shared_memory: eighth * 2, workspace: None }
            }
        }
    }
}

/// Alone, without what is mounted below it: that may be anything, and would not be read-only.
fn bind(source: &Path, inside: &str, is_read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.to_string_lossy().into_owned()),
        target: Some(format!("/{inside}")),
        read_only: Some(is_read_only),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            non_recursive: Some(true),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    }
}

fn ulimit(name: &str, most: i64) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(name.to_owned()), soft: Some(most), hard: Some(most) }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
