//! Clients that close their sending side after a request (`printf '…' | nc -N`), and wait for the response.
//!
//! hyper takes the end of a client's input for a disconnect, and drops the request. With half-close enabled it notices no
//! disconnect at all, and the request would continue in vain. On TCP the two look the same. So the end of input is withheld from
//! hyper for [`PATIENCE`] while a request is under way, and passed on at once otherwise.

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Maximum time for which the end of a client's input is withheld.
const PATIENCE: Duration = Duration::from_secs(5);

/// State of a connection's request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange(Arc<Mutex<ExchangeState>>);

#[derive(Debug, Default)]
struct ExchangeState {
    phase: Phase,
    /// Waker of the connection's reader, while the end of input is withheld.
    reader: Option<Waker>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// No request is under way.
    #[default]
    Idle,
    /// A request is being received or answered.
    UnderWay,
    /// The response is complete, but not completely sent.
    Answered,
}

/// A connection whose client may close its sending side.
#[derive(Debug)]
pub(crate) struct HalfClosed<S> {
    stream: S,
    exchange: Exchange,
    has_ended: bool,
    patience: Option<Pin<Box<Sleep>>>,
}

/// The body of a response, which notes its completion when it is dropped.
struct AnswerBody {
    body: Body,
    exchange: Exchange,
}

// === impl Exchange ===

impl Exchange {
    /// Notes that a request has been received.
    pub(crate) fn begin(&self) {
        self.state().phase = Phase::UnderWay;
    }

    /// Notes its response.
    pub(crate) fn answer(&self, response: Response) -> Response {
        response.map(|body| Body::new(AnswerBody { body, exchange: self.clone() }))
    }

    fn answered(&self) {
        let mut state = self.state();
        if state.phase == Phase::UnderWay {
            state.phase = Phase::Answered;
        }
    }

    /// Notes that all written bytes are sent. After a response the end of input is forwarded again.
    fn flushed(&self) {
        let mut state = self.state();
        if state.phase == Phase::Answered {
            state.phase = Phase::Idle;
            state.reader.take().iter().for_each(Waker::wake_by_ref);
        }
    }

    /// Returns true if a request is under way, so that the connection stays open. The waker is called when it is over.
    fn is_under_way(&self, waker: &Waker) -> bool {
        let mut state = self.state();
        let is_under_way = state.phase != Phase::Idle;
        state.reader = is_under_way.then(|| waker.clone());
        is_under_way
    }

    fn state(&self) -> MutexGuard<'_, ExchangeState> {
        // Ignores poisoning: each change is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl HalfClosed ===

impl<S> HalfClosed<S> {
    pub(crate) fn new(stream: S, exchange: Exchange) -> Self {
        Self { stream, exchange, has_ended: false, patience: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HalfClosed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.has_ended {
            let (before, has_room) = (room.filled().len(), room.remaining() > 0);
            ready!(Pin::new(&mut self.stream).poll_read(context, room))?;
            if room.filled().len() > before || !has_room {
                return Poll::Ready(Ok(()));
            }
            self.has_ended = true;
        }
        if !self.exchange.is_under_way(context.waker()) {
            return Poll::Ready(Ok(()));
        }
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        patience.as_mut().poll(context).map(Ok)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HalfClosed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.exchange.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

// === impl AnswerBody ===

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.exchange.answered();
    }
}
