//! Signed messages that the node sends to an orchestrator by itself. The signature proves the sender.
//!
//! Signed according to Standard Webhooks: HMAC-SHA256 with a shared key over the message's id, the time, and the body. One
//! thread sends all messages and reuses connections.

use crate::http1::limits::Times;
use crate::secret::Secret;
use crate::upstream::names::NameSource;
use crate::upstream::{AnswerError, Pool, Upstream, UpstreamError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use belljar_trusted::tcp_server::ServerUser;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Destination of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    upstream: Upstream,
    origin: String,
    path: String,
}

/// Message to an orchestrator.
#[derive(Debug, Clone)]
pub struct Message {
    /// Id of the message. It stays the same when the message is sent again.
    pub id: String,
    /// Time of sending.
    pub at: Timestamp,
    /// JSON document.
    pub body: Vec<u8>,
}

/// Key that messages are signed with.
#[derive(Clone)]
pub struct SigningKey(Arc<Zeroizing<Vec<u8>>>);

/// Sends messages. Dropping it cancels what is under way.
#[derive(Debug)]
pub struct Sender {
    orders: mpsc::UnboundedSender<DeliveryOrder>,
}

/// The message may not have been received.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The connection failed or broke.
    #[error("no connection to {host}")]
    Connection {
        /// Host of the destination.
        host: String,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// There was no answer in time.
    #[error("no answer from {host} in time")]
    OutOfTime {
        /// Host of the destination.
        host: String,
    },
    /// The answer is not valid HTTP.
    #[error("malformed answer from {host}")]
    Malformed {
        /// Host of the destination.
        host: String,
    },
    /// The sender is shut down.
    #[error("messages are no longer sent: the sender has stopped")]
    Over,
}

/// The secret is not a valid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text after `whsec_` is not base64")]
pub struct KeyError;

#[derive(Debug)]
struct DeliveryOrder {
    destination: Destination,
    /// Head and body, ready to be sent.
    request: Vec<u8>,
    answer: oneshot::Sender<Result<u16, SendError>>,
}

/// Time limit for the answer, from the first byte of the message: 30 s.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Maximum size of an answer's body in bytes. Only the status matters; a connection with a larger body is closed.
const LARGEST_ANSWER: usize = 64 << 10;

/// Prefix of webhook secrets that are written in base64.
const ENCODED: &[u8] = b"whsec_";

// === impl Destination ===

impl Destination {
    /// Reads `http://HOST[:PORT]/PATH`, or the same with `https`.
    ///
    /// # Errors
    /// [`UpstreamError`], for every other text.
    pub fn parse(url: &str) -> Result<Self, UpstreamError> {
        let upstream = Upstream::parse(url)?;
        let rest = url.split_once("://").map(|(_, rest)| rest);
        let rest = rest
            .ok_or(UpstreamError { found: url.to_owned(), why: "it must begin with https:// or http://" })?;
        let path = rest.find('/').map_or("/", |at| &rest[at..]).to_owned();
        let origin = url.strip_suffix(path.as_str()).unwrap_or(url).to_ascii_lowercase();
        Ok(Self { upstream, origin, path })
    }

    /// Trusts a server of the configured user, if there is one, on this machine with messages by plain HTTP, too.
    #[must_use]
    pub fn served_by(self, user: Option<ServerUser>) -> Self {
        match user.and_then(|user| self.upstream.clone().served_by(user)) {
            Some(upstream) => Self { upstream, ..self },
            None => self,
        }
    }

    /// Returns the whole URL.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }

    /// Returns the scheme, the host and the port, as they were written, in lower case.
    pub fn origin(&self) -> &str {
        &self.origin
    }
}

// === impl SigningKey ===

impl SigningKey {
    /// Decodes a key.
    ///
    /// # Errors
    /// [`KeyError`], if the secret can't be decoded.
    pub fn of(secret: &Secret) -> Result<Self, KeyError> {
        let bytes = match secret.expose().strip_prefix(ENCODED) {
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| KeyError)?,
            None => secret.expose().to_vec(),
        };
        Ok(Self(Arc::new(Zeroizing::new(bytes))))
    }

    fn sign(&self, message: &Message) -> String {
        // HMAC accepts a key of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(format!("{}.{}.", message.id, message.at.as_second()).as_bytes());
        mac.update(&message.body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

// === impl Sender ===

impl Sender {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`io::Error`], if the thread can't be started.
    pub fn start() -> io::Result<Self> {
        let (orders, taken) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let named = std::thread::Builder::new().name("belljar-callbacks".to_owned());
        named.spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, take_orders(taken));
        })?;
        Ok(Self { orders })
    }

    /// Sends a message, signed if the destination has a key. Returns the status of the answer.
    ///
    /// # Errors
    /// [`SendError`]; the message may have arrived all the same.
    pub async fn send(
        &self,
        destination: &Destination,
        message: &Message,
        key: Option<&SigningKey>,
    ) -> Result<u16, SendError> {
        let (answer, answered) = oneshot::channel();
        let request = request(destination, message, key);
        let order = DeliveryOrder { destination: destination.clone(), request, answer };
        self.orders.send(order).map_err(|_| SendError::Over)?;
        answered.await.map_err(|_| SendError::Over)?
    }
}

fn request(destination: &Destination, message: &Message, key: Option<&SigningKey>) -> Vec<u8> {
    let (path, host) = (&destination.path, destination.upstream.host());
    let Message { id, at, body } = message;
    let signature = key.map(|key| format!("webhook-signature: {}\r\n", key.sign(message)));
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         content-digest: sha-256=:{}:\r\nwebhook-id: {id}\r\nwebhook-timestamp: {}\r\n{}\r\n",
        body.len(),
        STANDARD.encode(Sha256::digest(body)),
        at.as_second(),
        signature.unwrap_or_default(),
    );
    [head.as_bytes(), body].concat()
}

async fn take_orders(mut orders: mpsc::UnboundedReceiver<DeliveryOrder>) {
    let pool = Rc::new(Pool::new(NameSource::of_system()));
    while let Some(order) = orders.recv().await {
        let pool = Rc::clone(&pool);
        tokio::task::spawn_local(async move {
            let DeliveryOrder { destination, request, mut answer } = order;
            let exchange = timeout(ANSWER_TIME, exchange(&pool, &destination, &request));
            tokio::select! {
                answered = exchange => {
                    let answered = answered.unwrap_or(Err(AnswerError::Silent));
                    let _ = answer.send(answered.map_err(|error| said(&destination, error)));
                }
                () = answer.closed() => {}
            }
        });
    }
}

async fn exchange(pool: &Pool, destination: &Destination, request: &[u8]) -> Result<u16, AnswerError> {
    let connecting = timeout(Times::default().connect, pool.take(&destination.upstream)).await;
    let connected = connecting.map_err(|_| AnswerError::Silent)?;
    let mut connection = connected.map_err(|source| AnswerError::Ended(io::Error::other(source)))?;
    connection.stream.write_all(request).await.map_err(AnswerError::Ended)?;
    connection.stream.flush().await.map_err(AnswerError::Ended)?;
    let head = connection.head(ANSWER_TIME).await?;
    // The head is the answer. The body only decides whether the connection can be reused.
    let body = connection.body(head.body, LARGEST_ANSWER, ANSWER_TIME).await;
    if head.keeps_alive && body.is_ok() {
        pool.give_back(&destination.upstream, connection);
    }
    Ok(head.status)
}

fn said(destination: &Destination, error: AnswerError) -> SendError {
    let host = destination.upstream.host().to_owned();
    match error {
        AnswerError::Ended(source) => SendError::Connection { host, source },
        AnswerError::Silent => SendError::OutOfTime { host },
        AnswerError::Malformed(_) | AnswerError::TooLarge => SendError::Malformed { host },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_matches_the_example_of_standard_webhooks() {
        let key = SigningKey::of(&Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap()).unwrap();
        let message = Message {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
            at: Timestamp::from_second(1_614_265_330).unwrap(),
            body: br#"{"test": 2432232314}"#.to_vec(),
        };
        assert_eq!(key.sign(&message), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(
            SigningKey::of(
                &Secret::parse("whsec_not base64!")
                    .unwrap_or_else(|_| Secret::parse("whsec_!!!!!!").unwrap())
            )
            .is_err()
        );
    }

    #[test]
    fn callback_url_is_split_into_origin_and_path() {
        let parse = |url: &str| Destination::parse(url).map(|to| (to.origin, to.path));
        let is = |origin: &str, path: &str| Ok((origin.to_owned(), path.to_owned()));
        assert_eq!(parse("http://Host:8080/a/b/"), is("http://host:8080", "/a/b/"));
        assert_eq!(parse("https://host.example"), is("https://host.example", "/"));
        for bad in ["unix:/a", "http://host/a?b", "http://user@host/", "ftp://host/", "http://host/a b"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
