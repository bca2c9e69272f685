//! A tunnel: bytes both ways, until either end has closed it or it may not go on.

use super::greeting::{self, Greeting};
use super::limits::{MOST_ROOM, ROOM};
use super::passage::Passage;
use super::run::WebRun;
use crate::client::Client;
use crate::upstream::Dialed;
use belljar_policy::egress::Destination;
use bytes::BytesMut;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf};
use tokio::net::tcp::{ReadHalf as FromOutside, WriteHalf as ToOutside};

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
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (stream, early) = client.into_parts();
    let (from_inside, mut to_inside) = tokio::io::split(stream);
    let (from_outside, to_outside) = dialed.stream.split();
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
        let up =
            out(from_inside, to_outside, early, (Passage::expected_name(destination), &tls_name), &shared);
        let down = into(from_outside, &mut to_inside, dialed.early, &shared);
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
async fn out<S: AsyncRead>(
    mut from: ReadHalf<S>,
    mut to: ToOutside<'_>,
    early: BytesMut,
    (expected, tls_name): (Option<&str>, &RefCell<Option<String>>),
    shared: &Shared<'_>,
) -> Result<(), End> {
    let (mut buffer, mut room) = (early, ROOM);
    let heard = greeting::hear_out(&mut from, &mut buffer, || shared.last.set(Instant::now())).await;
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
    loop {
        if !buffer.is_empty() {
            shared.count(shared.sent, buffer.len(), WebRun::may_send)?;
            to.write_all(&buffer).await.map_err(|_| End::Broken)?;
            buffer.clear();
        }
        if !shared.read(&mut from, &mut buffer, &mut room).await? {
            break;
        }
    }
    // The other direction may go on.
    to.shutdown().await.map_err(|_| End::Broken)
}

/// From the outside to inside.
async fn into<W: AsyncWrite + Unpin>(
    mut from: FromOutside<'_>,
    to: &mut W,
    early: BytesMut,
    shared: &Shared<'_>,
) -> Result<(), End> {
    let (mut buffer, mut room) = (early, ROOM);
    loop {
        if buffer.is_empty() && !shared.read(&mut from, &mut buffer, &mut room).await? {
            break;
        }
        shared.count(shared.received, buffer.len(), WebRun::may_receive)?;
        to.write_all(&buffer).await.map_err(|_| End::Broken)?;
        buffer.clear();
    }
    to.shutdown().await.map_err(|_| End::Broken)
}

// === impl Shared ===

impl Shared<'_> {
    /// Reads once into an empty buffer; false when there is no more. Whoever fills it has more to say, and is read in larger
    /// pieces; who says little holds little.
    async fn read<R: AsyncRead + Unpin>(
        &self,
        from: &mut R,
        buffer: &mut BytesMut,
        room: &mut usize,
    ) -> Result<bool, End> {
        if buffer.capacity() > *room {
            *buffer = BytesMut::with_capacity(*room);
        }
        buffer.reserve(*room);
        let whole = buffer.capacity();
        let count = from.read_buf(buffer).await.map_err(|_| End::Broken)?;
        self.last.set(Instant::now());
        *room = match count {
            count if count == whole => (*room * 2).min(MOST_ROOM),
            count if count < ROOM => ROOM,
            _ => *room,
        };
        Ok(count > 0)
    }

    fn count(&self, counter: &Cell<u64>, bytes: usize, may: fn(&WebRun, u64) -> bool) -> Result<(), End> {
        let bytes = bytes as u64;
        counter.set(counter.get() + bytes);
        if may(self.run, bytes) { Ok(()) } else { Err(End::Spent) }
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
