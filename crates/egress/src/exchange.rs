//! Single requests to services that the node's configuration names. Redirects are not followed; they are returned as answers.
//!
//! One thread sends all requests and reuses connections.

use crate::http1::MalformedHttp;
use crate::http1::limits::Times;
use crate::upstream::names::NameSource;
use crate::upstream::{AnswerError, Pool, Upstream};
use std::borrow::Cow;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Request. Its headers may contain secrets, so it has no `Debug`.
#[derive(Clone)]
pub struct OutgoingRequest {
    /// HTTP method.
    pub method: &'static str,
    /// Path and query, appended to the upstream's own prefix. Visible ASCII.
    pub target: String,
    /// Names and values. The caller makes sure that they contain no line end.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// Maximum size of the answer's body in bytes.
    pub largest_answer: usize,
    /// Time limit for the whole exchange.
    pub patience: Duration,
}

/// Answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingAnswer {
    /// HTTP status.
    pub status: u16,
    /// Requested headers, by lower-case name.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// Sends requests. Dropping it cancels what is under way.
#[derive(Debug)]
pub struct Exchanger {
    orders: mpsc::UnboundedSender<ExchangeOrder>,
}

/// There is no answer, or the answer is refused.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The connection failed or broke.
    #[error("no connection to {host}")]
    Connection {
        /// Host that was asked.
        host: String,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// There was no answer in time.
    #[error("no answer from {host} in time")]
    OutOfTime {
        /// Host that was asked.
        host: String,
    },
    /// The answer is not valid HTTP.
    #[error("malformed answer from {host}")]
    Malformed {
        /// Host that was asked.
        host: String,
    },
    /// The answer is too large.
    #[error("the answer from {host} is larger than {most} bytes")]
    TooLarge {
        /// Host that was asked.
        host: String,
        /// Maximum size in bytes.
        most: usize,
    },
    /// The exchanger is shut down.
    #[error("requests are no longer sent: the sender has stopped")]
    Over,
}

struct ExchangeOrder {
    upstream: Upstream,
    outgoing: OutgoingRequest,
    wanted: &'static [&'static str],
    answer: oneshot::Sender<Result<IncomingAnswer, ExchangeError>>,
}

// === impl Exchanger ===

impl Exchanger {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`io::Error`], if the thread can't be started.
    pub fn start() -> io::Result<Self> {
        let (orders, taken) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let named = std::thread::Builder::new().name("belljar-exchange".to_owned());
        named.spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, take_orders(taken));
        })?;
        Ok(Self { orders })
    }

    /// Sends a request and waits for the answer. Returns the headers in `wanted`. Dropping the future cancels the exchange.
    ///
    /// # Errors
    /// [`ExchangeError`]; the request may have arrived all the same.
    pub async fn ask(
        &self,
        upstream: &Upstream,
        outgoing: OutgoingRequest,
        wanted: &'static [&'static str],
    ) -> Result<IncomingAnswer, ExchangeError> {
        let (answer, answered) = oneshot::channel();
        let order = ExchangeOrder { upstream: upstream.clone(), outgoing, wanted, answer };
        self.orders.send(order).map_err(|_| ExchangeError::Over)?;
        answered.await.map_err(|_| ExchangeError::Over)?
    }
}

async fn take_orders(mut orders: mpsc::UnboundedReceiver<ExchangeOrder>) {
    let pool = Rc::new(Pool::new(NameSource::of_system()));
    while let Some(order) = orders.recv().await {
        let pool = Rc::clone(&pool);
        tokio::task::spawn_local(async move {
            let ExchangeOrder { upstream, outgoing, wanted, mut answer } = order;
            let exchange = timeout(outgoing.patience, exchange(&pool, &upstream, &outgoing, wanted));
            tokio::select! {
                answered = exchange => {
                    let answered = answered.unwrap_or(Err(AnswerError::Silent));
                    let _ = answer.send(answered.map_err(|error| said(&upstream, &outgoing, error)));
                }
                () = answer.closed() => {}
            }
        });
    }
}

async fn exchange(
    pool: &Pool,
    upstream: &Upstream,
    outgoing: &OutgoingRequest,
    wanted: &[&'static str],
) -> Result<IncomingAnswer, AnswerError> {
    let connecting = timeout(Times::default().connect, pool.take(upstream)).await;
    let connected = connecting.map_err(|_| AnswerError::Silent)?;
    let mut connection = connected.map_err(|source| AnswerError::Ended(io::Error::other(source)))?;
    connection.stream.write_all(&written(upstream, outgoing)).await.map_err(AnswerError::Ended)?;
    connection.stream.flush().await.map_err(AnswerError::Ended)?;
    let head = connection.head(outgoing.patience).await?;
    // An unencoded answer was requested, because it is scanned.
    let asks_for_plain = outgoing.headers.iter().any(|(name, _)| name == "accept-encoding");
    if asks_for_plain && !head.is_plain() {
        return Err(MalformedHttp::Syntax.into());
    }
    let body = connection.body(head.body, outgoing.largest_answer, outgoing.patience).await?;
    if head.keeps_alive {
        pool.give_back(upstream, connection);
    }
    let told = |name: &'static str| {
        let value = head.header(name)?;
        Some((name, String::from_utf8_lossy(value).into_owned()))
    };
    let headers = wanted.iter().filter_map(|name| told(name)).collect();
    Ok(IncomingAnswer { status: head.status, headers, body })
}

fn written(upstream: &Upstream, outgoing: &OutgoingRequest) -> Vec<u8> {
    let OutgoingRequest { method, target, headers, body, .. } = outgoing;
    let mut head = format!(
        "{method} {}{target} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n",
        upstream.prefix(),
        upstream.host(),
        body.len()
    );
    for (name, value) in headers {
        head.extend([name.as_ref(), ": ", value.as_str(), "\r\n"]);
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

fn said(upstream: &Upstream, outgoing: &OutgoingRequest, error: AnswerError) -> ExchangeError {
    let host = upstream.host().to_owned();
    match error {
        AnswerError::Ended(source) => ExchangeError::Connection { host, source },
        AnswerError::Silent => ExchangeError::OutOfTime { host },
        AnswerError::Malformed(_) => ExchangeError::Malformed { host },
        AnswerError::TooLarge => ExchangeError::TooLarge { host, most: outgoing.largest_answer },
    }
}
