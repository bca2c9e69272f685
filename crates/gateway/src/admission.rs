//! Connection limits of a server: tracks open connections, and closes one to make room for another.
//!
//! A client is unauthenticated until a request of it has presented a token. The number of unauthenticated connections is limited,
//! in total and per peer: an address, and on this machine a user. A new connection never waits: at the limit, the oldest
//! unauthenticated connection without a request under way is closed. So a flood of slow clients closes its own connections, and
//! health checks are still answered.

use belljar_trusted::tcp_server::client_user;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum numbers of connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Of authenticated clients. Further ones count as unauthenticated.
    pub authenticated: usize,
    /// Of unauthenticated clients.
    pub unauthenticated: usize,
    /// Of unauthenticated clients of one peer. IPv6 addresses count by their /64 network; users of this machine are peers of
    /// their own.
    pub unauthenticated_per_peer: usize,
    /// Time after which an unauthenticated connection without a request under way is closed.
    pub authenticate_within: Duration,
}

/// The open connections of a server.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: ConnectionLimits,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    authenticated: usize,
    /// By age, the oldest first.
    unauthenticated: BTreeMap<u64, UnauthenticatedConnection>,
}

#[derive(Debug)]
struct UnauthenticatedConnection {
    peer: Peer,
    requests: Arc<AtomicUsize>,
    closed: CancellationToken,
}

/// Identity by which unauthenticated clients are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    network: IpAddr,
    /// User id of a process on this machine that still holds its end.
    user: Option<u32>,
}

/// The slot of a connection, in the extensions of its requests. Dropping it frees the slot.
#[derive(Debug)]
pub struct ConnectionSlot {
    number: u64,
    admission: Arc<Admission>,
    is_authenticated: AtomicBool,
    requests: Arc<AtomicUsize>,
    closed: CancellationToken,
}

/// A request that is under way.
pub(crate) struct RequestInProgress<'p>(&'p ConnectionSlot);

// === impl Admission ===

impl Admission {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default() })
    }

    /// Returns a slot for a new connection. Another connection may be closed for it.
    pub(crate) fn enter(self: &Arc<Self>, peer: Peer) -> Arc<ConnectionSlot> {
        let (requests, closed) = (Arc::default(), CancellationToken::new());
        let mut open = self.locked();
        let of_peer = open.unauthenticated.values().filter(|other| other.peer == peer).count();
        if of_peer >= self.limits.unauthenticated_per_peer {
            open.close_oldest(|other| other.peer == peer);
        } else if open.unauthenticated.len() >= self.limits.unauthenticated {
            open.close_oldest(|_| true);
        }
        let number = open.next;
        open.next += 1;
        let entry =
            UnauthenticatedConnection { peer, requests: Arc::clone(&requests), closed: closed.clone() };
        open.unauthenticated.insert(number, entry);
        let admission = Arc::clone(self);
        Arc::new(ConnectionSlot {
            number,
            admission,
            is_authenticated: AtomicBool::new(false),
            requests,
            closed,
        })
    }

    /// Closes the oldest unauthenticated connection, because no descriptors are left.
    pub(crate) fn make_room(&self) {
        self.locked().close_oldest(|_| true);
    }

    fn locked(&self) -> MutexGuard<'_, OpenConnections> {
        // Ignores poisoning: each change is complete.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Peer ===

impl Peer {
    /// Returns the peer that has connected to one of our addresses.
    pub(crate) fn of(client: SocketAddr, server: Option<SocketAddr>) -> Self {
        let user = server.and_then(|server| client_user(client, server));
        Self { network: network(client.ip()), user }
    }
}

// === impl OpenConnections ===

impl OpenConnections {
    fn close_oldest(&mut self, is_meant: impl Fn(&UnauthenticatedConnection) -> bool) {
        let meant = || self.unauthenticated.iter().filter(|(_, other)| is_meant(other));
        let idle = meant().find(|(_, other)| other.requests.load(Ordering::SeqCst) == 0);
        let number = idle.or_else(|| meant().next()).map(|(number, _)| *number);
        if let Some(closed) = number.and_then(|number| self.unauthenticated.remove(&number)) {
            closed.closed.cancel();
        }
    }
}

// === impl ConnectionSlot ===

impl ConnectionSlot {
    /// Notes that the client has authenticated. Beyond the limit of authenticated clients the connection stays unauthenticated.
    pub fn authenticated(&self) {
        if self.is_authenticated.load(Ordering::SeqCst) {
            return;
        }
        let mut open = self.admission.locked();
        if open.authenticated < self.admission.limits.authenticated
            && open.unauthenticated.remove(&self.number).is_some()
        {
            open.authenticated += 1;
            self.is_authenticated.store(true, Ordering::SeqCst);
        }
    }

    /// Notes a request that is under way until the returned value is dropped.
    pub(crate) fn begin(&self) -> RequestInProgress<'_> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        RequestInProgress(self)
    }

    /// Returns when the connection is to be closed.
    pub(crate) async fn closed(&self) {
        loop {
            tokio::select! {
                () = self.closed.cancelled() => return,
                () = tokio::time::sleep(self.admission.limits.authenticate_within) => {}
            }
            let is_kept = self.is_authenticated.load(Ordering::SeqCst);
            if !is_kept && self.requests.load(Ordering::SeqCst) == 0 {
                return;
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.admission.locked();
        match self.is_authenticated.load(Ordering::SeqCst) {
            true => open.authenticated -= 1,
            false => drop(open.unauthenticated.remove(&self.number)),
        }
    }
}

impl Drop for RequestInProgress<'_> {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns the network within which a client can choose its address.
fn network(peer: IpAddr) -> IpAddr {
    const HOST_BITS: u128 = u64::MAX as u128;
    match peer.to_canonical() {
        IpAddr::V6(peer) => IpAddr::V6((peer.to_bits() & !HOST_BITS).into()),
        peer @ IpAddr::V4(_) => peer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ConnectionLimits = ConnectionLimits {
        authenticated: 1,
        unauthenticated: 3,
        unauthenticated_per_peer: 2,
        authenticate_within: Duration::from_secs(10),
    };

    fn is_open(place: &ConnectionSlot) -> bool {
        !place.closed.is_cancelled()
    }

    fn peer(last: u8) -> Peer {
        Peer { network: IpAddr::from([192, 0, 2, last]), user: None }
    }

    #[test]
    fn connections_of_one_local_user_are_not_closed_for_those_of_another() {
        let admission = Admission::new(LIMITS);
        let of = |user| Peer { network: IpAddr::from([127, 0, 0, 1]), user: Some(user) };
        let own = admission.enter(of(1_000));
        let flood: Vec<_> = (0..8).map(|_| admission.enter(of(1_001))).collect();
        assert!(is_open(&own));
        assert_eq!(flood.iter().filter(|place| is_open(place)).count(), LIMITS.unauthenticated_per_peer);
    }

    #[test]
    fn local_client_is_identified_by_its_user() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let client = std::net::TcpStream::connect(server).unwrap();
        let found = Peer::of(client.local_addr().unwrap(), Some(server));
        assert!(found.user.is_some(), "{found:?}");
    }

    #[test]
    fn oldest_connection_of_the_peer_is_closed_at_its_limit() {
        let admission = Admission::new(LIMITS);
        let other = admission.enter(peer(1));
        let all: Vec<_> = (0..3).map(|_| admission.enter(peer(2))).collect();
        assert_eq!(all.iter().map(|place| is_open(place)).collect::<Vec<_>>(), [false, true, true]);
        assert!(is_open(&other), "another peer's is not closed for it");
    }

    #[test]
    fn oldest_connection_is_closed_at_the_total_limit() {
        let admission = Admission::new(LIMITS);
        let all: Vec<_> = (0..4).map(|last| admission.enter(peer(last))).collect();
        assert_eq!(all.iter().map(|place| is_open(place)).collect::<Vec<_>>(), [false, true, true, true]);
    }

    #[test]
    fn busy_connection_is_closed_last() {
        let admission = Admission::new(LIMITS);
        let (busy, idle) = (admission.enter(peer(1)), admission.enter(peer(1)));
        let under_way = busy.begin();
        let third = admission.enter(peer(1));
        assert_eq!([is_open(&busy), is_open(&idle), is_open(&third)], [true, false, true]);
        let _both = (third.begin(), under_way);
        admission.enter(peer(1));
        assert!(!is_open(&busy), "the oldest, where all are busy");
    }

    #[test]
    fn authenticated_connection_is_not_closed_for_others() {
        let admission = Admission::new(LIMITS);
        let (known, above) = (admission.enter(peer(1)), admission.enter(peer(1)));
        known.authenticated();
        above.authenticated();
        let all: Vec<_> = (0..3).map(|_| admission.enter(peer(1))).collect();
        assert_eq!([is_open(&known), is_open(&above)], [true, false], "only one has a place of its own");
        drop((known, above, all));
        let open = admission.locked();
        assert_eq!((open.authenticated, open.unauthenticated.len()), (0, 0));
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_peer() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_eq!(of("::ffff:192.0.2.1"), peer(1).network);
    }

    #[tokio::test(start_paused = true)]
    async fn unauthenticated_connection_is_closed_after_its_time_limit() {
        let admission = Admission::new(LIMITS);
        let (known, unknown) = (admission.enter(peer(1)), admission.enter(peer(1)));
        known.authenticated();
        unknown.closed().await;
        let waited = tokio::time::timeout(Duration::from_secs(3_600), known.closed()).await;
        assert!(waited.is_err());
    }
}
