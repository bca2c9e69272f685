//! An HTTP/1.1 client for the servers that the node names: models, the MCP gateway, and the receiver of reports.
//!
//! In a sandbox of Belljar's they are sockets of the sandbox. In a container of another node they may be anywhere:
//! names are resolved, https is supported, and the environment's proxy is used. Redirects are not followed. Answers are
//! parsed strictly.

mod answer;
mod names;
mod place;
mod proxy;
mod stream;
mod tls;

pub(crate) use answer::{HttpResponse, ResponseReader};
pub(crate) use place::{ServerAddress, ServerUrlError};
pub(crate) use stream::connect_local;

use crate::deadline::{Deadline, Interruption};
use crate::own_process::seen_by_init;
use proxy::Proxy;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};
use stream::Stream;

/// A server that is asked one question after the other.
pub(crate) struct HttpClient {
    place: ServerAddress,
    /// Proxy in front of it, if there is one.
    proxy: Result<Option<Proxy>, ServerUrlError>,
    /// Open connection, as long as no error has occurred on it.
    open: Option<Stream>,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpRequest<'q> {
    pub(crate) method: &'static str,
    /// Path below the place's own.
    pub(crate) path: &'q str,
    pub(crate) headers: &'q [(&'q str, &'q str)],
    pub(crate) body: Option<&'q [u8]>,
    /// Accepted types of bodies.
    pub(crate) accept: &'q str,
    /// True if repeating it does no harm.
    pub(crate) is_idempotent: bool,
    /// Maximum time for an answer, within the deadline.
    pub(crate) patience: Duration,
}

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error(transparent)]
    Interrupted(#[from] Interruption),
    #[error("no response within {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("no connection")]
    Connect(#[source] io::Error),
    #[error("the connection was lost")]
    Broken(#[source] io::Error),
    #[error("malformed HTTP response: {0}")]
    Malformed(&'static str),
}

/// Interval in which the deadline and cancellation are checked.
const GLANCE: Duration = Duration::from_millis(100);

/// Request with its bytes and deadline.
#[derive(Clone, Copy)]
struct TimedRequest<'r> {
    bytes: &'r [u8],
    question: HttpRequest<'r>,
    until: Instant,
}

// === impl HttpClient ===

impl HttpClient {
    pub(crate) fn at(place: ServerAddress) -> Self {
        let proxy = Proxy::of_environment(&place);
        Self { place, proxy, open: None }
    }

    /// Asks, and waits for the whole answer.
    pub(crate) fn ask(
        &mut self,
        question: HttpRequest<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<HttpResponse, HttpError> {
        self.ask_until(question, deadline, &mut |_| false)
    }

    /// Asks, and waits for the whole answer, or for a body of events until `is_enough` returns true.
    pub(crate) fn ask_until(
        &mut self,
        question: HttpRequest<'_>,
        deadline: &Deadline<'_>,
        is_enough: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<HttpResponse, HttpError> {
        let until = Instant::now() + question.patience;
        let bytes = self.bytes_of(question);
        let asked = TimedRequest { bytes: &bytes, question, until };
        if let Some(stream) = self.open.take().filter(Stream::is_quiet) {
            match self.exchange(stream, asked, deadline, is_enough) {
                // The server had closed the connection before it read any of this request.
                Err(ExchangeError::Unsent(_)) => {}
                Err(ExchangeError::Unheard(_)) if question.is_idempotent => {}
                Err(ExchangeError::Unheard(error)) => return Err(HttpError::Broken(error)),
                Err(ExchangeError::Failed(why)) => return Err(why),
                Ok(answer) => return Ok(answer),
            }
        }
        let connect = || match &self.proxy {
            Ok(None) => self.place.connect(GLANCE),
            Ok(Some(proxy)) => proxy.connect(&self.place, GLANCE),
            Err(error) => Err(io::Error::other(format!("invalid proxy in the environment: {error}"))),
        };
        let connected = match connect() {
            // PID 1 connects on behalf of the sandbox's programs.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => seen_by_init(connect),
            connected => connected,
        };
        let stream = connected.map_err(HttpError::Connect)?;
        self.exchange(stream, asked, deadline, is_enough).map_err(|failed| match failed {
            ExchangeError::Unsent(error) | ExchangeError::Unheard(error) => HttpError::Broken(error),
            ExchangeError::Failed(why) => why,
        })
    }

    fn bytes_of(&self, question: HttpRequest<'_>) -> Vec<u8> {
        let HttpRequest { method, path, headers, body, accept, .. } = question;
        let target = match format!("{}{path}", self.place.base()) {
            empty if empty.is_empty() => "/".to_owned(),
            target => target,
        };
        let authority = self.place.authority();
        let is_by_proxy = matches!(self.proxy, Ok(Some(_))) && !self.place.is_encrypted();
        let scheme = if is_by_proxy { format!("http://{authority}") } else { String::new() };
        let mut head = format!("{method} {scheme}{target} HTTP/1.1\r\nHost: {authority}\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        head.push_str(&format!("Accept: {accept}\r\n\r\n"));
        [head.as_bytes(), body.unwrap_or_default()].concat()
    }

    fn exchange(
        &mut self,
        mut stream: Stream,
        asked: TimedRequest<'_>,
        deadline: &Deadline<'_>,
        is_enough: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<HttpResponse, ExchangeError> {
        let TimedRequest { bytes, question, until } = asked;
        let may_go_on = || -> Result<(), HttpError> {
            deadline.check()?;
            if Instant::now() >= until { Err(HttpError::TooSlow(question.patience)) } else { Ok(()) }
        };
        send(&mut stream, bytes, &may_go_on)?;
        let mut reading = ResponseReader::of(question.method);
        let mut buffer = [0; 16 << 10];
        loop {
            may_go_on()?;
            let count = match stream.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if is_a_pause(&error) => continue,
                Err(error) if reading.is_empty() => return Err(ExchangeError::Unheard(error)),
                Err(error) => return Err(HttpError::Broken(error).into()),
            };
            if count == 0 && reading.is_empty() {
                return Err(ExchangeError::Unheard(io::ErrorKind::UnexpectedEof.into()));
            }
            if let Some((answer, keeps)) = reading.hear(&buffer[..count]).map_err(HttpError::Malformed)? {
                self.open = keeps.then_some(stream);
                return Ok(answer);
            }
            if reading.events_so_far().is_some_and(&mut *is_enough)
                && let Some(answer) = reading.cut_short()
            {
                return Ok(answer);
            }
        }
    }
}

/// Reason why an exchange ended without an answer.
enum ExchangeError {
    /// The request was not sent completely, so the server can't have acted on it.
    Unsent(io::Error),
    /// The connection ended before the server answered.
    Unheard(io::Error),
    Failed(HttpError),
}

impl From<HttpError> for ExchangeError {
    fn from(why: HttpError) -> Self {
        Self::Failed(why)
    }
}

fn send(
    stream: &mut Stream,
    mut bytes: &[u8],
    may_go_on: &impl Fn() -> Result<(), HttpError>,
) -> Result<(), ExchangeError> {
    while !bytes.is_empty() {
        may_go_on()?;
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_a_pause(&error) => {}
            Err(error) => return Err(ExchangeError::Unsent(error)),
        }
    }
    Ok(())
}

fn is_a_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
