//! How much a sandbox may use, and which of its limits it has run into.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a sandbox may use as a whole. What is `None` is limited by the host alone, and the isolation report says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory, that of files in memory included, in bytes. Whoever needs more is killed, and the whole sandbox with it.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub processes: u64,
    /// Processor time, in thousandths of one processor: 1500 is one and a half.
    pub millicpus: Option<u32>,
    /// Open files of one process.
    pub open_files: u64,
    /// What the workspace may hold beyond what it held at first, in bytes.
    pub workspace_bytes: Option<u64>,
    /// What `/tmp`, the home directory, shared memory and an empty workspace may hold together, in bytes.
    pub scratch_bytes: u64,
}

/// A limit of which a sandbox can die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Its memory was used up (`oom_killed`).
    Memory,
    /// Its workspace had grown too large.
    Workspace,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: Some(4 << 30),
            processes: 1_024,
            millicpus: None,
            open_files: 65_536,
            workspace_bytes: Some(8 << 30),
            scratch_bytes: 1 << 30,
        }
    }
}

// === impl Limit ===

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Workspace => "workspace",
        })
    }
}
