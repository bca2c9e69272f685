//! An answer, as it is read from an upstream.

use super::Connection;
use crate::http1::limits::RESPONSE_HEAD_BYTES;
use crate::http1::{BodyLength, Chunks, Malformed, ResponseHead, head};
use crate::within::within;
use bytes::Buf;
use std::io;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Why there is none, or not all of it.
#[derive(Debug)]
pub(crate) enum AnswerError {
    /// The upstream has hung up.
    Ended(io::Error),
    /// What it says isn't HTTP as it is taken here.
    Malformed(Malformed),
    /// There is more than is taken.
    TooLarge,
    /// It said nothing for too long.
    Silent,
}

impl From<Malformed> for AnswerError {
    fn from(source: Malformed) -> Self {
        Self::Malformed(source)
    }
}

// === impl Connection ===

impl Connection {
    /// The head of the answer, behind any that only says to go on.
    pub(crate) async fn head(&mut self, patience: Duration) -> Result<ResponseHead, AnswerError> {
        self.head_counted(patience, |_| {}).await
    }

    /// The same, telling of the bytes of each head. All of them together are no longer than one may be.
    pub(crate) async fn head_counted(
        &mut self,
        patience: Duration,
        mut tell: impl FnMut(u64),
    ) -> Result<ResponseHead, AnswerError> {
        let mut taken = 0;
        loop {
            let end = head::end(&self.inbox);
            if taken + end.unwrap_or(self.inbox.len()) > RESPONSE_HEAD_BYTES {
                return Err(AnswerError::TooLarge);
            }
            if let Some(end) = end {
                let parsed = ResponseHead::parse(self.inbox.get(..end).unwrap_or_default());
                self.inbox.advance(end);
                taken += end;
                tell(end as u64);
                match parsed? {
                    // Nobody has asked for another protocol.
                    ResponseHead { status: 101, .. } => return Err(Malformed::Syntax.into()),
                    ResponseHead { status: 100..=199, .. } => continue,
                    answer => return Ok(answer),
                }
            }
            if !self.fill(patience).await? {
                return Err(AnswerError::Ended(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// All of the body of an answer with such a head, of at most so many bytes.
    pub(crate) async fn body(
        &mut self,
        length: BodyLength,
        most: usize,
        patience: Duration,
    ) -> Result<Vec<u8>, AnswerError> {
        self.body_counted(length, most, patience, |_| {}).await
    }

    /// The same, telling of the bytes of each piece, also where it is not all of it in the end.
    pub(crate) async fn body_counted(
        &mut self,
        length: BodyLength,
        most: usize,
        patience: Duration,
        tell: impl FnMut(u64),
    ) -> Result<Vec<u8>, AnswerError> {
        if matches!(length, BodyLength::Exact(length) if length > most as u64) {
            return Err(AnswerError::TooLarge);
        }
        match self.beginning_counted(length, most, patience, tell).await? {
            (body, false) => Ok(body),
            (_, true) => Err(AnswerError::TooLarge),
        }
    }

    /// So much of the body at most, and whether there is more; telling of the bytes of each piece.
    pub(crate) async fn beginning_counted(
        &mut self,
        length: BodyLength,
        most: usize,
        patience: Duration,
        mut tell: impl FnMut(u64),
    ) -> Result<(Vec<u8>, bool), AnswerError> {
        let (mut body, mut chunks) = (Vec::new(), Chunks::default());
        loop {
            let inbox = &mut self.inbox;
            let (used, is_whole) = match length {
                BodyLength::Chunked => {
                    let used = chunks.pass(inbox, |range| body.extend_from_slice(&inbox[range]))?;
                    (used, chunks.is_done())
                }
                BodyLength::Exact(length) => {
                    let left = length - body.len() as u64;
                    let here = usize::try_from(left).unwrap_or(usize::MAX).min(inbox.len());
                    body.extend_from_slice(&inbox[..here]);
                    (here, here as u64 == left)
                }
                BodyLength::UntilClose => {
                    body.extend_from_slice(inbox);
                    (inbox.len(), false)
                }
            };
            inbox.advance(used);
            tell(used as u64);
            if body.len() > most {
                body.truncate(most);
                return Ok((body, true));
            }
            if is_whole {
                return Ok((body, false));
            }
            match (self.fill(patience).await?, length) {
                (true, _) => {}
                (false, BodyLength::UntilClose) => return Ok((body, false)),
                (false, _) => return Err(AnswerError::Ended(io::ErrorKind::UnexpectedEof.into())),
            }
        }
    }

    /// Reads once; false when there is no more.
    pub(crate) async fn fill(&mut self, patience: Duration) -> Result<bool, AnswerError> {
        match within(patience, self.stream.read_buf(&mut self.inbox)).await {
            Ok(Ok(count)) => Ok(count > 0),
            Ok(Err(source)) => Err(AnswerError::Ended(source)),
            Err(_) => Err(AnswerError::Silent),
        }
    }
}
