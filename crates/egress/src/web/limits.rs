//! How much goes through, and for how long anything is waited for.

use crate::audit_quota::AuditLimits;
use crate::http1::limits::Times;
use std::time::Duration;

/// Of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebLimits {
    /// For heads, connections and whatever stands still. `call` is how long one passage may take in all.
    pub times: Times,
    /// How long it is waited until somebody says where a name leads.
    pub names: Duration,
    /// Bytes that one run may send, and as many that it may receive.
    pub bytes: u64,
    /// So many may be let through at once, and so many each second then. Others wait.
    pub passages: (u32, u32),
    /// How much of it may be recorded.
    pub audit: AuditLimits,
}

/// What one direction of a tunnel holds of what passes; what comes in larger pieces stays in the kernel.
pub(crate) const ROOM: usize = 16 << 10;

/// The longest ClientHello that is read, with the heads of its records.
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
