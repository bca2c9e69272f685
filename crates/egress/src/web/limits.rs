//! Size, rate and time limits of a run's web hatch.

use crate::audit_quota::AuditLimits;
use crate::http1::limits::Times;
use std::time::Duration;

/// Limits of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebLimits {
    /// Time limits for heads, connections and idle streams. `call` is the limit of one request or tunnel.
    pub times: Times,
    /// Time limit for a name lookup.
    pub names: Duration,
    /// Maximum number of bytes that one run may send, and that it may receive.
    pub bytes: u64,
    /// Rate limit of allowed requests and tunnels: burst, and number per second. Others wait.
    pub passages: (u32, u32),
    /// Limits on what a run may write to the audit log.
    pub audit: AuditLimits,
}

/// Buffer size of each direction of a tunnel, in bytes. Backpressure leaves the rest in the kernel.
pub(crate) const ROOM: usize = 16 << 10;

/// Maximum size of a ClientHello with the headers of its records, in bytes.
pub(crate) const CLIENT_HELLO_BYTES: usize = 64 << 10;

impl Default for WebLimits {
    fn default() -> Self {
        let times = Times {
            head: Duration::from_secs(10),
            keep_alive: Duration::from_secs(75),
            body: Duration::from_secs(120),
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            call: Duration::from_secs(3_600),
        };
        Self {
            times,
            names: Duration::from_secs(2),
            bytes: 10 << 30,
            passages: (2_000, 200),
            audit: AuditLimits::USUAL,
        }
    }
}
