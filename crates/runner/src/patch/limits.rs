//! Limits for the work and memory of one patch.

/// Limits for one patch, so that a hostile diff ends in an error instead of exhausting the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Size of the diff in bytes; at most 4 GiB are ever read. Default 64 MiB.
    pub diff_bytes: usize,
    /// File sections in the diff. Default 100,000.
    pub files: usize,
    /// Hunks in the diff, over all files. Default 500,000, each holding some 70 bytes of memory.
    pub hunks: usize,
    /// Bytes of new content a plan may hold at one time, in all files together. Default 40 MiB: with one file's
    /// old and new content, and the largest patch, that stays near 64 MiB.
    pub result_bytes: usize,
    /// Steps of work while planning, each about 10 ns: a line looked at for a hunk that isn't where it should be,
    /// 64 bytes compared or copied. Default 2^25, which also bounds all files together to 2 GiB.
    pub work_steps: u64,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            diff_bytes: 64 << 20,
            files: 100_000,
            hunks: 500_000,
            result_bytes: 40 << 20,
            work_steps: 1 << 25,
        }
    }
}
