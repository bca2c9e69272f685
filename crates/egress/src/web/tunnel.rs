//! Tunnel: forwards bytes in both directions until either end closes it or it is no longer allowed.

use self::handshake::Handshake;
use self::socket::Socket;
use self::splice::SpliceEnd;
use super::limits::ROOM;
use super::proxied_request::ProxiedRequest;
use super::run::WebRun;
use super::tunnel_opening::{self, Opening};
use crate::client::Client;
use crate::upstream::DialedConnection;
use belljar_policy::egress::{AllowedDestination, Destination, Host, TunnelStart};
use bytes::BytesMut;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf as FromOutside, WriteHalf as ToOutside};

mod handshake;
pub(super) mod socket;
mod splice;

/// Reason why a tunnel ended that neither end has closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TunnelEnd {
    /// The ClientHello named another server (SNI) than the tunnel's host.
    OtherName,
    /// The ClientHello named no server, and the rules require a name.
    NoName,
    /// The tunnel began with bytes that a TLS server may accept, but with no well-formed ClientHello.
    BrokenTls,
    /// The tunnel began with another protocol, and the rules require TLS.
    NoTls,
    /// The client doesn't trust the run's interception authority.
    NoTrust,
    /// The idle timeout was exceeded.
    Idle,
    /// The maximum duration of a tunnel was reached.
    TooLong,
    /// The run's byte limit was reached.
    Spent,
    /// The current policy doesn't allow the tunnel any more.
    Policy,
    /// One end was lost without closing the connection.
    Broken,
}

/// State that both directions share.
struct TunnelState<'p> {
    run: &'p WebRun,
    last: Cell<Instant>,
    sent: &'p Cell<u64>,
    received: &'p Cell<u64>,
    handshake: Handshake,
}

/// Requirements for the tunnel's opening, and the place where the server name of its ClientHello is noted.
struct OpeningCheck<'p> {
    destination: &'p Destination,
    /// Requirements of the current rules.
    rules: &'p Cell<TunnelStart>,
    begun: &'p Cell<OpeningState>,
    tls_name: &'p RefCell<Option<String>>,
}

/// Opening of the tunnel so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OpeningState {
    /// True if something else than TLS has passed.
    is_plain: bool,
    /// True if a ClientHello to a named host had no server name.
    is_unnamed: bool,
}

/// One direction of a tunnel.
struct Direction<'s> {
    shared: &'s TunnelState<'s>,
    counter: &'s Cell<u64>,
    may: fn(&WebRun, u64) -> bool,
}

// === impl TunnelEnd ===

impl TunnelEnd {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::OtherName => "tls_name_mismatch",
            Self::NoName => "tls_name_missing",
            Self::BrokenTls => "tls_malformed",
            Self::NoTls => "tls_required",
            Self::NoTrust => "tls_not_trusted",
            Self::Idle => "idle",
            Self::TooLong => "too_long",
            Self::Spent => "bytes_used_up",
            Self::Policy => "policy_changed",
            Self::Broken => "broken",
        }
    }
}

/// Forwards bytes until the tunnel ends.
pub(super) async fn run<S>(
    client: Client<S>,
    mut dialed: DialedConnection,
    allowed: &AllowedDestination<Destination>,
    passage: &mut ProxiedRequest<'_>,
) -> Result<(), TunnelEnd>
where
    S: Socket,
{
    let destination = allowed.value();
    let (mut stream, early) = client.into_parts();
    let (from_inside, to_inside) = stream.halves();
    let (from_outside, to_outside) = dialed.stream.halves();
    let times = passage.gate.run.limits.times;
    let (sent, received) = (Rc::clone(&passage.sent), Rc::clone(&passage.received));
    let tls_name = RefCell::new(None);
    let (rules, begun) = (Cell::new(allowed.tunnel_start()), Cell::default());
    let ended = {
        let shared = TunnelState {
            run: &passage.gate.run,
            last: Cell::new(Instant::now()),
            sent: &sent,
            received: &received,
            handshake: Handshake::default(),
        };
        let (upward, downward) = (shared.upward(), shared.downward());
        let start = OpeningCheck { destination, rules: &rules, begun: &begun, tls_name: &tls_name };
        let up = out::<S>((from_inside, to_outside), early, start, &upward);
        let down = back::<S>((from_outside, to_inside), dialed.early, &downward);
        let both = async { tokio::try_join!(up, down).map(drop) };
        let mut policy = passage.policy.clone();
        tokio::pin!(both);
        let total = tokio::time::sleep(times.call);
        tokio::pin!(total);
        loop {
            tokio::select! {
                // Policy changes come first: bytes that never stop would keep them from being checked.
                biased;
                // The sender of policies lives as long as the run.
                Ok(()) = policy.changed() => {
                    policy.borrow_and_update();
                    // A tunnel that has not begun yet begins by the new rules.
                    match passage.still_allowed(destination) {
                        Some(allowed) if begun.get().is_allowed(allowed.tunnel_start()) => {
                            rules.set(allowed.tunnel_start());
                        }
                        _ => break Err(TunnelEnd::Policy),
                    }
                }
                () = &mut total => break Err(TunnelEnd::TooLong),
                ended = &mut both => break ended,
                () = shared.idle(times.idle) => break Err(TunnelEnd::Idle),
            }
        }
    };
    passage.tls_name = tls_name.into_inner();
    ended
}

/// Direction from the sandbox to the outside. The opening is checked before any of it is sent.
async fn out<S: Socket>(
    (mut from, mut to): (S::From<'_>, ToOutside<'_>),
    mut early: BytesMut,
    start: OpeningCheck<'_>,
    direction: &Direction<'_>,
) -> Result<(), TunnelEnd> {
    let handshake = &direction.shared.handshake;
    loop {
        let read = tunnel_opening::read(&mut from, &mut early, || direction.shared.moves()).await;
        match read.map_err(|_| TunnelEnd::Broken)? {
            Opening::Tls { server_name, bytes } => {
                start.judge(server_name)?;
                handshake.hello_sent();
                direction.send(&early.split_to(bytes), &mut to).await?;
                if handshake.asks_again().await? {
                    let send = async |bytes: BytesMut| direction.send(&bytes, &mut to).await;
                    let about = (&start, direction.shared);
                    handshake::second_hello(&mut from, &mut early, about, send).await?;
                }
                break;
            }
            Opening::Nothing => break,
            Opening::Incomplete | Opening::Malformed => return Err(TunnelEnd::BrokenTls),
            Opening::Plain | Opening::Upgrade { .. } if start.rules.get().needs_tls => {
                return Err(TunnelEnd::NoTls);
            }
            Opening::Plain => {
                start.note(|begun| begun.is_plain = true);
                break;
            }
            Opening::Upgrade { bytes } => {
                start.note(|begun| begun.is_plain = true);
                handshake.asks_to_upgrade();
                direction.send(&early.split_to(bytes), &mut to).await?;
            }
        }
    }
    handshake.end();
    direction.pass::<S, TcpStream>(from, to, early).await
}

/// Direction from the outside to the sandbox. The server's answer to a ClientHello is parsed as it passes.
async fn back<S: Socket>(
    (mut from, mut to): (FromOutside<'_>, S::Into<'_>),
    mut buffer: BytesMut,
    direction: &Direction<'_>,
) -> Result<(), TunnelEnd> {
    let handshake = &direction.shared.handshake;
    while handshake.is_open() {
        if buffer.is_empty() {
            buffer.reserve(ROOM);
            if from.read_buf(&mut buffer).await.map_err(|_| TunnelEnd::Broken)? == 0 {
                handshake.end();
                break;
            }
        }
        handshake.hear(&buffer);
        direction.send(&buffer, &mut to).await?;
        buffer.clear();
    }
    direction.pass::<TcpStream, S>(from, to, buffer).await
}

/// Checks the server name of a ClientHello in a tunnel to that destination. SNI can't name an address: a tunnel to an address
/// has no server name, or the address as text.
pub(super) fn judge_name(
    server_name: Option<&str>,
    destination: &Destination,
    needs_server_name: bool,
) -> Result<(), TunnelEnd> {
    match (server_name, &destination.host) {
        (None, Host::Name(_)) if needs_server_name => Err(TunnelEnd::NoName),
        (None, _) => Ok(()),
        (Some(found), Host::Name(name)) if found == name.as_str() => Ok(()),
        (Some(found), Host::Address(address)) if found == address.to_string() => Ok(()),
        (Some(_), _) => Err(TunnelEnd::OtherName),
    }
}

// === impl OpeningCheck ===

impl OpeningCheck<'_> {
    /// Notes and checks the server name of a ClientHello.
    fn judge(&self, server_name: Option<String>) -> Result<(), TunnelEnd> {
        let needs_name = self.rules.get().needs_server_name;
        let judged = judge_name(server_name.as_deref(), self.destination, needs_name);
        let is_unnamed = server_name.is_none() && matches!(self.destination.host, Host::Name(_));
        self.note(|begun| begun.is_unnamed |= is_unnamed);
        *self.tls_name.borrow_mut() = server_name;
        judged
    }

    /// Notes something about the opening.
    fn note(&self, change: impl FnOnce(&mut OpeningState)) {
        let mut begun = self.begun.get();
        change(&mut begun);
        self.begun.set(begun);
    }
}

// === impl OpeningState ===

impl OpeningState {
    /// Returns true if those rules allow this opening.
    fn is_allowed(self, rules: TunnelStart) -> bool {
        let lacks_tls = self.is_plain && rules.needs_tls;
        let lacks_name = self.is_unnamed && rules.needs_server_name;
        !lacks_tls && !lacks_name
    }
}

// === impl Direction ===

impl Direction<'_> {
    /// Forwards the buffered bytes and everything that follows, until the end.
    async fn pass<R: Socket, W: Socket>(
        &self,
        mut from: R::From<'_>,
        mut to: W::Into<'_>,
        mut buffer: BytesMut,
    ) -> Result<(), TunnelEnd> {
        let mut splices = true;
        loop {
            if !buffer.is_empty() {
                self.send(&buffer, &mut to).await?;
            }
            // A sender that fills the buffer has more to send.
            if splices && buffer.len() >= ROOM {
                match splice::run(from.as_ref(), to.as_ref(), |bytes| self.note(bytes)).await? {
                    SpliceEnd::All => break,
                    SpliceEnd::Ebb => {}
                    SpliceEnd::NotHere => splices = false,
                }
            }
            buffer.clear();
            if buffer.capacity() != ROOM {
                buffer = BytesMut::with_capacity(ROOM);
            }
            if from.read_buf(&mut buffer).await.map_err(|_| TunnelEnd::Broken)? == 0 {
                break;
            }
        }
        // The other direction may go on.
        to.shutdown().await.map_err(|_| TunnelEnd::Broken)
    }

    /// Sends bytes, if the byte limit allows it.
    async fn send<W: AsyncWrite + Unpin>(&self, bytes: &[u8], to: &mut W) -> Result<(), TunnelEnd> {
        self.note(bytes.len())?;
        to.write_all(bytes).await.map_err(|_| TunnelEnd::Broken)
    }

    /// Counts bytes. Fails if they exceed the byte limit.
    fn note(&self, bytes: usize) -> Result<(), TunnelEnd> {
        let bytes = bytes as u64;
        self.shared.moves();
        self.counter.set(self.counter.get() + bytes);
        if (self.may)(self.shared.run, bytes) { Ok(()) } else { Err(TunnelEnd::Spent) }
    }
}

// === impl TunnelState ===

impl TunnelState<'_> {
    fn upward(&self) -> Direction<'_> {
        Direction { shared: self, counter: self.sent, may: WebRun::may_send }
    }

    fn downward(&self) -> Direction<'_> {
        Direction { shared: self, counter: self.received, may: WebRun::may_receive }
    }

    fn moves(&self) {
        self.last.set(Instant::now());
    }

    /// Returns once nothing has moved for that long.
    async fn idle(&self, patience: Duration) {
        loop {
            let left = patience.saturating_sub(self.last.get().elapsed());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }
}
