//! Requests one day's rows.

use super::SpendError;
use crate::credential::InjectedSecret;
use crate::http1::ResponseHead;
use crate::http1::limits::Times;
use crate::inference::models::Provider;
use crate::upstream::{AnswerError, Pool};
use belljar_contract::spend::SpendRow;
use jiff::civil::Date;
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Provider that is asked, with its credential.
pub(super) struct SpendClient<'p> {
    provider: &'p Provider,
    injected: Option<Arc<InjectedSecret>>,
}

/// Answer of the provider.
struct SpendAnswer {
    head: ResponseHead,
    body: Vec<u8>,
}

/// Maximum size of an answer in bytes: ten thousand rows with space to spare, because LiteLLM may store prompts in them.
pub(super) const LARGEST_ANSWER: usize = 128 << 20;

/// Time limit for one answer, from the request to its last byte.
const ANSWER_TIME: Duration = Duration::from_secs(120);

/// Header in which LiteLLM reports that there are more rows.
const TRUNCATED: &str = "x-litellm-spend-logs-truncated";

/// Texts by which LiteLLM reports that it has no database.
const NO_DATABASE: [&[u8]; 2] = [b"Database not connected", b"No connected db"];

// === impl SpendClient ===

impl<'p> SpendClient<'p> {
    pub(super) fn new(provider: &'p Provider) -> Result<Self, SpendError> {
        let injected = provider.credential.as_ref().map(|credential| credential.get()).transpose();
        let failed = |source| SpendError::Credential { provider: provider.name.clone(), source };
        Ok(Self { provider, injected: injected.map_err(failed)? })
    }

    /// Returns the rows of a day.
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
            Ok(Err(AnswerError::Ended(source))) => return Err(SpendError::Connection { provider, source }),
            Ok(Err(AnswerError::Malformed(source))) => {
                return Err(SpendError::Malformed { provider, source });
            }
            Ok(Err(AnswerError::TooLarge)) => return Err(SpendError::TooLarge { provider }),
            Ok(Err(AnswerError::Silent)) | Err(_) => return Err(SpendError::OutOfTime { provider }),
        };
        let SpendAnswer { head, body } = answer;
        // The answer is scanned before any part of it is used.
        let has_echo = self.injected.as_ref().is_some_and(|injected| injected.forms.are_told_by(&body));
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

    async fn exchange(&self, pool: &Pool, request: &[u8]) -> Result<SpendAnswer, AnswerError> {
        let connecting = timeout(Times::default().connect, pool.take(&self.provider.upstream)).await;
        let connected = connecting.map_err(|_| AnswerError::Silent)?;
        let mut connection = connected.map_err(|source| AnswerError::Ended(io::Error::other(source)))?;
        connection.stream.write_all(request).await.map_err(AnswerError::Ended)?;
        connection.stream.flush().await.map_err(AnswerError::Ended)?;
        let head = connection.head(ANSWER_TIME).await?;
        let body = connection.body(head.body, LARGEST_ANSWER, ANSWER_TIME).await?;
        if head.keeps_alive {
            pool.give_back(&self.provider.upstream, connection);
        }
        Ok(SpendAnswer { head, body })
    }
}

/// Percent-encodes a text for a query.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a `String` can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
