//! Error codes of a run.

use std::fmt;

/// Reason why a run failed, besides the exit code of its program (`docs/contracts/agents.md#a3.6`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceCode {
    /// Its time limit was over.
    Timeout,
    /// It exceeded its memory limit (OOM kill).
    OomKilled,
    /// A step around the program failed.
    Internal,
    /// The sandbox could not be made, or the program could not be started in it.
    ContainerFailed,
    /// The program succeeded, but its output was truncated.
    OutputTruncated,
    /// It exceeded its disk quota. Not in the contract.
    DiskFull,
    /// It was canceled. Not in the contract.
    Canceled,
}

// === impl OnceCode ===

impl OnceCode {
    /// Returns the stable text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::OomKilled => "oom_killed",
            Self::Internal => "internal",
            Self::ContainerFailed => "container_failed",
            Self::OutputTruncated => "output_truncated",
            Self::DiskFull => "disk_full",
            Self::Canceled => "canceled",
        }
    }
}

impl fmt::Display for OnceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
