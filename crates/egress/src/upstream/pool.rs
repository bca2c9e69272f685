//! Pool of idle connections. If none is available, a new one is made.

use super::connect::{ConnectError, Connector};
use super::dial::DialedConnection;
use super::names::NameSource;
use super::place::Upstream;
use super::stream::Stream;
use bytes::BytesMut;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// Connection, with bytes that were read from it and are not used yet.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) inbox: BytesMut,
    /// True if the connection was used before.
    pub(crate) is_used: bool,
}

/// Idle connections, and the means to make others.
pub(crate) struct Pool {
    connector: Connector,
    idle: RefCell<Vec<IdleConnections>>,
}

/// Idle connections to one upstream. There are few upstreams, and comparing costs less than hashing.
struct IdleConnections {
    upstream: Upstream,
    waiting: Vec<(Instant, Connection)>,
}

/// Maximum number of idle connections for each upstream, and their maximum idle time.
const MOST_IDLE: usize = 128;
const LONGEST_IDLE: Duration = Duration::from_secs(55);

/// Initial buffer size for the head of an answer, in bytes.
const ROOM: usize = 4 << 10;

// === impl Connection ===

impl Connection {
    /// Wraps a connection that was dialed for a sandbox. It is never shared or reused.
    pub(crate) fn of(DialedConnection { stream, early, .. }: DialedConnection) -> Self {
        Self { stream: Stream::Tcp(stream), inbox: early, is_used: false }
    }

    pub(super) fn over(stream: Stream) -> Self {
        Self { stream, inbox: BytesMut::with_capacity(ROOM), is_used: false }
    }
}

// === impl Pool ===

impl Pool {
    /// Creates an empty pool that resolves names by `names`.
    pub(crate) fn new(names: NameSource) -> Self {
        Self { connector: Connector::new(names), idle: RefCell::default() }
    }

    /// Takes an open connection without a request under way.
    pub(crate) async fn take(&self, upstream: &Upstream) -> Result<Connection, ConnectError> {
        while let Some(mut connection) = self.pop(upstream) {
            if connection.stream.is_quiet() {
                return Ok(connection);
            }
        }
        let stream = self.connector.connect(upstream).await?;
        Ok(Connection { stream, inbox: BytesMut::with_capacity(ROOM), is_used: false })
    }

    fn pop(&self, upstream: &Upstream) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        let IdleConnections { waiting, .. } = idle.iter_mut().find(|idle| idle.upstream == *upstream)?;
        // The latest is used first; the others expire.
        let (since, connection) = waiting.pop()?;
        match since.elapsed() < LONGEST_IDLE {
            true => Some(connection),
            false => {
                waiting.clear();
                None
            }
        }
    }

    /// Gives back a connection after a successful call.
    pub(crate) fn give_back(&self, upstream: &Upstream, mut connection: Connection) {
        connection.is_used = true;
        // Left-over bytes belong to no request, so the connection is not reused.
        if !connection.inbox.is_empty() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let now = (Instant::now(), connection);
        match idle.iter_mut().find(|idle| idle.upstream == *upstream) {
            Some(IdleConnections { waiting, .. }) if waiting.len() < MOST_IDLE => waiting.push(now),
            Some(_) => {}
            None => idle.push(IdleConnections { upstream: upstream.clone(), waiting: vec![now] }),
        }
    }
}
