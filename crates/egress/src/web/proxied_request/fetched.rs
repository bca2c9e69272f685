//! Request that the host sends for a run. It is decided about, recorded, dialed and counted like one through the run's sockets.

use super::super::decision::RequestRoute;
use super::super::fetch::MOST_PAGE_BYTES;
use super::super::forward::{ForwardedRequest, request};
use super::super::refusal::Refusal;
use super::super::run::WebRun;
use super::{DestinationConnection, ProxiedRequest, failed};
use crate::client::Client;
use crate::http1::{RequestHead, ResponseHead};
use crate::time_limit::within;
use crate::upstream::{AnswerError, Connection};
use belljar_contract::egress::ProxiedRequestOutcome;
use std::cell::Cell;
use std::io::ErrorKind;
use tokio::io::AsyncWriteExt;

/// Complete answer.
#[derive(Debug)]
pub(in crate::web) struct FetchedAnswer {
    pub(in crate::web) status: u16,
    pub(in crate::web) content_type: Option<String>,
    /// Target of a redirect. The body is empty then.
    pub(in crate::web) location: Option<String>,
    /// Headers, by name and value.
    pub(in crate::web) headers: Vec<(String, String)>,
    pub(in crate::web) body: Vec<u8>,
    /// True if the body is longer.
    pub(in crate::web) is_truncated: bool,
}

/// Part of a body that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) enum BodyExtent {
    /// The whole body. A larger one is refused.
    Whole,
    /// The first bytes, at most this many.
    Beginning(usize),
}

/// Request as it is sent.
#[derive(Debug, Clone, Copy)]
pub(in crate::web) struct FetchInput<'a> {
    pub(in crate::web) head: &'a RequestHead,
    /// Body. Its length is the one in the head.
    pub(in crate::web) body: &'a [u8],
    pub(in crate::web) taken: BodyExtent,
}

const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

// === impl ProxiedRequest ===

impl ProxiedRequest<'_> {
    /// Sends the request and reads the answer.
    pub(in crate::web) async fn fetch(
        mut self,
        asking: FetchInput<'_>,
        way: RequestRoute<'_>,
    ) -> Result<FetchedAnswer, Refusal> {
        let head = asking.head;
        let patience = self.gate.run.limits.times;
        let mut no_client = Client::new(tokio::io::empty(), patience);
        let DestinationConnection { mut connection, filling, destination, proxy } =
            match self.open(&mut no_client, head, way).await {
                Ok(opened) => opened,
                Err(refusal) => {
                    self.note(&refusal);
                    // Each refusal is recorded, so the rate limits apply.
                    self.gate.pace.wait().await;
                    self.gate.run.audit.wait().await;
                    return Err(refusal);
                }
            };
        let outgoing =
            ForwardedRequest { destination: &destination, is_secure: way.is_secure(), filling, proxy };
        let answered = self.held_to_policy(asking, &outgoing, &mut connection).await;
        match &answered {
            Ok(fetched) => {
                (self.status, self.outcome) = (Some(fetched.status), ProxiedRequestOutcome::Completed);
            }
            Err(refusal) => {
                self.note_kept_out(refusal);
                self.outcome = failed(refusal.recorded_code());
            }
        }
        answered
    }

    /// Exchanges request and answer, for as long as the policy allows it.
    async fn held_to_policy(
        &self,
        asking: FetchInput<'_>,
        outgoing: &ForwardedRequest<'_, '_>,
        upstream: &mut Connection,
    ) -> Result<FetchedAnswer, Refusal> {
        let mut policy = self.policy.clone();
        let mut whole = std::pin::pin!(self.exchange(asking, outgoing, upstream));
        loop {
            tokio::select! {
                biased;
                Ok(()) = policy.changed() => {
                    policy.borrow_and_update();
                    if !self.is_still_allowed(outgoing.destination) {
                        let destination = outgoing.destination.to_string();
                        return Err(Refusal::NoLongerAllowed { destination });
                    }
                }
                answered = &mut whole => return answered,
            }
        }
    }

    async fn exchange(
        &self,
        asking: FetchInput<'_>,
        outgoing: &ForwardedRequest<'_, '_>,
        upstream: &mut Connection,
    ) -> Result<FetchedAnswer, Refusal> {
        let idle = self.gate.run.limits.times.idle;
        let host = || outgoing.destination.host.to_string();
        let begun = request(asking.head, outgoing);
        self.count(&self.sent, (begun.len() + asking.body.len()) as u64, WebRun::may_send)?;
        let sending = async {
            upstream.stream.write_all(&begun).await?;
            upstream.stream.write_all(asking.body).await?;
            upstream.stream.flush().await
        };
        let sent = within(idle, sending).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
        sent.map_err(|_| Refusal::Unreachable { host: host() })?;
        let mut heard = 0;
        let answer = upstream.head_counted(idle, |bytes| heard += bytes).await;
        self.count(&self.received, heard, WebRun::may_receive)?;
        let answer = answer.map_err(|error| of_answer(&error, host()))?;
        self.note_answer(outgoing.destination, outgoing.proxy.as_ref(), &answer)?;
        let text = |name| Some(String::from_utf8_lossy(answer.header(name)?).into_owned());
        let (status, content_type) = (answer.status, text("content-type"));
        let location = text("location").filter(|_| REDIRECTS.contains(&status));
        if location.is_none() && !answer.is_plain() {
            // The request asked for an unencoded answer.
            return Err(Refusal::BadAnswer { host: host() });
        }
        let (body, is_truncated) = match &location {
            Some(_) => (Vec::new(), false),
            None if asking.head.method == "HEAD" => (Vec::new(), false),
            None => self.body((&answer, asking.taken), outgoing, upstream).await?,
        };
        let is_told = outgoing.filling.injected().any(|injected| {
            injected.forms.are_in_lines(answer.headers.text()) || injected.forms.are_told_by(&body)
        });
        if is_told {
            return Err(Refusal::Repeated { host: host() });
        }
        let lossy = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let headers = answer.headers.iter().map(|(name, value)| (lossy(name), lossy(value))).collect();
        Ok(FetchedAnswer { status, content_type, location, headers, body, is_truncated })
    }

    async fn body(
        &self,
        (answer, taken): (&ResponseHead, BodyExtent),
        outgoing: &ForwardedRequest<'_, '_>,
        upstream: &mut Connection,
    ) -> Result<(Vec<u8>, bool), Refusal> {
        let mut is_spent = false;
        let tell = |bytes| is_spent |= self.count(&self.received, bytes, WebRun::may_receive).is_err();
        let idle = self.gate.run.limits.times.idle;
        let body = match taken {
            // A body that is scanned for credentials is read whole: half of one would not be found.
            BodyExtent::Beginning(most) if !outgoing.filling.is_watched() => {
                upstream.beginning_counted(answer.body, most, idle, tell).await
            }
            BodyExtent::Beginning(_) | BodyExtent::Whole => {
                let whole = upstream.body_counted(answer.body, MOST_PAGE_BYTES, idle, tell).await;
                whole.map(|body| (body, false))
            }
        };
        match is_spent {
            true => Err(Refusal::Spent),
            false => body.map_err(|error| of_answer(&error, outgoing.destination.host.to_string())),
        }
    }

    fn count(&self, counter: &Cell<u64>, bytes: u64, may: fn(&WebRun, u64) -> bool) -> Result<(), Refusal> {
        counter.set(counter.get() + bytes);
        if may(&self.gate.run, bytes) { Ok(()) } else { Err(Refusal::Spent) }
    }
}

fn of_answer(error: &AnswerError, host: String) -> Refusal {
    match error {
        AnswerError::Silent => Refusal::Silent { host },
        AnswerError::TooLarge => Refusal::AnswerTooLarge { host, most: MOST_PAGE_BYTES },
        AnswerError::Ended(_) | AnswerError::Malformed(_) => Refusal::BadAnswer { host },
    }
}
