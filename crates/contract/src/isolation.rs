//! What really stood between a job and its host: every layer, in force or not, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effective isolation of one sandbox, as the host measured it when it built the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Isolation {
    /// The backend that built the sandbox, such as `native`.
    pub backend: String,
    /// Every layer the backend knows, in the order they are put up.
    pub layers: Vec<Layer>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Its name, such as `network_namespace`.
    pub name: String,
    /// Whether it is in force.
    pub in_force: bool,
    /// What it does here, or why it is missing.
    pub detail: String,
}
