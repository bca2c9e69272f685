//! Passes a provider's answer on, byte for byte, and looks at it on the way.

use super::client::{Client, Stop};
use super::observe::Observer;
use crate::echo;
use crate::http1::limits::{IDLE_TIME, RESPONSE_BODY_BYTES};
use crate::http1::{BodyLength, Chunks};
use crate::upstream::Connection;
use bytes::Buf;
use std::ops::Range;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::timeout;

/// The body of one answer, under way.
pub(crate) struct Relay<'r> {
    end: End,
    watch: echo::Watch<'r>,
    observer: Observer,
    /// Bytes that could be the beginning of what must not pass.
    held: Vec<u8>,
    /// Payload so far.
    pub(crate) bytes: u64,
    /// Whether the client has got anything yet.
    pub(crate) has_begun: bool,
}

/// Where it ends.
enum End {
    After(u64),
    Chunks(Chunks),
    WithConnection,
}

/// Why it isn't passed on to its end. Whoever gets it can tell: its end is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The client is gone.
    Gone,
    /// The provider has ended in the middle, or says what isn't HTTP.
    Broken,
    /// The provider says nothing for too long.
    Silent,
    /// What was injected comes back.
    Echo,
    /// It is larger than anything may be.
    TooLarge,
}

impl From<Stop> for Cut {
    fn from(_: Stop) -> Self {
        Self::Gone
    }
}

const ROOM: usize = 64 << 10;

// === impl Relay ===

impl<'r> Relay<'r> {
    pub(crate) fn new(body: BodyLength, watch: echo::Watch<'r>, observer: Observer) -> Self {
        let end = match body {
            BodyLength::Exact(length) => End::After(length),
            BodyLength::Chunked => End::Chunks(Chunks::default()),
            BodyLength::UntilClose => End::WithConnection,
        };
        Self { end, watch, observer, held: Vec::new(), bytes: 0, has_begun: false }
    }

    /// Passes everything on, behind what is to be sent first.
    pub(crate) async fn run<S>(
        &mut self,
        first: Vec<u8>,
        client: &mut Client<S>,
        provider: &mut Connection,
    ) -> Result<(), Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut out = first;
        loop {
            let used = self.take(&provider.inbox, &mut out)?;
            provider.inbox.advance(used);
            let is_done = self.is_done();
            if is_done {
                // Nothing can follow that would complete it.
                out.append(&mut self.held);
            }
            if !out.is_empty() {
                self.has_begun = true;
                client.send(&out).await?;
                out.clear();
            }
            if is_done {
                return Ok(());
            }
            if !self.read(client, provider).await? {
                return self.ended_with_connection(client).await;
            }
        }
    }

    /// Reads once; false when there is no more.
    async fn read<S>(&self, client: &mut Client<S>, provider: &mut Connection) -> Result<bool, Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        provider.inbox.reserve(ROOM);
        let read = timeout(IDLE_TIME, provider.stream.read_buf(&mut provider.inbox));
        tokio::select! {
            biased;
            read = read => match read {
                Ok(Ok(count)) => Ok(count > 0),
                Ok(Err(_)) => Err(Cut::Broken),
                Err(_) => Err(Cut::Silent),
            },
            () = client.gone() => Err(Cut::Gone),
        }
    }

    async fn ended_with_connection<S>(&mut self, client: &mut Client<S>) -> Result<(), Cut>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        match self.end {
            End::WithConnection => Ok(client.send(&std::mem::take(&mut self.held)).await?),
            End::After(_) | End::Chunks(_) => Err(Cut::Broken),
        }
    }

    fn is_done(&self) -> bool {
        match &self.end {
            End::After(left) => *left == 0,
            End::Chunks(chunks) => chunks.is_done(),
            End::WithConnection => false,
        }
    }

    /// Looks at bytes, puts those that may pass behind `out`, and says how many belong to the answer.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Cut> {
        let mut payload: Vec<Range<usize>> = Vec::new();
        let used = match &mut self.end {
            End::After(left) => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= used as u64;
                payload.push(0..used);
                used
            }
            End::Chunks(chunks) => {
                chunks.pass(bytes, |range| payload.push(range)).map_err(|_| Cut::Broken)?
            }
            End::WithConnection => {
                payload.push(0..bytes.len());
                bytes.len()
            }
        };
        let mut held_bytes = self.held.len();
        for range in &payload {
            let piece = bytes.get(range.clone()).unwrap_or_default();
            self.bytes += piece.len() as u64;
            held_bytes = self.watch.see(piece).ok_or(Cut::Echo)?;
            self.observer.see(piece);
        }
        if self.bytes > RESPONSE_BODY_BYTES {
            return Err(Cut::TooLarge);
        }
        let all = bytes.get(..used).unwrap_or_default();
        self.pass(all, &payload, held_bytes, out);
        Ok(used)
    }

    /// Passes on all but the payload's last bytes that are to be held, and what stands between and behind them.
    fn pass(&mut self, all: &[u8], payload: &[Range<usize>], held_bytes: usize, out: &mut Vec<u8>) {
        let mut left = held_bytes;
        for range in payload.iter().rev() {
            if left <= range.len() && left > 0 {
                let at = range.end - left;
                out.append(&mut self.held);
                out.extend_from_slice(all.get(..at).unwrap_or_default());
                self.held.extend_from_slice(all.get(at..).unwrap_or_default());
                return;
            }
            left -= left.min(range.len());
        }
        if held_bytes == 0 {
            out.append(&mut self.held);
            out.extend_from_slice(all);
        } else {
            // It began before these bytes, and may go on behind them.
            self.held.extend_from_slice(all);
        }
    }

    /// What the answer says that it has cost.
    pub(crate) fn finish(self) -> super::observe::Usage {
        self.observer.finish()
    }
}
