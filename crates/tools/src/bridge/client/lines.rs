//! MCP over two pipes, one message per line.

use super::guarded::{ConnectionState, DisconnectReason};
use super::message::{self, InvalidMessageError};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::future::Future;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// A transport over two pipes.
pub(in crate::bridge) struct PipeTransport<R, W> {
    output: R,
    /// Bytes that were read and not processed yet.
    inbox: Vec<u8>,
    /// The position up to which it has no line break.
    looked_at: usize,
    input: Arc<Mutex<Option<W>>>,
    most_bytes: usize,
    nonsense_left: u32,
    /// A long line that is being parsed on a blocking thread, so that the runtime's threads stay free.
    reading: Option<JoinHandle<ParsedLine>>,
    watched: Arc<ConnectionState>,
}

/// Result of parsing a line; `None` for a blank one.
type ParsedLine = Result<Option<RxJsonRpcMessage<RoleClient>>, InvalidMessageError>;

/// Maximum length of a line that is parsed without a blocking thread, in bytes.
const LARGEST_SHORT_BYTES: usize = 64 << 10;

/// Number of bytes that are read at once.
const PORTION: usize = 64 << 10;

/// Maximum number of lines that are not messages: some programs print a greeting.
const MOST_NONSENSE: u32 = 64;

// === impl PipeTransport ===

impl<R, W> PipeTransport<R, W> {
    /// Returns a transport that reads a program's output and writes to its input.
    pub(in crate::bridge) fn new(
        output: R,
        input: W,
        most_bytes: usize,
        watched: Arc<ConnectionState>,
    ) -> Self {
        Self {
            output,
            inbox: Vec::new(),
            looked_at: 0,
            input: Arc::new(Mutex::new(Some(input))),
            most_bytes,
            nonsense_left: MOST_NONSENSE,
            reading: None,
            watched,
        }
    }

    /// Takes the next complete line.
    fn line(&mut self) -> Option<Vec<u8>> {
        let end = memchr::memchr(b'\n', &self.inbox[self.looked_at..]);
        let Some(end) = end.map(|end| end + self.looked_at) else {
            self.looked_at = self.inbox.len();
            return None;
        };
        let line = self.inbox.drain(..=end).collect();
        self.looked_at = 0;
        Some(line)
    }

    /// Takes the next message. Dropping the future loses nothing.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let read = match &mut self.reading {
                Some(reading) => {
                    let read = reading.await;
                    self.reading = None;
                    // A panic of the thread counts as no message.
                    read.unwrap_or(Ok(None))
                }
                None => match self.line()? {
                    // A chunk may contain a too long line completely.
                    line if line.trim_ascii().len() > self.most_bytes => {
                        self.watched.end(DisconnectReason::TooLarge);
                        return None;
                    }
                    line if line.len() > LARGEST_SHORT_BYTES => {
                        let watched = Arc::clone(&self.watched);
                        self.reading = Some(tokio::task::spawn_blocking(move || read(&line, &watched)));
                        continue;
                    }
                    line => read(&line, &self.watched),
                },
            };
            match read {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "an MCP server printed a line that is not a message");
                    self.nonsense_left = self.nonsense_left.saturating_sub(1);
                    if self.nonsense_left == 0 {
                        self.watched.end(DisconnectReason::Nonsense);
                        return None;
                    }
                }
            }
        }
    }
}

fn read(line: &[u8], watched: &ConnectionState) -> ParsedLine {
    match line.trim_ascii() {
        [] => Ok(None),
        line => message::read(line, watched).map(Some),
    }
}

impl<R, W> Transport<RoleClient> for PipeTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut held = input.lock().await;
            // If the future is dropped, the pipe stays taken: a partial line must not be followed by another message.
            let mut pipe = held.take().ok_or(io::ErrorKind::BrokenPipe)?;
            pipe.write_all(&line).await?;
            pipe.flush().await?;
            *held = Some(pipe);
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(message) = self.next().await {
                return Some(message);
            }
            if self.inbox.len() > self.most_bytes {
                self.watched.end(DisconnectReason::TooLarge);
            }
            if self.watched.why().is_some() {
                return None;
            }
            self.inbox.reserve(PORTION);
            // Dropping the future between two reads loses nothing: read bytes are kept here.
            match self.output.read_buf(&mut self.inbox).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // The end of its input tells the program to exit.
        if let Ok(mut input) = self.input.try_lock() {
            input.take();
        }
        Ok(())
    }
}
