//! How much of anything is taken from whoever is in a sandbox, and for how long anything is waited for.

use std::time::Duration;

/// A request's line and headers together, in bytes.
pub const REQUEST_HEAD_BYTES: usize = 16 << 10;

/// The same of a request for a tunnel, which says where to and little else.
pub const CONNECT_HEAD_BYTES: usize = 8 << 10;

/// Headers of one request.
pub const REQUEST_HEADERS: usize = 100;

/// A request's body, in bytes. It is held whole, because what is in it decides where it goes.
pub const REQUEST_BODY_BYTES: usize = 32 << 20;

/// Bodies of requests that one run has under way, together, in bytes. Others wait.
pub const REQUEST_BODIES_BYTES: usize = 128 << 20;

/// An answer's status line and headers together, in bytes.
pub const RESPONSE_HEAD_BYTES: usize = 64 << 10;

/// Headers of one answer.
pub const RESPONSE_HEADERS: usize = 256;

/// An answer's body, in bytes, however it comes.
pub const RESPONSE_BODY_BYTES: u64 = 1 << 30;

/// The line of a chunk: its size, without extensions.
pub const CHUNK_LINE_BYTES: usize = 18;

/// Connections of one run at a time.
pub const CONNECTIONS: usize = 1_024;

/// Bytes of a body for what the host answers by itself.
pub const SMALL_BODY_BYTES: usize = 64 << 10;

/// Refusals and answers of the host's own that one run may have at once, and then each second. Others wait: each is
/// recorded, and nobody is to fill the disk with them.
pub const OWN_ANSWERS: (u32, u32) = (1_000, 100);

/// How long anything is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// From the first byte of a head to its last.
    pub head: Duration,
    /// How long a connection may stay open without a request.
    pub keep_alive: Duration,
    /// A request's body, from the first byte to the last, and until there is room for it.
    pub body: Duration,
    /// A connection to an upstream, until it stands.
    pub connect: Duration,
    /// Without a byte from the upstream; and until a client has taken what is sent at a time.
    pub idle: Duration,
    /// One call, whatever happens in it.
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
