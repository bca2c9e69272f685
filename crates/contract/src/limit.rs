//! Limits whose violation kills a sandbox.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A limit of a sandbox. Exceeding it kills everything in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Memory: the sandbox was OOM-killed (`oom_killed`).
    Memory,
    /// Too much was written to the host's disk.
    Disk,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "its memory was used up",
            Self::Disk => "it exceeded its disk quota",
        })
    }
}
