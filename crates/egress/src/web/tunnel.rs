//! A tunnel: bytes both ways, until either end has closed it or it may not go on.

use self::socket::Socket;
use self::splice::Moved;
use super::greeting::{self, Greeting};
use super::limits::ROOM;
use super::passage::Passage;
use super::run::WebRun;
use crate::client::Client;
use crate::upstream::Dialed;
use belljar_policy::egress::Destination;
use bytes::BytesMut;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::WriteHalf as ToOutside;

pub(super) mod socket;
mod splice;

/// Why one ended that neither end has closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It began with TLS for another host.
    OtherName,
    /// It began as TLS does, and wasn't.
    BrokenTls,
    /// The client doesn't trust whoever looks into it.
    NoTrust,
    /// Nothing came for too long.
    Idle,
    /// It was open for as long as any may be.
    TooLong,
    /// The run has sent or received as much as it may.
    Spent,
    /// The policy doesn't allow it any more.
    Policy,
    /// An end is gone without having closed.
    Broken,
}

/// What both directions share.
struct Shared<'p> {
    run: &'p WebRun,
    last: Cell<Instant>,
    sent: &'p Cell<u64>,
    received: &'p Cell<u64>,
}

/// One of them.
struct Direction<'s> {
    shared: &'s Shared<'s>,
    counter: &'s Cell<u64>,
    may: fn(&WebRun, u64) -> bool,
}

// === impl End ===

impl End {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::OtherName => "tls_name_mismatch",
            Self::BrokenTls => "tls_malformed",
            Self::NoTrust => "tls_not_trusted",
            Self::Idle => "idle",
            Self::TooLong => "too_long",
            Self::Spent => "bytes_used_up",
            Self::Policy => "policy_changed",
            Self::Broken => "broken",
        }
    }
}

/// Passes bytes on until it ends.
pub(super) async fn run<S>(
    client: Client<S>,
    mut dialed: Dialed,
    destination: &Destination,
    passage: &mut Passage<'_>,
) -> Result<(), End>
where
    S: Socket,
{
    let (mut stream, early) = client.into_parts();
    let (from_inside, to_inside) = stream.halves();
    let (from_outside, to_outside) = dialed.stream.halves();
    let times = passage.gate.run.limits.times;
    let (sent, received) = (Rc::clone(&passage.sent), Rc::clone(&passage.received));
    let tls_name = RefCell::new(None);
    let ended = {
        let shared = Shared {
            run: &passage.gate.run,
            last: Cell::new(Instant::now()),
            sent: &sent,
            received: &received,
        };
        let (upward, downward) = (shared.upward(), shared.downward());
        let expected = (Passage::expected_name(destination), &tls_name);
        let up = out::<S>((from_inside, to_outside), early, expected, &upward);
        let down = downward.pass::<TcpStream, S>(from_outside, to_inside, dialed.early);
        let both = async { tokio::try_join!(up, down).map(drop) };
        let mut policy = passage.policy.clone();
        tokio::pin!(both);
        let total = tokio::time::sleep(times.call);
        tokio::pin!(total);
        loop {
            tokio::select! {
                // What may end it first: bytes that never stop would keep it from being looked at.
                biased;
                // Whoever replaces policies is there for as long as the run.
                Ok(()) = policy.changed() => {
                    policy.borrow_and_update();
                    if !passage.is_still_allowed(destination) {
                        break Err(End::Policy);
                    }
                }
                () = &mut total => break Err(End::TooLong),
                ended = &mut both => break ended,
                () = shared.idle(times.idle) => break Err(End::Idle),
            }
        }
    };
    passage.tls_name = tls_name.into_inner();
    ended
}

/// From inside to the outside; what it begins with is looked at before any of it goes on.
async fn out<S: Socket>(
    (mut from, to): (S::From<'_>, ToOutside<'_>),
    mut early: BytesMut,
    (expected, tls_name): (Option<&str>, &RefCell<Option<String>>),
    direction: &Direction<'_>,
) -> Result<(), End> {
    let heard = greeting::hear_out(&mut from, &mut early, || direction.shared.moves()).await;
    match heard.map_err(|_| End::Broken)? {
        Greeting::Tls { name } => {
            let is_other = name.is_some() && expected.is_some() && name.as_deref() != expected;
            *tls_name.borrow_mut() = name;
            if is_other {
                return Err(End::OtherName);
            }
        }
        Greeting::Other => {}
        Greeting::Broken | Greeting::Unfinished => return Err(End::BrokenTls),
    }
    direction.pass::<S, TcpStream>(from, to, early).await
}

// === impl Direction ===

impl Direction<'_> {
    /// Passes on what has come already and what comes, until there is no more.
    async fn pass<R: Socket, W: Socket>(
        &self,
        mut from: R::From<'_>,
        mut to: W::Into<'_>,
        mut buffer: BytesMut,
    ) -> Result<(), End> {
        let mut splices = true;
        loop {
            if !buffer.is_empty() {
                self.note(buffer.len())?;
                to.write_all(&buffer).await.map_err(|_| End::Broken)?;
            }
            // Whoever fills a buffer has more to say.
            if splices && buffer.len() >= ROOM {
                match splice::run(from.as_ref(), to.as_ref(), |bytes| self.note(bytes)).await? {
                    Moved::All => break,
                    Moved::Ebb => {}
                    Moved::NotHere => splices = false,
                }
            }
            buffer.clear();
            if buffer.capacity() != ROOM {
                buffer = BytesMut::with_capacity(ROOM);
            }
            if from.read_buf(&mut buffer).await.map_err(|_| End::Broken)? == 0 {
                break;
            }
        }
        // The other direction may go on.
        to.shutdown().await.map_err(|_| End::Broken)
    }

    /// Bytes that have come, and go on if they still may.
    fn note(&self, bytes: usize) -> Result<(), End> {
        let bytes = bytes as u64;
        self.shared.moves();
        self.counter.set(self.counter.get() + bytes);
        if (self.may)(self.shared.run, bytes) { Ok(()) } else { Err(End::Spent) }
    }
}

// === impl Shared ===

impl Shared<'_> {
    fn upward(&self) -> Direction<'_> {
        Direction { shared: self, counter: self.sent, may: WebRun::may_send }
    }

    fn downward(&self) -> Direction<'_> {
        Direction { shared: self, counter: self.received, may: WebRun::may_receive }
    }

    fn moves(&self) {
        self.last.set(Instant::now());
    }

    /// Returns when nothing has moved for so long.
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
