//! Messages of MCP, one a line, with a bound on what is under way: a client that sends and doesn't read is read no further.

use crate::strict;
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
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    /// What there is of a line.
    line: Vec<u8>,
    /// Whether the rest of a line that is too long is passed over.
    skips: bool,
    /// A request whose id another one has that is under way.
    held: Option<Held>,
    output: Arc<Output<W>>,
}

/// A message, and how long it was, in bytes.
struct Held {
    message: RxJsonRpcMessage<RoleServer>,
    bytes: usize,
}

struct Output<W> {
    /// Nothing once it is closed.
    writer: Mutex<Option<W>>,
    load: std::sync::Mutex<Load>,
    /// Told each time that the load is less.
    is_less: Notify,
}

/// What is under way.
#[derive(Default)]
struct Load {
    /// Requests without an answer, and how long they were, in bytes.
    running: HashMap<RequestId, usize>,
    /// Messages that wait to be written.
    writing: usize,
}

/// What was read.
enum Line {
    Whole(Vec<u8>),
    TooLong,
    End,
}

/// The largest message, in bytes.
const LARGEST_MESSAGE_BYTES: usize = 8 << 20;

/// Requests without an answer. More than tools allow at once, which refuse what is beyond that.
const MOST_RUNNING: usize = 160;
/// The length of those requests together, in bytes, before no more is read: what is made of one takes several times its length.
const MOST_RUNNING_BYTES: usize = 16 << 20;
/// Messages that wait to be written before no more is read.
const MOST_WRITING: usize = 32;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

// === impl Lines ===

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin + 'static> Lines<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        let output = Output {
            writer: Mutex::new(Some(output)),
            load: std::sync::Mutex::default(),
            is_less: Notify::new(),
        };
        let input = BufReader::new(input);
        Self { input, line: Vec::new(), skips: false, held: None, output: Arc::new(output) }
    }

    /// Reads a line. What is read of one is kept if this is given up.
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

    /// What a line says; nothing for what needs no answer.
    fn message(line: &[u8]) -> Result<Option<RxJsonRpcMessage<RoleServer>>, (ErrorData, Option<RequestId>)> {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        let node = strict::read(line).map_err(|error| (error, None))?;
        let error = match serde_json::from_slice(line) {
            Ok(message) => return Ok(Some(message)),
            Err(error) => error,
        };
        tracing::debug!(%error, "a message is none of MCP");
        let method = node.member("method").and_then(Node::as_str);
        // Clients may say what isn't known here, and no answer is sent to that.
        if method.is_some_and(|method| node.member("id").is_none() || method.starts_with("notifications/")) {
            return Ok(None);
        }
        let id = node.member("id").and_then(|id| serde_json::from_value(id.to_value()).ok());
        Err((ErrorData::invalid_request("not a message of MCP", None), id))
    }

    /// Answers what could not be read. It is written on the way: the task that waits for the next message may be dropped.
    fn refuse(&self, error: ErrorData, id: Option<RequestId>) {
        let answer: TxJsonRpcMessage<RoleServer> = JsonRpcMessage::error(error, id);
        tokio::spawn(Arc::clone(&self.output).send(answer));
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
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
                    Self::message(&line).map(|message| message.map(|message| Held { message, bytes }))
                }
                Ok(Line::TooLong) => {
                    let reason = format!("a message may have {LARGEST_MESSAGE_BYTES} bytes");
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
    /// Writes a message. It counts from the call on, whether or not anything polls what is returned.
    fn send(
        self: Arc<Self>,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send {
        let writing = Writing::begin(self, &item);
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
    fn load(&self) -> MutexGuard<'_, Load> {
        // Nothing in there is ever half done.
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for another message.
    async fn room(&self) {
        while self.load().is_full() {
            self.is_less.notified().await;
        }
    }

    /// Waits until no request of that id is under way.
    async fn until_free(&self, message: &RxJsonRpcMessage<RoleServer>) {
        let JsonRpcMessage::Request(request) = message else { return };
        while self.load().running.contains_key(&request.id) {
            self.is_less.notified().await;
        }
    }

    /// Counts a request; one that its client has given up gets no answer.
    fn begin(&self, Held { message, bytes }: &Held) {
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

// === impl Load ===

impl Load {
    fn is_full(&self) -> bool {
        self.running.len() >= MOST_RUNNING
            || self.running.values().sum::<usize>() >= MOST_RUNNING_BYTES
            || self.writing >= MOST_WRITING
    }
}

/// A message that waits to be written.
struct Writing<W> {
    output: Arc<Output<W>>,
}

// === impl Writing ===

impl<W> Writing<W> {
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

impl<W> Drop for Writing<W> {
    fn drop(&mut self) {
        let mut load = self.output.load();
        load.writing = load.writing.saturating_sub(1);
        drop(load);
        self.output.is_less.notify_one();
    }
}

#[cfg(test)]
mod tests;
