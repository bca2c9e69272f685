//! MCP messages, one per line, with a limit on those under way: input of a client that doesn't read its responses is not read
//! further.

use crate::strict_messages;
use belljar_contract::json::Node;
use rmcp::model::{ClientNotification, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Notify};

/// A client by two streams.
pub(super) struct LineTransport<R, W> {
    input: BufReader<R>,
    /// The beginning of the current line.
    line: Vec<u8>,
    /// True while the rest of a too long line is skipped.
    skips: bool,
    /// A request whose id equals that of a request under way.
    held: Option<HeldMessage>,
    output: Arc<Output<W>>,
}

/// A message with its length in bytes.
struct HeldMessage {
    message: RxJsonRpcMessage<RoleServer>,
    bytes: usize,
}

struct Output<W> {
    /// `None` once it is closed.
    writer: Mutex<Option<W>>,
    load: std::sync::Mutex<MessageLoad>,
    /// Notified each time that the load decreases.
    is_less: Notify,
}

/// Messages under way.
#[derive(Default)]
struct MessageLoad {
    /// Unanswered requests, with their lengths in bytes.
    running: HashMap<RequestId, usize>,
    /// Number of messages that wait to be written.
    writing: usize,
}

/// Result of reading a line.
enum Line {
    Whole(Vec<u8>),
    TooLong,
    End,
}

/// Maximum size of a message, in bytes.
const LARGEST_MESSAGE_BYTES: usize = 8 << 20;

/// Maximum number of unanswered requests. Tools permit fewer concurrent calls, and refuse further ones.
const MOST_RUNNING: usize = 160;
/// Maximum total length of unanswered requests, in bytes: processing one takes several times its length in memory.
const MOST_RUNNING_BYTES: usize = 16 << 20;
/// Maximum number of messages that wait to be written.
const MOST_WRITING: usize = 32;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

// === impl LineTransport ===

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> LineTransport<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        let output = Output {
            writer: Mutex::new(Some(output)),
            load: std::sync::Mutex::default(),
            is_less: Notify::new(),
        };
        let input = BufReader::new(input);
        Self { input, line: Vec::new(), skips: false, held: None, output: Arc::new(output) }
    }

    /// Reads a line. If the future is dropped, the beginning of the line is kept.
    async fn line(&mut self) -> io::Result<Line> {
        loop {
            let there = self.input.fill_buf().await?;
            if there.is_empty() {
                return Ok(Line::End);
            }
            let end = memchr::memchr(b'\n', there);
            let taken = end.map_or(there.len(), |end| end + 1);
            if !self.skips {
                self.line.extend_from_slice(&there[..taken]);
            }
            self.input.consume(taken);
            if self.line.len() > LARGEST_MESSAGE_BYTES {
                self.line = Vec::new();
                self.skips = end.is_none();
                return Ok(Line::TooLong);
            }
            match end {
                Some(_) if std::mem::take(&mut self.skips) => {}
                Some(_) => return Ok(Line::Whole(std::mem::take(&mut self.line))),
                None => {}
            }
        }
    }

    /// Parses a line; returns `None` if it needs no answer.
    fn message(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, (ErrorData, Option<RequestId>)> {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        let node = strict_messages::read(line).map_err(|error| (error, None))?;
        let error = match serde_json::from_slice(line) {
            Ok(message) => return Ok(Some(message)),
            Err(error) => error,
        };
        tracing::debug!(%error, "a message is not valid MCP");
        let method = node.member("method").and_then(Node::as_str);
        // Unknown notifications are ignored, without an answer.
        if method.is_some_and(|method| node.member("id").is_none() || method.starts_with("notifications/")) {
            return Ok(None);
        }
        let id = node.member("id").and_then(|id| serde_json::from_value(id.to_value()).ok());
        Err((ErrorData::invalid_request("not a message of MCP", None), id))
    }

    /// Answers an unreadable message, in a task of its own: the task that waits for the next message may be dropped.
    fn refuse(&self, error: ErrorData, id: Option<RequestId>) {
        let answer: TxJsonRpcMessage<RoleServer> = JsonRpcMessage::error(error, id);
        tokio::spawn(Arc::clone(&self.output).send(answer));
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        Arc::clone(&self.output).send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.output.room().await;
            if let Some(held) = &self.held {
                self.output.until_free(&held.message).await;
                let held = self.held.take()?;
                self.output.begin(&held);
                return Some(held.message);
            }
            let read = match self.line().await {
                Ok(Line::Whole(line)) => {
                    let bytes = line.len();
                    Self::message(&line).map(|message| message.map(|message| HeldMessage { message, bytes }))
                }
                Ok(Line::TooLong) => {
                    let reason = format!("the message is larger than {LARGEST_MESSAGE_BYTES} bytes");
                    Err((ErrorData::invalid_request(reason, None), None))
                }
                Ok(Line::End) | Err(_) => return None,
            };
            match read {
                Ok(message) => self.held = message,
                Err((error, id)) => self.refuse(error, id),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        let writer = self.output.writer.lock().await.take();
        match writer {
            Some(mut writer) => writer.shutdown().await,
            None => Ok(()),
        }
    }
}

// === impl Output ===

impl<W: AsyncWrite + Send + Unpin> Output<W> {
    /// Writes a message. It counts as waiting from this call on, even if the future isn't polled.
    fn send(
        self: Arc<Self>,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send {
        let writing = QueuedMessage::begin(self, &item);
        async move { writing.output.write(&item).await }
    }

    async fn write(&self, item: &TxJsonRpcMessage<RoleServer>) -> io::Result<()> {
        let mut text = serde_json::to_vec(item)?;
        text.push(b'\n');
        let mut writer = self.writer.lock().await;
        let writer = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        writer.write_all(&text).await?;
        writer.flush().await
    }
}

impl<W> Output<W> {
    fn load(&self) -> MutexGuard<'_, MessageLoad> {
        // Ignores poisoning: each change is complete.
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for another message.
    async fn room(&self) {
        while self.load().is_full() {
            self.is_less.notified().await;
        }
    }

    /// Waits until no request with that id is under way.
    async fn until_free(&self, message: &RxJsonRpcMessage<RoleServer>) {
        let JsonRpcMessage::Request(request) = message else { return };
        while self.load().running.contains_key(&request.id) {
            self.is_less.notified().await;
        }
    }

    /// Counts a request; a cancelled one gets no answer, and isn't counted any more.
    fn begin(&self, HeldMessage { message, bytes }: &HeldMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.load().running.insert(request.id.clone(), *bytes);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.load().running.remove(id);
                    self.is_less.notify_one();
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }
}

// === impl MessageLoad ===

impl MessageLoad {
    fn is_full(&self) -> bool {
        self.running.len() >= MOST_RUNNING
            || self.running.values().sum::<usize>() >= MOST_RUNNING_BYTES
            || self.writing >= MOST_WRITING
    }
}

/// A message that waits to be written.
struct QueuedMessage<W> {
    output: Arc<Output<W>>,
}

// === impl QueuedMessage ===

impl<W> QueuedMessage<W> {
    fn begin(output: Arc<Output<W>>, item: &TxJsonRpcMessage<RoleServer>) -> Self {
        let answered = match item {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let mut load = output.load();
        load.writing += 1;
        if let Some(id) = answered {
            load.running.remove(id);
        }
        drop(load);
        Self { output }
    }
}

impl<W> Drop for QueuedMessage<W> {
    fn drop(&mut self) {
        let mut load = self.output.load();
        load.writing = load.writing.saturating_sub(1);
        drop(load);
        self.output.is_less.notify_one();
    }
}

#[cfg(test)]
mod tests;
