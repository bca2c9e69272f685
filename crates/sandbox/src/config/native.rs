//! `sandboxing.native`: sandboxes made by the kernel's own means, our own backend beside those of the contract
//! (`docs/contracts/tools.md#t3`).

use super::lifecycle::LifecycleConfig;
use super::sandboxing::{LEAST_SCRATCH, required_layers, timeout};
use crate::limits::{LEAST_MEMORY, LEAST_NATIVE_SCRATCH, Limits};
use belljar_contract::isolation::RequiredLayers;
use belljar_contract::yaml::{Members, MistakeLog, Node, processors, size, whole};
use std::time::Duration;

/// The settings of the native backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeConfig {
    /// Time limit of a call.
    pub timeout: Duration,
    /// Resource limits of a sandbox.
    pub limits: Limits,
    /// Lifecycle of a sandbox.
    pub lifecycle: LifecycleConfig,
    /// Layers that must be in force, or the sandbox isn't made.
    pub required: RequiredLayers,
}

// === impl NativeConfig ===

impl NativeConfig {
    pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let default = Self::default();
        let Some(mut members) = Members::open(node, log) else { return default };
        let limits = default.limits;
        let read = Self {
            timeout: members.or("timeout_seconds", default.timeout, timeout),
            limits: Limits {
                memory_bytes: members.or("memory_limit", limits.memory_bytes, |node, log| {
                    size(node, log, LEAST_MEMORY).map(Some)
                }),
                processes: members
                    .or("pids_limit", limits.processes, |node, log| whole(node, log, 1..=32_768)),
                millicpus: members
                    .or("cpu_limit", limits.millicpus, |node, log| processors(node, log).map(Some)),
                open_files: members
                    .or("open_files_limit", limits.open_files, |node, log| whole(node, log, 64..=1 << 20)),
                disk_bytes: members.or("disk_limit", limits.disk_bytes, |node, log| {
                    size(node, log, LEAST_SCRATCH).map(Some)
                }),
                scratch_bytes: members.or("tmpfs_size", limits.scratch_bytes, |node, log| {
                    size(node, log, LEAST_NATIVE_SCRATCH)
                }),
                terminals: members.or("ptys_limit", limits.terminals, |node, log| whole(node, log, 1..=1024)),
                filters: members
                    .or("seccomp_filters_limit", limits.filters, |node, log| whole(node, log, 0..=4096)),
            },
            lifecycle: members.section("lifecycle", LifecycleConfig::read),
            required: members.or("required", RequiredLayers::default(), required_layers),
        };
        members.finish();
        read
    }
}

impl Default for NativeConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            limits: Limits::default(),
            lifecycle: LifecycleConfig::default(),
            required: RequiredLayers::default(),
        }
    }
}
