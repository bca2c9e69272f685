//! Reads an answer from an upstream.

use super::Connection;
use crate::http1::limits::RESPONSE_HEAD_BYTES;
use crate::http1::{BodyLength, Chunks, MalformedHttp, ResponseHead, head};
use crate::time_limit::within;
use bytes::Buf;
use std::io;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Reason why there is no answer, or no complete one.
#[derive(Debug)]
pub(crate) enum AnswerError {
    /// The upstream closed the connection.
    Ended(io::Error),
    /// The answer is not acceptable HTTP.
    Malformed(MalformedHttp),
    /// The answer is too large.
    TooLarge,
    /// The idle timeout was exceeded.
    Silent,
}

impl From<MalformedHttp> for AnswerError {
    fn from(source: MalformedHttp) -> Self {
        Self::Malformed(source)
    }
}

// === impl Connection ===

impl Connection {
    /// Reads the head of the answer, skipping informational ones (1xx).
    pub(crate) async fn head(&mut self, patience: Duration) -> Result<ResponseHead, AnswerError> {
        self.head_counted(patience, |_| {}).await
    }

    /// Like [`Self::head`], and reports the bytes of each head. The size limit applies to all heads together.
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
                    // No request asks for another protocol.
                    ResponseHead { status: 101, .. } => return Err(MalformedHttp::Syntax.into()),
                    ResponseHead { status: 100..=199, .. } => continue,
                    answer => return Ok(answer),
                }
            }
            if !self.fill(patience).await? {
                return Err(AnswerError::Ended(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Reads the whole body of an answer, up to a maximum size in bytes.
    pub(crate) async fn body(
        &mut self,
        length: BodyLength,
        most: usize,
        patience: Duration,
    ) -> Result<Vec<u8>, AnswerError> {
        self.body_counted(length, most, patience, |_| {}).await
    }

    /// Like [`Self::body`], and reports the bytes of each piece, even if reading fails in the end.
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

    /// Reads the body up to a number of bytes. Returns whether there is more. Reports the bytes of each piece.
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

    /// Reads once. Returns false at the end of the stream.
    pub(crate) async fn fill(&mut self, patience: Duration) -> Result<bool, AnswerError> {
        match within(patience, self.stream.read_buf(&mut self.inbox)).await {
            Ok(Ok(count)) => Ok(count > 0),
            Ok(Err(source)) => Err(AnswerError::Ended(source)),
            Err(_) => Err(AnswerError::Silent),
        }
    }
}
