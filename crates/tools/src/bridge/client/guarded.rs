//! A guarded transport: counts messages that the server sends unrequested, and ends a connection with too many.

use rmcp::model::{ClientRequest, ErrorCode, ErrorData, RequestId, ServerNotification, ServerRequest};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The guarded transport.
pub(super) struct GuardedTransport<T> {
    inner: T,
    watched: Arc<ConnectionState>,
    unasked: UnsolicitedMessageLimit,
    probe: Probe,
    under_way: Arc<AtomicUsize>,
}

/// State of a connection for observers.
#[derive(Debug, Default)]
pub(in crate::bridge) struct ConnectionState {
    why: OnceLock<DisconnectReason>,
    over: CancellationToken,
    changed: Notify,
    /// Number of list entries that are not valid tools, since the last query.
    passed_over: AtomicUsize,
}

/// Reasons why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bridge) enum DisconnectReason {
    /// The server has closed it.
    HungUp,
    /// The client has closed it.
    Closed,
    /// A message was too large.
    TooLarge,
    /// The server sent too many unrequested messages.
    Flood,
    /// The server repeatedly sent text that is not MCP.
    Nonsense,
    /// The server doesn't read its input.
    Stuck,
    /// The server has repeated one of the host's credentials.
    Repeats,
}

/// The request that detects servers without a handshake. Some other servers don't answer unknown requests.
#[derive(Debug)]
struct Probe {
    patience: Duration,
    waits: Option<(RequestId, Instant)>,
    /// Id of a timed-out request: its late answer is ignored.
    given_up: Option<RequestId>,
}

/// Limit of unrequested messages.
#[derive(Debug)]
struct UnsolicitedMessageLimit {
    left: u32,
    since: Instant,
}

/// Maximum number of unrequested messages per [`SPAN`].
const MOST_UNASKED: u32 = 500;
const SPAN: Duration = Duration::from_secs(10);

/// Maximum number of messages that are being sent.
const MOST_UNDER_WAY: usize = 256;

/// Maximum time for sending a message.
const LONGEST_SENDING: Duration = Duration::from_secs(30);

/// Reasons why a message can't be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError<E: std::error::Error + 'static> {
    #[error("the server does not read its input")]
    Stuck,
    #[error(transparent)]
    Inner(E),
}

// === impl ConnectionState ===

impl ConnectionState {
    /// Ends the connection. The first reason is kept.
    pub(in crate::bridge) fn end(&self, why: DisconnectReason) {
        let _ = self.why.set(why);
        self.over.cancel();
    }

    pub(in crate::bridge) fn why(&self) -> Option<DisconnectReason> {
        self.why.get().copied()
    }

    pub(in crate::bridge) async fn over(&self) -> DisconnectReason {
        self.over.cancelled().await;
        self.why().unwrap_or(DisconnectReason::HungUp)
    }

    pub(in crate::bridge) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn passed_over(&self, count: usize) {
        self.passed_over.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn take_passed_over(&self) -> usize {
        self.passed_over.swap(0, Ordering::Relaxed)
    }
}

// === impl GuardedTransport ===

impl<T> GuardedTransport<T> {
    /// Returns a guarded transport; `patience` is the time limit of the detection request.
    pub(super) fn new(inner: T, watched: Arc<ConnectionState>, patience: Duration) -> Self {
        let unasked = UnsolicitedMessageLimit { left: MOST_UNASKED, since: Instant::now() };
        let probe = Probe { patience, waits: None, given_up: None };
        Self { inner, watched, unasked, probe, under_way: Arc::default() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for GuardedTransport<T> {
    type Error = SendError<T::Error>;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.probe.sent(&item);
        let place = SendSlot::take(&self.under_way);
        let sending = self.inner.send(item);
        let watched = Arc::clone(&self.watched);
        async move {
            let stuck = || {
                watched.end(DisconnectReason::Stuck);
                SendError::Stuck
            };
            let _place = place.ok_or_else(stuck)?;
            let sent = tokio::select! {
                () = watched.over.cancelled() => return Err(SendError::Stuck),
                sent = tokio::time::timeout(LONGEST_SENDING, sending) => sent,
            };
            sent.map_err(|_| stuck())?.map_err(SendError::Inner)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = tokio::select! {
                () = self.watched.over.cancelled() => return None,
                message = self.inner.receive() => message,
                id = self.probe.out_of_time() => {
                    self.probe.waits = None;
                    self.probe.given_up = Some(id.clone());
                    return Some(RxJsonRpcMessage::<RoleClient>::error(unknown("the server did not answer \
            the probe"), Some(id)));
                }
            };
            let Some(message) = message else {
                self.watched.end(DisconnectReason::HungUp);
                return None;
            };
            let mut refused = None;
            let is_passed_on = match &message {
                RxJsonRpcMessage::<RoleClient>::Response(response) => {
                    match self.probe.is_late(Some(&response.id)) {
                        true => continue,
                        false => return Some(message),
                    }
                }
                RxJsonRpcMessage::<RoleClient>::Error(error) => match self.probe.is_late(error.id.as_ref()) {
                    true => continue,
                    false => return Some(message),
                },
                RxJsonRpcMessage::<RoleClient>::Notification(note) => {
                    if let ServerNotification::ToolListChangedNotification(_) = note.notification {
                        self.watched.changed.notify_one();
                    }
                    // Other notifications need a subscription, and there are none.
                    matches!(
                        note.notification,
                        ServerNotification::ToolListChangedNotification(_)
                            | ServerNotification::CancelledNotification(_)
                    )
                }
                RxJsonRpcMessage::<RoleClient>::Request(request) => {
                    let is_ping = matches!(request.request, ServerRequest::PingRequest(_));
                    refused = (!is_ping).then(|| request.id.clone());
                    is_ping
                }
            };
            if !self.unasked.take() {
                self.watched.end(DisconnectReason::Flood);
                return None;
            }
            if let Some(id) = refused {
                tracing::debug!("rejected a request of an MCP server");
                let error = unknown("server requests are not supported");
                // The number of messages being sent is limited.
                tokio::spawn(self.send(TxJsonRpcMessage::<RoleClient>::error(error, Some(id))));
            }
            if is_passed_on {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.watched.end(DisconnectReason::Closed);
        self.inner.close().await.map_err(SendError::Inner)
    }
}

fn unknown(why: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)
}

// === impl Probe ===

impl Probe {
    fn sent(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        if let TxJsonRpcMessage::<RoleClient>::Request(request) = message
            && let ClientRequest::DiscoverRequest(_) = request.request
        {
            self.waits = Some((request.id.clone(), Instant::now() + self.patience));
        }
    }

    /// Returns when the detection request has timed out; never if there is none.
    async fn out_of_time(&self) -> RequestId {
        let Some((id, until)) = self.waits.clone() else { return std::future::pending().await };
        tokio::time::sleep_until(until).await;
        id
    }

    /// Returns true for a late answer to the timed-out request.
    fn is_late(&mut self, id: Option<&RequestId>) -> bool {
        self.waits.take_if(|(waits, _)| id == Some(waits));
        id.is_some() && id == self.given_up.as_ref()
    }
}

// === impl UnsolicitedMessageLimit ===

impl UnsolicitedMessageLimit {
    /// Counts a message; returns false if the limit is exceeded.
    fn take(&mut self) -> bool {
        if self.since.elapsed() >= SPAN {
            *self = Self { left: MOST_UNASKED, since: Instant::now() };
        }
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }
}

// === impl DisconnectReason ===

impl DisconnectReason {
    /// Returns the reason as a text for the caller.
    pub(in crate::bridge) const fn in_words(self) -> &'static str {
        match self {
            Self::HungUp => "the server closed the connection",
            Self::Closed => "the connection was closed by the client",
            Self::TooLarge => "a message exceeded the size limit",
            Self::Flood => "too many unsolicited messages",
            Self::Nonsense => "the output is not MCP",
            Self::Stuck => "the server does not read its input",
            Self::Repeats => "the server sent back a credential of this host",
        }
    }
}

/// A slot among the messages being sent.
struct SendSlot(Arc<AtomicUsize>);

impl SendSlot {
    fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        // Counted first: a message beyond the limit releases its slot at once.
        let place = Self(Arc::clone(taken));
        (taken.fetch_add(1, Ordering::SeqCst) < MOST_UNDER_WAY).then_some(place)
    }
}

impl Drop for SendSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
