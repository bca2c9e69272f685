//! A connection that somebody in a sandbox has made.

use crate::http1::limits::{CONNECT_HEAD_BYTES, REQUEST_HEAD_BYTES, Times};
use crate::http1::{BodyLength, Chunks, Malformed, RequestHead, Target, head};
use crate::room::Place;
use crate::within::within;
use bytes::{Buf, BytesMut};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Such a connection.
pub(crate) struct Client<S> {
    stream: S,
    inbox: BytesMut,
    times: Times,
    is_closed: bool,
    /// It has sent more ahead than is kept, and some of that is lost.
    has_overrun: bool,
}

/// Why nothing more comes from it.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It is gone, or takes nothing any more.
    Gone,
    /// What it says can't be taken, and it is told so.
    Faulty(Fault),
}

/// What is wrong with a request before anybody has looked at what it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Malformed(Malformed),
    HeadTooLarge { most: usize },
    BodyTooLarge { most: usize },
    TooSlow,
}

/// Most heads fit into that, and many connections wait with it.
const ROOM: usize = 4 << 10;
/// What is read of a body at a time.
const BODY_ROOM: usize = 64 << 10;

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Faulty(fault)
    }
}

// === impl Client ===

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn new(stream: S, times: Times) -> Self {
        let inbox = BytesMut::with_capacity(ROOM);
        Self { stream, inbox, times, is_closed: false, has_overrun: false }
    }

    /// Whether another request may follow.
    pub(crate) fn can_go_on(&self) -> bool {
        !self.is_closed && !self.has_overrun
    }

    /// The head of the next request, for a path.
    pub(crate) async fn head(&mut self) -> Result<RequestHead, Stop> {
        self.head_by(RequestHead::parse).await
    }

    /// The head of the next request, for anything that a forward proxy is asked for.
    pub(crate) async fn head_for_proxy(&mut self) -> Result<(RequestHead, Target), Stop> {
        self.head_by(RequestHead::parse_for_proxy).await
    }

    async fn head_by<T>(&mut self, parse: impl FnOnce(&[u8]) -> Result<T, Malformed>) -> Result<T, Stop> {
        if self.inbox.is_empty() {
            match within(self.times.keep_alive, self.fill()).await {
                Ok(Ok(_)) => {}
                // Nobody has asked anything, and nobody is told.
                Ok(Err(stop)) => return Err(stop),
                Err(_) => return Err(Stop::Gone),
            }
        }
        let end = within(self.times.head, self.whole_head()).await.map_err(|_| Fault::TooSlow)??;
        let parsed = parse(&self.inbox[..end]).map_err(Fault::Malformed);
        self.inbox.advance(end);
        Ok(parsed?)
    }

    /// Reads until there is a whole head, and says where it ends.
    async fn whole_head(&mut self) -> Result<usize, Stop> {
        loop {
            let end = head::end(&self.inbox);
            let most =
                if self.inbox.starts_with(b"CONNECT ") { CONNECT_HEAD_BYTES } else { REQUEST_HEAD_BYTES };
            match end {
                _ if end.unwrap_or(self.inbox.len()) > most => {
                    return Err(Fault::HeadTooLarge { most }.into());
                }
                Some(end) => return Ok(end),
                None => self.fill().await?,
            }
        }
    }

    /// The body of a request, whole, of at most so many bytes.
    pub(crate) async fn body(
        &mut self,
        head: &RequestHead,
        most: usize,
        place: &mut Place<'_>,
    ) -> Result<Vec<u8>, Stop> {
        if let BodyLength::Exact(length) = head.body
            && length > most as u64
        {
            return Err(Fault::BodyTooLarge { most }.into());
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
        within(patience, whole).await.map_err(|_| Fault::TooSlow)?
    }

    async fn exact(&mut self, length: u64, place: &mut Place<'_>) -> Result<Vec<u8>, Stop> {
        // It was compared with what there may be.
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
                    return Err(Stop::Gone);
                }
                Ok(_) => {}
            }
        }
        Ok(body)
    }

    async fn chunked(&mut self, most: usize, place: &mut Place<'_>) -> Result<Vec<u8>, Stop> {
        let (mut chunks, mut body) = (Chunks::default(), Vec::new());
        loop {
            let used = chunks
                .pass(&self.inbox, |range| body.extend_from_slice(&self.inbox[range]))
                .map_err(Fault::Malformed)?;
            self.inbox.advance(used);
            place.hold(body.len()).await;
            match (chunks.is_done(), body.len() > most) {
                (_, true) => return Err(Fault::BodyTooLarge { most }.into()),
                (true, _) => return Ok(body),
                (false, _) => {
                    self.inbox.reserve(BODY_ROOM);
                    self.fill().await?;
                }
            };
        }
    }

    /// Passes the body of a request on as it comes, as far as it is one, and tells of each piece before it goes; whether all of it
    /// went.
    pub(crate) async fn pass_body<W: AsyncWrite + Unpin>(
        &mut self,
        head: &RequestHead,
        to: &mut W,
        mut tell: impl FnMut(u64) -> bool,
    ) -> Result<bool, Stop> {
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
                Some(chunks) => chunks.pass(&self.inbox, |_| {}).map_err(Fault::Malformed)?,
                None => usize::try_from(left).unwrap_or(usize::MAX).min(self.inbox.len()),
            };
            if used > 0 {
                // Told before it goes: what may not is not to have gone.
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
            within(self.times.idle, self.fill()).await.map_err(|_| Fault::TooSlow)??;
        }
    }

    /// What it speaks over, and what it has sent already.
    pub(crate) fn into_parts(self) -> (S, BytesMut) {
        (self.stream, self.inbox)
    }

    /// Reads once. Nothing more comes from whoever has closed its end.
    async fn fill(&mut self) -> Result<(), Stop> {
        self.inbox.reserve(ROOM);
        match self.stream.read_buf(&mut self.inbox).await {
            Ok(0) | Err(_) => {
                self.is_closed = true;
                Err(Stop::Gone)
            }
            Ok(_) => Ok(()),
        }
    }

    /// Returns when it is gone, or has closed its end: nobody asks that way who wants an answer. What it sends ahead is
    /// kept up to a head's length; of whoever sends more, nothing is taken after this call.
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

    /// Writes; whoever takes nothing for long is gone.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let sending = async {
            self.stream.write_all(bytes).await?;
            // What TLS holds back nobody would ever hear.
            self.stream.flush().await
        };
        match within(self.times.idle, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Stop::Gone),
        }
    }

    /// Ends the connection so that what was written last arrives: bytes that were not read would have the kernel throw
    /// it away.
    pub(crate) async fn close(mut self) {
        const MOST: usize = 1 << 20;
        const PATIENCE: Duration = Duration::from_secs(1);
        // With TLS it has something to say, to whoever may take nothing.
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
