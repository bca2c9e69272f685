//! `sandboxing.docker`: containers.

use super::lifecycle::LifecycleConfig;
use super::sandboxing::{LEAST_SCRATCH, required_layers, timeout};
use crate::limits::{LEAST_MEMORY, Limits};
use belljar_contract::category::Category;
use belljar_contract::isolation::RequiredLayers;
use belljar_contract::yaml::{
    Members, MistakeLog, Node, boolean, by_category, list, one_of, only, processors, size, text, whole,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The settings of the Docker backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DockerConfig {
    /// The image of its containers.
    pub image: String,
    /// Network access of a container.
    pub network: Network,
    /// Network access of a container for a tool of that category.
    pub network_overrides: BTreeMap<Category, Network>,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Processor time, in thousandths of one processor.
    pub millicpus: u32,
    /// Time limit of a call.
    pub timeout: Duration,
    /// Processes and threads.
    pub processes: u64,
    /// Disk quota, in bytes.
    pub disk_bytes: u64,
    /// Size of `/tmp`, in bytes.
    pub tmpfs_bytes: u64,
    /// Mount mode of the workspace.
    pub mount_mode: MountMode,
    /// The runtime, such as `runsc`; the daemon's own, if this is nothing.
    pub runtime: Option<String>,
    /// The runtime for tools of that category.
    pub runtime_overrides: BTreeMap<Category, String>,
    /// Lifecycle of a container.
    pub lifecycle: LifecycleConfig,
    /// Layers that must be in force, or the sandbox isn't made.
    pub required: RequiredLayers,
}

/// Network access of a container. The host's own network is not on offer: a container in it would be no sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// No network.
    None,
    /// Networks that the daemon's bridge leads to, as far as `allowed_hosts` permits.
    Bridge,
}

/// Mount mode of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MountMode {
    /// Read-only.
    ReadOnly,
    /// Writable.
    ReadWrite,
}

// === impl DockerConfig ===

impl DockerConfig {
    /// Returns the resource limits of a container.
    pub fn limits(&self) -> Limits {
        Limits {
            memory_bytes: Some(self.memory_bytes),
            processes: self.processes,
            millicpus: Some(self.millicpus),
            disk_bytes: Some(self.disk_bytes),
            // Of what may be held in memory half is `/tmp`.
            scratch_bytes: self.tmpfs_bytes.saturating_mul(2),
            ..Limits::default()
        }
    }

    /// Returns the network access of a container for a tool of that category.
    pub fn network_for(&self, category: Category) -> Network {
        self.network_overrides.get(&category).copied().unwrap_or(self.network)
    }

    /// The runtime of a container that is for a tool of that category; the daemon's own, if this is nothing.
    pub fn runtime_for(&self, category: Category) -> Option<&str> {
        self.runtime_overrides.get(&category).or(self.runtime.as_ref()).map(String::as_str)
    }

    pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let default = Self::default();
        let Some(mut members) = Members::open(node, log) else { return default };
        let read = Self {
            image: members.or("image", default.image, image),
            network: members.or("network", default.network, network),
            network_overrides: members.or("network_overrides", default.network_overrides, |node, log| {
                by_category(node, log, network)
            }),
            memory_bytes: members
                .or("memory_limit", default.memory_bytes, |node, log| size(node, log, LEAST_MEMORY)),
            millicpus: members.or("cpu_limit", default.millicpus, processors),
            timeout: members.or("timeout_seconds", default.timeout, timeout),
            processes: members.or("pids_limit", default.processes, pids),
            disk_bytes: members
                .or("disk_limit", default.disk_bytes, |node, log| size(node, log, LEAST_SCRATCH)),
            tmpfs_bytes: members
                .or("tmpfs_size", default.tmpfs_bytes, |node, log| size(node, log, LEAST_SCRATCH)),
            mount_mode: members.or("mount_mode", default.mount_mode, |node, log| {
                one_of(node, log, &[("ro", MountMode::ReadOnly), ("rw", MountMode::ReadWrite)])
            }),
            runtime: members.optional("runtime", runtime),
            runtime_overrides: members
                .or("runtime_overrides", BTreeMap::new(), |node, log| by_category(node, log, runtime)),
            lifecycle: members.section("lifecycle", LifecycleConfig::read),
            required: members.or("required", RequiredLayers::default(), required_layers),
        };
        check_fixed(&mut members);
        members.finish();
        read
    }
}

impl Default for DockerConfig {
    fn default() -> Self {
        Self {
            image: "synthorg-sandbox:latest".to_owned(),
            network: Network::None,
            network_overrides: BTreeMap::from([
                (Category::Database, Network::Bridge),
                (Category::Web, Network::Bridge),
            ]),
            memory_bytes: 512 << 20,
            millicpus: 1_000,
            timeout: Duration::from_secs(120),
            processes: 64,
            disk_bytes: 8 << 30,
            tmpfs_bytes: 64 << 20,
            mount_mode: MountMode::ReadOnly,
            runtime: None,
            runtime_overrides: BTreeMap::new(),
            lifecycle: LifecycleConfig::default(),
            required: RequiredLayers::default(),
        }
    }
}

// === impl Network ===

impl Network {
    /// The name in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bridge => "bridge",
        }
    }
}

fn network(node: &Node, log: &mut MistakeLog) -> Option<Network> {
    one_of(node, log, &[("none", Network::None), ("bridge", Network::Bridge)])
}

fn pids(node: &Node, log: &mut MistakeLog) -> Option<u64> {
    whole(node, log, 1..=1_024)
}

fn image(node: &Node, log: &mut MistakeLog) -> Option<String> {
    const LONGEST: usize = 255;
    text(node, log, "the name of an image, such as synthorg-sandbox:latest", |text| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@');
        // A name that begins with a hyphen would be an option to some command.
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        (begins_well && text.len() <= LONGEST && text.chars().all(is_name)).then(|| text.to_owned())
    })
}

fn runtime(node: &Node, log: &mut MistakeLog) -> Option<String> {
    const LONGEST: usize = 64;
    text(node, log, "the name of a runtime, such as runsc", |text| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        (begins_well && text.len() <= LONGEST && text.chars().all(is_name)).then(|| text.to_owned())
    })
}

/// Checks the members of the contract (`docs/contracts/tools.md#t4.3`) that have one value here: what they set doesn't exist
/// in these containers.
fn check_fixed(members: &mut Members<'_, '_>) {
    const HOSTS: &str =
        "`[]`: containers reach the web by the rules of `egress` alone, which name hosts and ports";
    const DNS: &str = "`true`: containers have no resolver; the proxy resolves the hosts that rules allow";
    const LOOPBACK: &str =
        "`true`: a container has a loopback interface of its own, and nothing of the host is on it";
    const SIDECAR_PROCESSES: &str = "`32`: containers have no sidecar";
    const SIDECAR_TMPFS: &str = "`8m`: containers have no sidecar";
    const REMOVED: &str = "`true`: containers are always removed";
    let no_hosts =
        |node: &Node, log: &mut MistakeLog| list(node, log, |_, _| Some(())).map(|hosts| hosts.len());
    members.section("allowed_hosts", |node, log| only(node, log, (&0, HOSTS), no_hosts));
    for (name, expected) in [("dns_allowed", DNS), ("loopback_allowed", LOOPBACK), ("auto_remove", REMOVED)] {
        members.section(name, |node, log| only(node, log, (&true, expected), boolean));
    }
    members.section("sidecar_pids_limit", |node, log| only(node, log, (&32, SIDECAR_PROCESSES), pids));
    let scratch = |node: &Node, log: &mut MistakeLog| size(node, log, LEAST_SCRATCH);
    members.section("sidecar_tmpfs_size", |node, log| only(node, log, (&(8 << 20), SIDECAR_TMPFS), scratch));
}
