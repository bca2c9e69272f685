//! A connection of the server: a request, its answer, and the next request.

use super::answer::{Answer, Content, Delivery, DeliveryFlaw};
use super::delivery::{ClientConnection, SendStopReason, Stream, deliver};
use super::input::Input;
use super::rendered::{Body, RenderedAnswer};
use super::request::Request;
use super::{AnswerOutcome, Exchange, ModelServerState, ServerBehaviour, locked};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A connection that is read from no faster than the server should.
struct ThrottledReader<S> {
    stream: S,
    bytes_per_second: Option<usize>,
}

/// Answers what comes over a connection, until it ends.
pub(super) fn serve(state: &ModelServerState, stream: impl Stream, connection: usize) {
    let ServerBehaviour { closes_first, reads_per_second, .. } = state.conduct;
    if connection < closes_first {
        return;
    }
    let mut input = Input::new(ThrottledReader { stream, bytes_per_second: reads_per_second });
    while let Some(mut request) = input.head(connection) {
        let expects = request.header("expect").is_some_and(|what| what.eq_ignore_ascii_case("100-continue"));
        if expects && request.flaw.is_none() {
            let _ = input.stream().write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        input.body(&mut request);
        let is_last = request.flaw.is_some()
            || request.is_of_version_1_0
            || request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let number = state.record(&request);
        let mut line = ClientConnection { stream: input.stream(), server_ends: &state.ends };
        let (answered, closes) = answer(state, &request, &mut line);
        state.ended(number, outcome(answered));
        if answered.is_err() || closes || is_last {
            break;
        }
    }
    // Closing alone would leave it open as long as another handle of it is.
    let _ = rustix::net::shutdown(input.stream().as_fd(), rustix::net::Shutdown::Both);
}

/// Answers one request. Also tells whether the connection ends with that.
fn answer(
    state: &ModelServerState,
    request: &Request,
    line: &mut ClientConnection<'_>,
) -> (Result<(), SendStopReason>, bool) {
    if let Some(flaw) = &request.flaw {
        let message = flaw.to_string().into_bytes();
        let rendered = RenderedAnswer { status: 400, headers: Vec::new(), body: Body::Whole(message) };
        return (deliver(rendered, &Delivery::default(), request, line), true);
    }
    let scripted = locked(&state.script).answer(request);
    let Some(Answer { content, delivery }) = scripted else {
        let rendered = RenderedAnswer::unscripted(request, &state.conduct.models);
        return (deliver(rendered, &Delivery::default(), request, line), false);
    };
    let closes = delivery.closes || delivery.is_of_version_1_0;
    match (RenderedAnswer::new(request, &content), content) {
        (Some(rendered), _) => (deliver(rendered, &delivery, request, line), closes),
        (None, Content::Raw(bytes)) => {
            let stays = matches!(delivery.flaw, Some(DeliveryFlaw::SilentAfter(_)));
            let silence = if stays { Duration::MAX } else { Duration::ZERO };
            let sent = line.pause(delivery.delay).and_then(|()| line.write(&bytes));
            (sent.and_then(|()| line.pause(silence)), true)
        }
        (None, _) => (line.pause(delivery.delay).and(Err(SendStopReason::Cut)), true),
    }
}

fn outcome(answered: Result<(), SendStopReason>) -> AnswerOutcome {
    let at = Instant::now();
    match answered {
        Ok(()) => AnswerOutcome::Delivered { at },
        Err(SendStopReason::PeerGone) => AnswerOutcome::PeerGone { at },
        Err(SendStopReason::Cut | SendStopReason::ServerEnds) => AnswerOutcome::Cut { at },
    }
}

// === impl ModelServerState ===

impl ModelServerState {
    fn record(&self, request: &Request) -> usize {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        if self.conduct.keeps_requests {
            let exchange = Exchange { number, request: request.clone(), outcome: AnswerOutcome::Open };
            locked(&self.exchanges).push(exchange);
        }
        number
    }

    fn ended(&self, number: usize, outcome: AnswerOutcome) {
        let mut exchanges = locked(&self.exchanges);
        if let Some(exchange) = exchanges.iter_mut().find(|exchange| exchange.number == number) {
            exchange.outcome = outcome;
        }
    }
}

// === impl ThrottledReader ===

impl<S: Read> Read for ThrottledReader<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(rate) = self.bytes_per_second else { return self.stream.read(buffer) };
        // Ten times a second, or as often as there is a byte.
        let at_once = (rate / 10).clamp(1, buffer.len());
        std::thread::sleep(Duration::from_secs(1).mul_f64(at_once as f64 / rate as f64));
        self.stream.read(&mut buffer[..at_once])
    }
}

impl<S: Write> Write for ThrottledReader<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl<S: AsFd> AsFd for ThrottledReader<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
