//! Connection from a client in a sandbox.

use crate::http1::limits::{CONNECT_HEAD_BYTES, REQUEST_HEAD_BYTES, Times};
use crate::http1::{BodyLength, Chunks, MalformedHttp, RequestHead, Target, head};
use crate::memory_quota::MemoryReservation;
use crate::time_limit::within;
use bytes::{Buf, BytesMut};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Connection from a client in a sandbox.
pub(crate) struct Client<S> {
    stream: S,
    inbox: BytesMut,
    times: Times,
    is_closed: bool,
    /// True if the client has sent more ahead than is kept, so that some of it is lost.
    has_overrun: bool,
}

/// Reason why no further request comes.
#[derive(Debug)]
pub(crate) enum ClientStop {
    /// The client is gone, or doesn't read any more.
    Gone,
    /// The client's request can't be accepted, and it gets an error.
    Faulty(RequestFault),
}

/// Error in a request before its purpose is considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestFault {
    Malformed(MalformedHttp),
    HeadTooLarge { most: usize },
    BodyTooLarge { most: usize },
    TooSlow,
}

/// Initial buffer size in bytes. Most heads fit, and many connections wait with such a buffer.
const ROOM: usize = 4 << 10;
/// Number of bytes of a body that are read at a time.
const BODY_ROOM: usize = 64 << 10;

impl From<RequestFault> for ClientStop {
    fn from(fault: RequestFault) -> Self {
        Self::Faulty(fault)
    }
}

// === impl Client ===

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn new(stream: S, times: Times) -> Self {
        let inbox = BytesMut::with_capacity(ROOM);
        Self { stream, inbox, times, is_closed: false, has_overrun: false }
    }

    /// Returns true if another request may follow.
    pub(crate) fn can_go_on(&self) -> bool {
        !self.is_closed && !self.has_overrun
    }

    /// Reads the head of the next request, for a path.
    pub(crate) async fn head(&mut self) -> Result<RequestHead, ClientStop> {
        self.head_by(RequestHead::parse).await
    }

    /// Reads the head of the next request to a forward proxy, of any form.
    pub(crate) async fn head_for_proxy(&mut self) -> Result<(RequestHead, Target), ClientStop> {
        self.head_by(RequestHead::parse_for_proxy).await
    }

    async fn head_by<T>(
        &mut self,
        parse: impl FnOnce(&[u8]) -> Result<T, MalformedHttp>,
    ) -> Result<T, ClientStop> {
        if self.inbox.is_empty() {
            match within(self.times.keep_alive, self.fill()).await {
                Ok(Ok(_)) => {}
                // The client has not begun a request, so it gets no answer.
                Ok(Err(stop)) => return Err(stop),
                Err(_) => return Err(ClientStop::Gone),
            }
        }
        let end = within(self.times.head, self.whole_head()).await.map_err(|_| RequestFault::TooSlow)??;
        let parsed = parse(&self.inbox[..end]).map_err(RequestFault::Malformed);
        self.inbox.advance(end);
        Ok(parsed?)
    }

    /// Reads until there is a complete head, and returns its length.
    async fn whole_head(&mut self) -> Result<usize, ClientStop> {
        loop {
            let end = head::end(&self.inbox);
            let most =
                if self.inbox.starts_with(b"CONNECT ") { CONNECT_HEAD_BYTES } else { REQUEST_HEAD_BYTES };
            match end {
                _ if end.unwrap_or(self.inbox.len()) > most => {
                    return Err(RequestFault::HeadTooLarge { most }.into());
                }
                Some(end) => return Ok(end),
                None => self.fill().await?,
            }
        }
    }

    /// Reads the whole body of a request, up to a maximum size.
    pub(crate) async fn body(
        &mut self,
        head: &RequestHead,
        most: usize,
        place: &mut MemoryReservation<'_>,
    ) -> Result<Vec<u8>, ClientStop> {
        if let BodyLength::Exact(length) = head.body
            && length > most as u64
        {
            return Err(RequestFault::BodyTooLarge { most }.into());
        }
        if head.expects_continue && self.inbox.is_empty() {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let patience = self.times.body;
        let whole = async {
            match head.body {
                BodyLength::Exact(length) => self.exact(length, place).await,
                BodyLength::Chunked => self.chunked(most, place).await,
                BodyLength::UntilClose => Ok(Vec::new()),
            }
        };
        within(patience, whole).await.map_err(|_| RequestFault::TooSlow)?
    }

    async fn exact(&mut self, length: u64, place: &mut MemoryReservation<'_>) -> Result<Vec<u8>, ClientStop> {
        // It was compared with the limit.
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        place.hold(length).await;
        let mut body = Vec::with_capacity(length);
        let here = length.min(self.inbox.len());
        body.extend_from_slice(&self.inbox[..here]);
        self.inbox.advance(here);
        while body.len() < length {
            let left = length - body.len();
            match (&mut self.stream).take(left as u64).read_buf(&mut body).await {
                Ok(0) | Err(_) => {
                    self.is_closed = true;
                    return Err(ClientStop::Gone);
                }
                Ok(_) => {}
            }
        }
        Ok(body)
    }

    async fn chunked(
        &mut self,
        most: usize,
        place: &mut MemoryReservation<'_>,
    ) -> Result<Vec<u8>, ClientStop> {
        let (mut chunks, mut body) = (Chunks::default(), Vec::new());
        loop {
            let used = chunks
                .pass(&self.inbox, |range| body.extend_from_slice(&self.inbox[range]))
                .map_err(RequestFault::Malformed)?;
            self.inbox.advance(used);
            place.hold(body.len()).await;
            match (chunks.is_done(), body.len() > most) {
                (_, true) => return Err(RequestFault::BodyTooLarge { most }.into()),
                (true, _) => return Ok(body),
                (false, _) => {
                    self.inbox.reserve(BODY_ROOM);
                    self.fill().await?;
                }
            };
        }
    }

    /// Forwards the body of a request as it comes, as far as it is well-formed. Calls `tell` with the size of each piece before
    /// it is sent. Returns true if the whole body was sent.
    pub(crate) async fn pass_body<W: AsyncWrite + Unpin>(
        &mut self,
        head: &RequestHead,
        to: &mut W,
        mut tell: impl FnMut(u64) -> bool,
    ) -> Result<bool, ClientStop> {
        let (mut left, mut chunks) = match head.body {
            BodyLength::Exact(length) => (length, None),
            BodyLength::Chunked => (0, Some(Chunks::default())),
            BodyLength::UntilClose => return Ok(true),
        };
        if head.expects_continue && (left > 0 || chunks.is_some()) && self.inbox.is_empty() {
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        loop {
            let used = match &mut chunks {
                Some(chunks) => chunks.pass(&self.inbox, |_| {}).map_err(RequestFault::Malformed)?,
                None => usize::try_from(left).unwrap_or(usize::MAX).min(self.inbox.len()),
            };
            if used > 0 {
                // Called before sending, so that bytes beyond a limit are never sent.
                if !tell(used as u64) {
                    return Ok(false);
                }
                let written = within(self.times.idle, to.write_all(&self.inbox[..used])).await;
                if !matches!(written, Ok(Ok(()))) {
                    return Ok(false);
                }
                self.inbox.advance(used);
            }
            left = left.saturating_sub(used as u64);
            if chunks.as_ref().map_or(left == 0, Chunks::is_done) {
                return Ok(true);
            }
            within(self.times.idle, self.fill()).await.map_err(|_| RequestFault::TooSlow)??;
        }
    }

    /// Returns the stream, and the bytes that were read already.
    pub(crate) fn into_parts(self) -> (S, BytesMut) {
        (self.stream, self.inbox)
    }

    /// Reads once. A client that has closed its side sends nothing more.
    async fn fill(&mut self) -> Result<(), ClientStop> {
        self.inbox.reserve(ROOM);
        match self.stream.read_buf(&mut self.inbox).await {
            Ok(0) | Err(_) => {
                self.is_closed = true;
                Err(ClientStop::Gone)
            }
            Ok(_) => Ok(()),
        }
    }

    /// Returns when the client is gone or has closed its side; a client that waits for an answer doesn't close it. Bytes that
    /// it sends ahead are kept, up to the length of a head. If it sends more, no further request is accepted after this call.
    pub(crate) async fn gone(&mut self) {
        loop {
            if self.inbox.len() >= REQUEST_HEAD_BYTES {
                self.has_overrun = true;
                self.inbox.clear();
            }
            if self.fill().await.is_err() {
                return;
            }
        }
    }

    /// Writes bytes. A client that doesn't read within the idle timeout counts as gone.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), ClientStop> {
        let sending = async {
            self.stream.write_all(bytes).await?;
            // Without this, bytes that TLS buffers would never be sent.
            self.stream.flush().await
        };
        match within(self.times.idle, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(ClientStop::Gone),
        }
    }

    /// Closes the connection so that the last bytes written arrive. If there were unread bytes, the kernel would reset the
    /// connection and discard them.
    pub(crate) async fn close(mut self) {
        const MOST: usize = 1 << 20;
        const PATIENCE: Duration = Duration::from_secs(1);
        // TLS has a last message to send, and the client may not read it.
        if self.is_closed || !matches!(within(PATIENCE, self.stream.shutdown()).await, Ok(Ok(()))) {
            return;
        }
        let drain = async {
            let mut taken = 0;
            while taken < MOST && self.fill().await.is_ok() {
                taken += self.inbox.len();
                self.inbox.clear();
            }
        };
        let _ = within(PATIENCE, drain).await;
    }
}
