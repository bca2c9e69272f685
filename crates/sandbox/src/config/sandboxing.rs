//! `sandboxing`: which backend for which category of tools, and the settings of each.

use super::docker::DockerConfig;
use super::kubernetes;
use super::native::NativeConfig;
use super::subprocess::SubprocessConfig;
use crate::limits::Limits;
use belljar_contract::category::Category;
use belljar_contract::isolation::{LAYERS, RequiredLayers};
use belljar_contract::yaml::{Members, MistakeLog, Node, Value, by_category, list, one_of, place, seconds};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// Which backend for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandboxing {
    /// The backend for categories without an override.
    pub default_backend: BackendName,
    /// Backends of single categories, which override the default.
    pub overrides: BTreeMap<Category, BackendName>,
    /// The layers that no sandbox of any backend does without.
    pub required: RequiredLayers,
    /// `subprocess`.
    pub subprocess: SubprocessConfig,
    /// `docker`.
    pub docker: DockerConfig,
    /// `native`.
    pub native: NativeConfig,
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
}

/// A page.
pub(super) const LEAST_SCRATCH: u64 = 4 << 10;

// === impl Sandboxing ===

impl Sandboxing {
    /// The backend for a category.
    pub fn backend_for(&self, category: Category) -> BackendName {
        self.overrides.get(&category).copied().unwrap_or(self.default_backend)
    }

    /// The backends that are named.
    pub fn named_backends(&self) -> BTreeSet<BackendName> {
        self.overrides.values().copied().chain([self.default_backend]).collect()
    }

    /// Returns the resource limits of a sandbox of that backend.
    pub fn limits_of(&self, backend: BackendName) -> Limits {
        match backend {
            BackendName::Subprocess => self.subprocess.limits(),
            BackendName::Docker => self.docker.limits(),
            BackendName::Native => self.native.limits,
        }
    }

    /// Returns the layers that a sandbox of that backend must have: those of all backends and its own.
    pub fn required_of(&self, backend: BackendName) -> RequiredLayers {
        let own = match backend {
            BackendName::Subprocess => &self.subprocess.required,
            BackendName::Docker => &self.docker.required,
            BackendName::Native => &self.native.required,
        };
        own.clone().and(&self.required)
    }

    pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let default = Self::default();
        let Some(mut members) = Members::open(node, log) else { return default };
        let default_backend = members.or("default_backend", default.default_backend, backend);
        let layered = match default_backend {
            BackendName::Subprocess => layered(),
            BackendName::Docker | BackendName::Native => BTreeMap::new(),
        };
        let written = members.or("overrides", BTreeMap::new(), |node, log| by_category(node, log, backend));
        let read = Self {
            default_backend,
            overrides: layered.into_iter().chain(written).collect(),
            required: members.or("required", RequiredLayers::default(), required_layers),
            subprocess: members.section("subprocess", SubprocessConfig::read),
            docker: members.section("docker", DockerConfig::read),
            native: members.section("native", NativeConfig::read),
        };
        members.section("k8s", kubernetes::check);
        members.finish();
        read
    }
}

impl Default for Sandboxing {
    fn default() -> Self {
        Self {
            default_backend: BackendName::Subprocess,
            overrides: layered(),
            required: RequiredLayers::default(),
            subprocess: SubprocessConfig::default(),
            docker: DockerConfig::default(),
            native: NativeConfig::default(),
        }
    }
}

/// Returns the defaults of the contract (`docs/contracts/tools.md#t4.1`): risky categories run in a real sandbox.
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
    /// All backends.
    pub const ALL: [Self; 3] = [Self::Subprocess, Self::Docker, Self::Native];

    /// The name in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Subprocess => "subprocess",
            Self::Docker => "docker",
            Self::Native => "native",
        }
    }
}

impl fmt::Display for BackendName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Reads the name of an existing backend. The contract (`docs/contracts/tools.md#t3.4`) plans another one, of pods: a
/// category for that would never run.
fn backend(node: &Node, log: &mut MistakeLog) -> Option<BackendName> {
    if matches!(&node.value, Value::Plain(text) | Value::Text(text) if text == "k8s") {
        let found = "`k8s`, and this version makes no pods";
        log.note(node.position, place(node), found, "one of: docker, native, subprocess");
        return None;
    }
    one_of(node, log, &BackendName::ALL.map(|name| (name.as_str(), name)))
}

/// Reads the time limit of a call.
pub(super) fn timeout(node: &Node, log: &mut MistakeLog) -> Option<Duration> {
    seconds(node, log, Duration::from_millis(1)..=Duration::from_secs(600))
}

/// Reads the required layers.
pub(super) fn required_layers(node: &Node, log: &mut MistakeLog) -> Option<RequiredLayers> {
    let known = LAYERS.map(|name| (name, name));
    let names = list(node, log, |node, log| one_of(node, log, &known).map(str::to_owned))?;
    RequiredLayers::parse(names).ok()
}
