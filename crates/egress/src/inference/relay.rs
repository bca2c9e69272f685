//! Forwards a provider's answer byte by byte, and scans it.

use super::draft::CallRecordBuilder;
use super::observe::Observer;
use crate::client::{Client, ClientStop};
use crate::http1::limits::RESPONSE_BODY_BYTES;
use crate::http1::{BodyLength, Chunks};
use crate::leak_scan;
use crate::time_limit::within;
use crate::upstream::Connection;
use bytes::Buf;
use std::borrow::Cow;
use std::ops::Range;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// Body of an answer under way. Whatever ends it, the usage so far is noted.
pub(crate) struct Relay<'r, 'd> {
    end: BodyEnd,
    framing: Framing,
    watch: leak_scan::LeakScanner<'r>,
    observer: Observer,
    draft: &'r mut CallRecordBuilder<'d>,
    /// Bytes that could be the beginning of a secret.
    held: Vec<u8>,
    /// Number of bytes that are read at a time.
    room: usize,
}

/// End of the body.
enum BodyEnd {
    After(u64),
    Chunks(Chunks),
    WithConnection,
}

/// Framing towards the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Same framing as the provider's.
    AsItCame,
    /// In chunks that the host makes: a body that ends with the connection could end anywhere.
    Chunks,
    /// Until the connection is closed: an HTTP/1.0 client knows nothing else.
    Bare,
}

/// Reason why an answer isn't forwarded to its end. The client can tell, because the end is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutReason {
    /// The client is gone.
    Gone,
    /// The provider closed the connection in the middle, or sent invalid HTTP.
    Broken,
    /// The provider's idle timeout was exceeded.
    Silent,
    /// The answer contains an injected secret.
    Echo,
    /// The answer exceeds the maximum size.
    TooLarge,
}

impl From<ClientStop> for CutReason {
    fn from(_: ClientStop) -> Self {
        Self::Gone
    }
}

/// Buffer sizes in bytes. Most streams come in small pieces, and there may be many of them. A stream that fills its buffer gets
/// more.
const ROOM: usize = 8 << 10;
const MOST_ROOM: usize = 64 << 10;

// === impl Framing ===

impl Framing {
    /// Returns the framing for an answer of that body length, and for a client that understands chunks or doesn't.
    pub(crate) fn of(body: BodyLength, client_is_1_1: bool) -> Self {
        match (body, client_is_1_1) {
            (BodyLength::Exact(_), _) | (BodyLength::Chunked, true) => Self::AsItCame,
            (BodyLength::UntilClose, true) => Self::Chunks,
            (BodyLength::Chunked | BodyLength::UntilClose, false) => Self::Bare,
        }
    }

    /// Returns the body length that the head states.
    pub(crate) fn length(self, body: BodyLength) -> BodyLength {
        match self {
            Self::AsItCame => body,
            Self::Chunks => BodyLength::Chunked,
            Self::Bare => BodyLength::UntilClose,
        }
    }
}

// === impl Relay ===

impl<'r, 'd> Relay<'r, 'd> {
    pub(crate) fn new(
        (body, framing): (BodyLength, Framing),
        watch: leak_scan::LeakScanner<'r>,
        observer: Observer,
        draft: &'r mut CallRecordBuilder<'d>,
    ) -> Self {
        let end = match body {
            BodyLength::Exact(length) => BodyEnd::After(length),
            BodyLength::Chunked => BodyEnd::Chunks(Chunks::default()),
            BodyLength::UntilClose => BodyEnd::WithConnection,
        };
        Self { end, framing, watch, observer, draft, held: Vec::new(), room: ROOM }
    }

    /// Forwards the answer, after the bytes in `first`.
    pub(crate) async fn run<S>(
        &mut self,
        first: Vec<u8>,
        client: &mut Client<S>,
        provider: &mut Connection,
        patience: Duration,
    ) -> Result<(), CutReason>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut out = first;
        loop {
            let (used, goes_as_it_is) = self.take(&provider.inbox, &mut out)?;
            let is_done = self.is_done();
            if is_done {
                self.release(&mut out)?;
            }
            let bytes = if goes_as_it_is { &provider.inbox[..used] } else { out.as_slice() };
            if !bytes.is_empty() {
                client.send(bytes).await?;
                self.draft.begin();
                out.clear();
                out.shrink_to(ROOM);
            }
            provider.inbox.advance(used);
            if is_done {
                return Ok(());
            }
            if !self.read(client, provider, patience).await? {
                return match self.end {
                    BodyEnd::WithConnection => {
                        self.release(&mut out)?;
                        Ok(client.send(&out).await?)
                    }
                    BodyEnd::After(_) | BodyEnd::Chunks(_) => Err(CutReason::Broken),
                };
            }
        }
    }

    /// Reads once. Returns false at the end.
    async fn read<S>(
        &mut self,
        client: &mut Client<S>,
        provider: &mut Connection,
        patience: Duration,
    ) -> Result<bool, CutReason>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        provider.inbox.reserve(self.room);
        let read = within(patience, provider.stream.read_buf(&mut provider.inbox));
        tokio::select! {
            biased;
            read = read => match read {
                Ok(Ok(count)) => {
                    if count >= self.room {
                        self.room = (self.room * 2).min(MOST_ROOM);
                    }
                    Ok(count > 0)
                }
                Ok(Err(_)) => Err(CutReason::Broken),
                Err(_) => Err(CutReason::Silent),
            },
            () = client.gone() => Err(CutReason::Gone),
        }
    }

    fn is_done(&self) -> bool {
        match &self.end {
            BodyEnd::After(left) => *left == 0,
            BodyEnd::Chunks(chunks) => chunks.is_done(),
            BodyEnd::WithConnection => false,
        }
    }

    /// Releases the held bytes at the end of the answer, where no secret can be completed any more, and ends the host's own
    /// framing. A secret that was cut in the middle is not released.
    fn release(&mut self, out: &mut Vec<u8>) -> Result<(), CutReason> {
        if self.watch.ends_within() {
            return Err(CutReason::Echo);
        }
        let held = std::mem::take(&mut self.held);
        self.frame(&held, out);
        if self.framing == Framing::Chunks {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        Ok(())
    }

    /// Scans bytes and appends those that may pass to `out`. Returns the number of bytes that belong to the answer, and whether
    /// all of them may pass unchanged; in that case `out` gets none.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, bool), CutReason> {
        let mut pieces: Vec<Range<usize>> = Vec::new();
        let used = match &mut self.end {
            BodyEnd::After(left) => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= used as u64;
                pieces.push(0..used);
                used
            }
            BodyEnd::Chunks(chunks) => {
                chunks.pass(bytes, |range| pieces.push(range)).map_err(|_| CutReason::Broken)?
            }
            BodyEnd::WithConnection => {
                pieces.push(0..bytes.len());
                bytes.len()
            }
        };
        // Joined to one piece: the cost of scanning depends on the number of pieces.
        let payload: Cow<'_, [u8]> = match pieces.as_slice() {
            [piece] => Cow::Borrowed(&bytes[piece.clone()]),
            pieces => {
                let pieces: Vec<&[u8]> = pieces.iter().map(|piece| &bytes[piece.clone()]).collect();
                Cow::Owned(pieces.concat())
            }
        };
        if payload.is_empty() && self.framing != Framing::AsItCame {
            return Ok((used, false));
        }
        self.draft.response_bytes += payload.len() as u64;
        let held_bytes = self.watch.see(&payload).ok_or(CutReason::Echo)?;
        self.observer.see(&payload);
        self.draft.heard(&payload);
        if self.draft.response_bytes > RESPONSE_BODY_BYTES {
            return Err(CutReason::TooLarge);
        }
        let is_free = held_bytes == 0 && self.held.is_empty() && out.is_empty();
        match self.framing {
            Framing::AsItCame if is_free => return Ok((used, true)),
            Framing::AsItCame => self.pass(&bytes[..used], &pieces, held_bytes, out)?,
            Framing::Bare | Framing::Chunks => {
                let whole = 0..payload.len();
                self.pass(&payload, &[whole], held_bytes, out)?;
            }
        }
        Ok((used, false))
    }

    /// Forwards everything except the last payload bytes that have to be held, with the framing between and after them. An
    /// answer is cut off if too much would have to be held.
    fn pass(
        &mut self,
        all: &[u8],
        pieces: &[Range<usize>],
        held_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CutReason> {
        let Some(at) = first_held(pieces, held_bytes) else {
            // The match began before these bytes, and may continue after them.
            if self.held.len() > leak_scan::MOST_HELD {
                return Err(CutReason::Echo);
            }
            self.held.extend_from_slice(all);
            return Ok(());
        };
        let at = if held_bytes == 0 { all.len() } else { at };
        let held = std::mem::take(&mut self.held);
        self.frame_both(&held, &all[..at], out);
        self.held.extend_from_slice(&all[at..]);
        Ok(())
    }

    fn frame(&self, bytes: &[u8], out: &mut Vec<u8>) {
        self.frame_both(bytes, &[], out);
    }

    fn frame_both(&self, first: &[u8], second: &[u8], out: &mut Vec<u8>) {
        let length = first.len() + second.len();
        let is_chunk = self.framing == Framing::Chunks && length > 0;
        if is_chunk {
            out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
        }
        out.extend_from_slice(first);
        out.extend_from_slice(second);
        if is_chunk {
            out.extend_from_slice(b"\r\n");
        }
    }
}

impl Drop for Relay<'_, '_> {
    fn drop(&mut self) {
        self.draft.spent(self.observer.finish());
    }
}

/// Returns the offset at which the last `held_bytes` of these pieces begin; `None` if they begin before all of them.
fn first_held(pieces: &[Range<usize>], held_bytes: usize) -> Option<usize> {
    let mut left = held_bytes;
    if left == 0 {
        return Some(0);
    }
    for piece in pieces.iter().rev() {
        if left <= piece.len() {
            return Some(piece.end - left);
        }
        left -= piece.len();
    }
    None
}
