//! How much of anything is taken from whoever is in a sandbox, and for how long anything is waited for.

use std::time::Duration;

/// A request's line and headers together, in bytes.
pub const REQUEST_HEAD_BYTES: usize = 16 << 10;

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

/// From the first byte of a head to its last; and how long a connection may stay open without a request.
pub const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a connection may stay open without a request.
pub const KEEP_ALIVE_TIME: Duration = Duration::from_secs(75);

/// A request's body, from the first byte to the last.
pub const REQUEST_BODY_TIME: Duration = Duration::from_secs(120);

/// A connection to an upstream, until it stands.
pub const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Without a byte from the upstream, or without one taken by the client.
pub const IDLE_TIME: Duration = Duration::from_secs(300);

/// One call, whatever happens in it.
pub const CALL_TIME: Duration = Duration::from_secs(1_800);
