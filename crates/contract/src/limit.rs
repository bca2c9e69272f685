//! The limits of which a sandbox can die.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A limit of which a sandbox can die: everything in it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Its memory was used up (`oom_killed`).
    Memory,
    /// It had written too much to the host's disk.
    Disk,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "its memory was used up",
            Self::Disk => "it had written too much to disk",
        })
    }
}
