//! Size and time limits for connections from sandboxes.

use std::time::Duration;

/// Maximum size of a request's line and headers together, in bytes.
pub const REQUEST_HEAD_BYTES: usize = 16 << 10;

/// Maximum size of the head of a `CONNECT` request, in bytes.
pub const CONNECT_HEAD_BYTES: usize = 8 << 10;

/// Maximum number of headers of one request.
pub const REQUEST_HEADERS: usize = 100;

/// Maximum size of a request's body, in bytes. It is held whole, because its content decides where it goes.
pub const REQUEST_BODY_BYTES: usize = 32 << 20;

/// Maximum size of all request bodies that one run has under way, in bytes. Others wait.
pub const REQUEST_BODIES_BYTES: usize = 128 << 20;

/// Maximum size of an answer's status line and headers together, in bytes.
pub const RESPONSE_HEAD_BYTES: usize = 64 << 10;

/// Maximum number of headers of one answer.
pub const RESPONSE_HEADERS: usize = 256;

/// Maximum size of an answer's body in any framing, in bytes.
pub const RESPONSE_BODY_BYTES: u64 = 1 << 30;

/// Maximum length of a chunk's size line, in bytes. It has no extensions.
pub const CHUNK_LINE_BYTES: usize = 18;

/// Maximum number of concurrent connections of one run.
pub const CONNECTIONS: usize = 1_024;

/// Maximum size of a body for requests that the host answers by itself, in bytes.
pub const SMALL_BODY_BYTES: usize = 64 << 10;

/// Rate limit for refusals and the host's own answers of one run: burst, and number per second. Others wait: each answer is
/// recorded, and no run may fill the disk with records.
pub const OWN_ANSWERS: (u32, u32) = (1_000, 100);

/// Time limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// From the first byte of a head to its last.
    pub head: Duration,
    /// Maximum time that a connection stays open without a request.
    pub keep_alive: Duration,
    /// From the first byte of a request's body to the last, including the wait for memory.
    pub body: Duration,
    /// Time to connect to an upstream.
    pub connect: Duration,
    /// Maximum time without a byte from the upstream, and for one write to a client.
    pub idle: Duration,
    /// One call in all.
    pub call: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            body: Duration::from_secs(120),
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            call: Duration::from_secs(1_800),
        }
    }
}
