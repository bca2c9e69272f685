//! One request for a day's rows, and its answer.

use super::SpendError;
use crate::credential::Injected;
use crate::http1::limits::{CONNECT_TIME, RESPONSE_HEAD_BYTES};
use crate::http1::{BodyLength, Chunks, Malformed, ResponseHead, head};
use crate::inference::models::Provider;
use crate::upstream::{Connection, Pool};
use belljar_contract::spend::SpendRow;
use bytes::Buf;
use jiff::civil::Date;
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Whom it is asked of, and what it wants to see.
pub(super) struct Asking<'p> {
    provider: &'p Provider,
    injected: Option<Arc<Injected>>,
}

/// What was answered.
struct Answer {
    head: ResponseHead,
    body: Vec<u8>,
}

/// Why there is no answer.
enum Failure {
    Connection(io::Error),
    Malformed(Malformed),
    TooLarge,
}

/// Ten thousand rows, with room to spare: LiteLLM can be told to keep prompts in them.
pub(super) const LARGEST_ANSWER: usize = 128 << 20;

/// How long one answer may take, from the request to its last byte.
const ANSWER_TIME: Duration = Duration::from_secs(120);

/// Where LiteLLM says that there are more rows.
const TRUNCATED: &str = "x-litellm-spend-logs-truncated";

/// What LiteLLM says where it has none.
const NO_DATABASE: [&[u8]; 2] = [b"Database not connected", b"No connected db"];

impl From<Malformed> for Failure {
    fn from(source: Malformed) -> Self {
        Self::Malformed(source)
    }
}

impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Self {
        Self::Connection(source)
    }
}

// === impl Asking ===

impl<'p> Asking<'p> {
    pub(super) fn new(provider: &'p Provider) -> Result<Self, SpendError> {
        let injected = provider.credential.as_ref().map(crate::credential::Credential::get).transpose();
        let failed = |source| SpendError::Credential { provider: provider.name.clone(), source };
        Ok(Self { provider, injected: injected.map_err(failed)? })
    }

    /// The rows of a day.
    pub(super) async fn rows(
        &self,
        pool: &Pool,
        end_user: &str,
        day: Date,
    ) -> Result<Vec<SpendRow>, SpendError> {
        let provider = self.provider.name.clone();
        let request = self.request(end_user, day);
        let answer = match timeout(ANSWER_TIME, self.exchange(pool, &request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(Failure::Connection(source))) => return Err(SpendError::Connection { provider, source }),
            Ok(Err(Failure::Malformed(source))) => return Err(SpendError::Malformed { provider, source }),
            Ok(Err(Failure::TooLarge)) => return Err(SpendError::TooLarge { provider }),
            Err(_) => return Err(SpendError::OutOfTime { provider }),
        };
        let Answer { head, body } = answer;
        // From here on something that was answered may be said.
        let has_echo = self.injected.as_ref().is_some_and(|injected| injected.forms.is_in(&body));
        match head.status {
            200 if has_echo => Err(SpendError::Echo { provider }),
            200 if head.header(TRUNCATED).is_some_and(|value| !value.eq_ignore_ascii_case(b"false")) => {
                Err(SpendError::Truncated { provider, day })
            }
            200 => SpendRow::parse_all(&body).map_err(|source| SpendError::Rows { provider, source }),
            status @ (401 | 403) => Err(SpendError::Forbidden { provider, status }),
            _ if NO_DATABASE.iter().any(|said| memchr::memmem::find(&body, said).is_some()) => {
                Err(SpendError::NoDatabase { provider })
            }
            status => Err(SpendError::Status { provider, status }),
        }
    }

    fn request(&self, end_user: &str, day: Date) -> Zeroizing<Vec<u8>> {
        let upstream = &self.provider.upstream;
        let (prefix, host, user) = (upstream.prefix(), upstream.host(), encoded(end_user));
        let next = day.tomorrow().unwrap_or(day);
        let head = format!(
            "GET {prefix}/spend/logs?end_user={user}&start_date={day}&end_date={next}&summarize=false HTTP/1.1\r\n\
             host: {host}\r\naccept: application/json\r\naccept-encoding: identity\r\n"
        );
        let mut bytes = Zeroizing::new(Vec::with_capacity(head.len() + 1024));
        bytes.extend_from_slice(head.as_bytes());
        if let Some(injected) = &self.injected {
            bytes.extend_from_slice(b"authorization: Bearer ");
            bytes.extend_from_slice(injected.secret.expose());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    async fn exchange(&self, pool: &Pool, request: &[u8]) -> Result<Answer, Failure> {
        let connecting = timeout(CONNECT_TIME, pool.take(&self.provider.upstream)).await;
        let mut connection = connecting.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        connection.stream.write_all(request).await?;
        connection.stream.flush().await?;
        let head = read_head(&mut connection).await?;
        let body = read_body(&head, &mut connection).await?;
        if head.keeps_alive {
            pool.give_back(&self.provider.upstream, connection);
        }
        Ok(Answer { head, body })
    }
}

async fn read_head(connection: &mut Connection) -> Result<ResponseHead, Failure> {
    loop {
        if let Some(end) = head::end(&connection.inbox) {
            let parsed = ResponseHead::parse(connection.inbox.get(..end).unwrap_or_default())?;
            connection.inbox.advance(end);
            match parsed.status {
                // Nobody has asked for another protocol.
                101 => return Err(Malformed::Syntax.into()),
                100..=199 => continue,
                _ => return Ok(parsed),
            }
        }
        if connection.inbox.len() > RESPONSE_HEAD_BYTES {
            return Err(Failure::TooLarge);
        }
        if connection.stream.read_buf(&mut connection.inbox).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }
}

async fn read_body(head: &ResponseHead, connection: &mut Connection) -> Result<Vec<u8>, Failure> {
    if matches!(head.body, BodyLength::Exact(length) if length > LARGEST_ANSWER as u64) {
        return Err(Failure::TooLarge);
    }
    let (mut body, mut chunks) = (Vec::new(), Chunks::default());
    loop {
        let inbox = &mut connection.inbox;
        let (used, is_whole) = match head.body {
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
        if body.len() > LARGEST_ANSWER {
            return Err(Failure::TooLarge);
        }
        if is_whole {
            return Ok(body);
        }
        if connection.stream.read_buf(inbox).await? == 0 {
            return match head.body {
                BodyLength::UntilClose => Ok(body),
                _ => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            };
        }
    }
}

/// As it may stand in a query, and means nothing there.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
