//! `tools.metrics`.

use super::NamedResource;
use crate::bridge::config::read_name;
use belljar_contract::yaml::{Members, MistakeLog, Node, below};
use belljar_egress::remote::RemoteService;

/// A server with the API of Prometheus.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricsConfig {
    /// Name by which agents refer to it.
    pub name: String,
    /// Its address and credential.
    pub remote: RemoteService,
}

// === impl MetricsConfig ===

impl MetricsConfig {
    pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Option<Self> {
        let mut members = Members::open(node, log)?;
        let name = members.required("name", read_name);
        let remote = RemoteService::read(&mut members);
        if members.node("url").is_none() {
            members.log.note(node.position, &below(&node.path, "url"), "nothing", "this required member");
        }
        members.finish();
        Some(Self { name: name?, remote: remote? })
    }
}

impl NamedResource for MetricsConfig {
    fn name(&self) -> &str {
        &self.name
    }
}
