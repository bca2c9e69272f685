//! Why a run isn't well.

use std::fmt;

/// Why a run isn't well, besides the exit code of its program (`spec/2 §Schema`, `SandboxRunResult.errorCode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceCode {
    /// Its time was over.
    Timeout,
    /// Its memory was used up.
    OomKilled,
    /// Something that had to be done around it was not.
    Internal,
    /// There was no sandbox, or the program could not be started in it.
    ContainerFailed,
    /// It ended well, and not all that it had to say could be kept.
    OutputTruncated,
    /// It has written more than its disk holds. Not in `spec/2`.
    DiskFull,
    /// Somebody wanted it to stop. Not in `spec/2`.
    Canceled,
}

// === impl OnceCode ===

impl OnceCode {
    /// Its text, which is stable.
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
