//! `sandboxing`: which backend for which category of tools, and the settings of each.

use super::docker::DockerConfig;
use super::kubernetes::KubernetesConfig;
use super::native::NativeConfig;
use super::subprocess::SubprocessConfig;
use crate::limits::Limits;
use belljar_contract::category::Category;
use belljar_contract::isolation::{LAYERS, Required};
use belljar_contract::yaml::{Log, Members, Node, by_category, list, one_of, seconds};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// Which backend for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandboxing {
    /// The backend for categories without an override.
    pub default_backend: BackendName,
    /// The others.
    pub overrides: BTreeMap<Category, BackendName>,
    /// The layers that no sandbox of any backend does without.
    pub required: Required,
    /// `subprocess`.
    pub subprocess: SubprocessConfig,
    /// `docker`.
    pub docker: DockerConfig,
    /// `native`.
    pub native: NativeConfig,
    /// `k8s`.
    pub kubernetes: KubernetesConfig,
}

/// A backend, by the name that configurations use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendName {
    /// Programs of the host with less around them.
    Subprocess,
    /// Containers.
    Docker,
    /// Sandboxes made by the kernel's own means.
    Native,
    /// Pods.
    #[serde(rename = "k8s")]
    Kubernetes,
}

/// What nobody works in with less: Docker's own least.
pub(super) const LEAST_MEMORY: u64 = 6 << 20;
/// A page.
pub(super) const LEAST_SCRATCH: u64 = 4 << 10;

// === impl Sandboxing ===

impl Sandboxing {
    /// The backend for a category.
    pub fn backend_for(&self, category: Category) -> BackendName {
        self.overrides.get(&category).copied().unwrap_or(self.default_backend)
    }

    /// The categories that a backend is for.
    pub fn categories_of(&self, backend: BackendName) -> Vec<Category> {
        Category::ALL.into_iter().filter(|category| self.backend_for(*category) == backend).collect()
    }

    /// The backends that are named.
    pub fn named_backends(&self) -> BTreeSet<BackendName> {
        self.overrides.values().copied().chain([self.default_backend]).collect()
    }

    /// What a sandbox of that backend may use. Nothing is known of pods yet.
    pub fn limits_of(&self, backend: BackendName) -> Option<Limits> {
        match backend {
            BackendName::Subprocess => Some(self.subprocess.limits()),
            BackendName::Docker => Some(self.docker.limits()),
            BackendName::Native => Some(self.native.limits),
            BackendName::Kubernetes => None,
        }
    }

    /// The layers that a sandbox of that backend must have: those of all and those of its own.
    pub fn required_of(&self, backend: BackendName) -> Required {
        let own = match backend {
            BackendName::Subprocess => &self.subprocess.required,
            BackendName::Docker => &self.docker.required,
            BackendName::Native => &self.native.required,
            BackendName::Kubernetes => &self.required,
        };
        own.clone().and(&self.required)
    }

    pub(super) fn read(node: &Node, log: &mut Log) -> Self {
        let default = Self::default();
        let Some(mut members) = Members::open(node, log) else { return default };
        let default_backend = members.or("default_backend", default.default_backend, backend);
        let layered = match default_backend {
            BackendName::Subprocess => layered(),
            BackendName::Docker | BackendName::Native | BackendName::Kubernetes => BTreeMap::new(),
        };
        let written = members.or("overrides", BTreeMap::new(), |node, log| by_category(node, log, backend));
        let read = Self {
            default_backend,
            overrides: layered.into_iter().chain(written).collect(),
            required: members.or("required", Required::default(), required_layers),
            subprocess: members.section("subprocess", SubprocessConfig::read),
            docker: members.section("docker", DockerConfig::read),
            native: members.section("native", NativeConfig::read),
            kubernetes: members.section("k8s", KubernetesConfig::read),
        };
        members.finish();
        read
    }
}

impl Default for Sandboxing {
    fn default() -> Self {
        Self {
            default_backend: BackendName::Subprocess,
            overrides: layered(),
            required: Required::default(),
            subprocess: SubprocessConfig::default(),
            docker: DockerConfig::default(),
            native: NativeConfig::default(),
            kubernetes: KubernetesConfig::default(),
        }
    }
}

/// The layers of `spec/3`: what is risky is isolated in earnest.
fn layered() -> BTreeMap<Category, BackendName> {
    BTreeMap::from([
        (Category::FileSystem, BackendName::Subprocess),
        (Category::VersionControl, BackendName::Subprocess),
        (Category::Web, BackendName::Docker),
        (Category::CodeExecution, BackendName::Docker),
        (Category::Terminal, BackendName::Docker),
        (Category::Database, BackendName::Docker),
        (Category::Browser, BackendName::Docker),
        (Category::Desktop, BackendName::Docker),
    ])
}

// === impl BackendName ===

impl BackendName {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Subprocess, Self::Docker, Self::Native, Self::Kubernetes];

    /// The name in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Subprocess => "subprocess",
            Self::Docker => "docker",
            Self::Native => "native",
            Self::Kubernetes => "k8s",
        }
    }
}

impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

fn backend(node: &Node, log: &mut Log) -> Option<BackendName> {
    one_of(node, log, &BackendName::ALL.map(|name| (name.as_str(), name)))
}

/// How long a call may take.
pub(super) fn timeout(node: &Node, log: &mut Log) -> Option<Duration> {
    seconds(node, log, Duration::from_millis(1)..=Duration::from_secs(600))
}

/// The layers that are asked for.
pub(super) fn required_layers(node: &Node, log: &mut Log) -> Option<Required> {
    let known = LAYERS.map(|name| (name, name));
    let names = list(node, log, |node, log| one_of(node, log, &known).map(str::to_owned))?;
    Required::parse(names).ok()
}
