//! Connections that wait for the next call, and new ones where none does.

use super::connect::{ConnectError, Connector};
use super::dial::Dialed;
use super::names::NameSource;
use super::place::Upstream;
use super::stream::Stream;
use bytes::BytesMut;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A connection, and what has been read from it and not been used yet.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) inbox: BytesMut,
    /// Whether it has been used before.
    pub(crate) is_used: bool,
}

/// All of those that wait, and how others are made.
pub(crate) struct Pool {
    connector: Connector,
    idle: RefCell<Vec<Idle>>,
}

/// Those that wait for one upstream. There are few upstreams, and comparing costs less than hashing.
struct Idle {
    upstream: Upstream,
    waiting: Vec<(Instant, Connection)>,
}

/// So many wait for each upstream, and so long.
const MOST_IDLE: usize = 128;
const LONGEST_IDLE: Duration = Duration::from_secs(55);

/// For the head of an answer.
const ROOM: usize = 4 << 10;

// === impl Connection ===

impl Connection {
    /// One that was dialed for somebody in a sandbox, and is nobody else's before or after.
    pub(crate) fn of(Dialed { stream, early, .. }: Dialed) -> Self {
        Self { stream: Stream::Tcp(stream), inbox: early, is_used: false }
    }

    pub(super) fn over(stream: Stream) -> Self {
        Self { stream, inbox: BytesMut::with_capacity(ROOM), is_used: false }
    }
}

// === impl Pool ===

impl Pool {
    /// An empty one, for upstreams whose names are resolved there.
    pub(crate) fn new(names: NameSource) -> Self {
        Self { connector: Connector::new(names), idle: RefCell::default() }
    }

    /// A connection that is open, and on which nothing is under way.
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
        let Idle { waiting, .. } = idle.iter_mut().find(|idle| idle.upstream == *upstream)?;
        // The last comes first: the others grow old.
        let (since, connection) = waiting.pop()?;
        match since.elapsed() < LONGEST_IDLE {
            true => Some(connection),
            false => {
                waiting.clear();
                None
            }
        }
    }

    /// Gives one back on which a call has ended well.
    pub(crate) fn give_back(&self, upstream: &Upstream, mut connection: Connection) {
        connection.is_used = true;
        // Whatever is left over belongs to nothing that was asked for.
        if !connection.inbox.is_empty() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let now = (Instant::now(), connection);
        match idle.iter_mut().find(|idle| idle.upstream == *upstream) {
            Some(Idle { waiting, .. }) if waiting.len() < MOST_IDLE => waiting.push(now),
            Some(_) => {}
            None => idle.push(Idle { upstream: upstream.clone(), waiting: vec![now] }),
        }
    }
}
