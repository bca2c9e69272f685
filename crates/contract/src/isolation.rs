//! Isolation of a job from its host: every layer, whether it is in force, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The effective isolation of one sandbox, as the host measured it when it built the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// The backend that built the sandbox, such as `native`.
    pub backend: String,
    /// The id by which an engine knows the sandbox's container; absent where the sandbox is no container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_id: Option<String>,
    /// All layers that the backend knows, in the order in which they are set up.
    pub layers: Vec<Layer>,
}

/// Layers that a policy requires (`required: [...]`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct RequiredLayers(BTreeSet<String>);

/// A layer that no backend knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown layer `{name}`; known layers: {}", LAYERS.join(", "))]
pub struct UnknownLayer {
    /// The name.
    pub name: String,
}

/// Names of all layers that a backend may report. A backend that lacks one reports it as not in force.
pub const LAYERS: [&str; 19] = [
    "user_namespace",
    "mount_namespace",
    "pid_namespace",
    "network_namespace",
    "ipc_namespace",
    "uts_namespace",
    "cgroup_namespace",
    "host_user",
    "capabilities",
    "no_new_privs",
    "seccomp",
    "landlock",
    "resource_limits",
    "kernel_tables",
    "memory_limit",
    "process_limit",
    "cpu_limit",
    "disk_limit",
    "scratch_limit",
];

/// A layer of isolation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Its name, such as `network_namespace`.
    pub name: String,
    /// True if it is in force.
    pub in_force: bool,
    /// Effect of the layer here, or the reason why it is missing.
    pub detail: String,
}

// === impl Isolation ===

impl Isolation {
    /// Returns the required layers that are not in force, each with the reason.
    pub fn missing(&self, required: &RequiredLayers) -> Vec<Layer> {
        let reported = |name: &String| self.layers.iter().find(|layer| layer.name == *name);
        let unknown = |name: &String| Layer {
            name: name.clone(),
            in_force: false,
            detail: format!("the {} backend has no such layer", self.backend),
        };
        let layers = required.0.iter().map(|name| reported(name).cloned().unwrap_or_else(|| unknown(name)));
        layers.filter(|layer| !layer.in_force).collect()
    }
}

// === impl RequiredLayers ===

impl RequiredLayers {
    /// Parses the names of layers.
    ///
    /// # Errors
    /// [`UnknownLayer`] for the first unknown name: a misspelt requirement would never be enforced.
    pub fn parse(names: impl IntoIterator<Item = String>) -> Result<Self, UnknownLayer> {
        let known = |name: String| match LAYERS.contains(&name.as_str()) {
            true => Ok(name),
            false => Err(UnknownLayer { name }),
        };
        names.into_iter().map(known).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the union of both.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().cloned());
        self
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl TryFrom<Vec<String>> for RequiredLayers {
    type Error = UnknownLayer;

    fn try_from(names: Vec<String>) -> Result<Self, UnknownLayer> {
        Self::parse(names)
    }
}

impl From<RequiredLayers> for Vec<String> {
    fn from(required: RequiredLayers) -> Self {
        required.0.into_iter().collect()
    }
}
