//! `sandboxing.k8s`: a pod for each agent, planned in `spec/3`. What is written is checked; no backend uses it yet.

use super::allowed_host::is_label;
use belljar_contract::yaml::{Log, Members, Node, kubernetes_cpu, kubernetes_memory, one_of, place, text};

/// The settings of the Kubernetes backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubernetesConfig {
    /// Where the pods are.
    pub namespace: String,
    /// What a pod is sure to get.
    pub resource_requests: Resources,
    /// What a pod may use.
    pub resource_limits: Resources,
    /// What a pod may reach.
    pub network_policy: NetworkPolicy,
}

/// Shares of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resources {
    /// Processor time, in thousandths of one processor.
    pub millicpus: u64,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

/// What a pod may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// Nothing.
    DenyAll,
}

// === impl KubernetesConfig ===

impl KubernetesConfig {
    pub(super) fn read(node: &Node, log: &mut Log) -> Self {
        let default = Self::default();
        let Some(mut members) = Members::open(node, log) else { return default };
        let read = Self {
            namespace: members.or("namespace", default.namespace, |node, log| {
                let expected = "the name of a namespace: small letters, digits and hyphens, at most 63";
                text(node, log, expected, |text| {
                    let is_name = is_label(text) && !text.contains(|c: char| c.is_ascii_uppercase());
                    is_name.then(|| text.to_owned())
                })
            }),
            resource_requests: members.or("resource_requests", default.resource_requests, |node, log| {
                Some(Resources::read(node, log, default.resource_requests))
            }),
            resource_limits: members.or("resource_limits", default.resource_limits, |node, log| {
                Some(Resources::read(node, log, default.resource_limits))
            }),
            network_policy: members.or("network_policy", default.network_policy, |node, log| {
                one_of(node, log, &[("deny-all", NetworkPolicy::DenyAll)])
            }),
        };
        let (requests, limits) = (read.resource_requests, read.resource_limits);
        if requests.millicpus > limits.millicpus || requests.memory_bytes > limits.memory_bytes {
            let node = members.node("resource_requests").unwrap_or(node);
            let found = "requests above the limits";
            members.log.note(node.position, place(node), found, "at most what `resource_limits` says");
        }
        members.finish();
        read
    }
}

impl Default for KubernetesConfig {
    fn default() -> Self {
        Self {
            namespace: "synthorg-agents".to_owned(),
            resource_requests: Resources { millicpus: 250, memory_bytes: 256 << 20 },
            resource_limits: Resources { millicpus: 1_000, memory_bytes: 1 << 30 },
            network_policy: NetworkPolicy::DenyAll,
        }
    }
}

// === impl Resources ===

impl Resources {
    fn read(node: &Node, log: &mut Log, default: Self) -> Self {
        let Some(mut members) = Members::open(node, log) else { return default };
        let read = Self {
            millicpus: members.or("cpu", default.millicpus, kubernetes_cpu),
            memory_bytes: members.or("memory", default.memory_bytes, kubernetes_memory),
        };
        members.finish();
        read
    }
}
