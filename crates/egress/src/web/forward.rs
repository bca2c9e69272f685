//! One request, passed on: its head is written anew, its body and its answer's pass as they come.

use super::limits::ROOM;
use super::passage::Passage;
use super::refusal::Refusal;
use super::run::WebRun;
use crate::client::{Client, Stop};
use crate::http1::{BodyLength, Chunks, Headers, RequestHead, ResponseHead};
use crate::upstream::{AnswerError, Connection, Dialed};
use belljar_policy::egress::Destination;
use bytes::Buf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// The whole answer was passed on.
pub(super) struct Passed {
    pub(super) status: u16,
    /// Whether another request may follow.
    pub(super) keeps_alive: bool,
}

/// It was not.
pub(super) enum Failed {
    /// The client has heard nothing yet, and can be told.
    Refused(Refusal),
    /// The answer has begun, or there is nobody to be told.
    Cut { status: Option<u16>, code: &'static str },
}

/// What is between two ends of one connection, and goes no further (RFC 9110 §7.6.1); and what is said of who asks, which is the
/// host's to say.
const NOT_PASSED_ON: &[&str] = &[
    "connection",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "content-length",
    "upgrade",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
];

/// Passes it on, and its answer back.
pub(super) async fn run<S>(
    client: &mut Client<S>,
    head: &RequestHead,
    (destination, dialed): (&Destination, Dialed),
    passage: &Passage<'_>,
) -> Result<Passed, Failed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let run = &passage.gate.run;
    let host = destination.host.to_string();
    let mut upstream = Connection::of(dialed.stream);
    let whole = timeout(run.limits.times.call, async {
        let begun = request(head, destination);
        let sent = upstream.stream.write_all(&begun).await;
        sent.map_err(|_| Failed::Refused(Refusal::Unreachable { host: host.clone() }))?;
        count(run, &passage.sent, begun.len() as u64, WebRun::may_send)?;
        let tell = |bytes| count(run, &passage.sent, bytes, WebRun::may_send).is_ok();
        // Whoever doesn't take all of a body may have answered all the same; what is left of it is no request.
        let is_whole = client.pass_body(head, &mut upstream.stream, tell).await?;
        if !run.may_send(0) {
            return Err(Failed::Refused(Refusal::Spent));
        }
        let answer = upstream.head(run.limits.times.idle).await;
        let answer = answer.map_err(|error| Failed::Refused(of_answer(&error, &host)))?;
        pass_back(client, (head, &answer), (&mut upstream, is_whole), passage).await
    });
    whole.await.unwrap_or(Err(Failed::Cut { status: None, code: "too_long" }))
}

/// The head of the request as it goes on.
fn request(head: &RequestHead, Destination { host, port }: &Destination) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let query = head.query.as_ref().map_or(String::new(), |query| format!("?{query}"));
    let authority = if *port == 80 { host.to_string() } else { format!("{host}:{port}") };
    let line = format!("{} {}{query} HTTP/1.1\r\nhost: {authority}\r\n", head.method, head.path);
    out.extend_from_slice(line.as_bytes());
    put_passed_on(&head.headers, &mut out);
    match head.body {
        BodyLength::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        BodyLength::Exact(0) if head.header("content-length").is_none() => {}
        BodyLength::Exact(length) => {
            out.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        BodyLength::UntilClose => {}
    }
    out.extend_from_slice(b"connection: close\r\n\r\n");
    out
}

/// Passes an answer back to its end.
async fn pass_back<S>(
    client: &mut Client<S>,
    (head, answer): (&RequestHead, &ResponseHead),
    (upstream, is_whole): (&mut Connection, bool),
    passage: &Passage<'_>,
) -> Result<Passed, Failed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (run, status) = (&passage.gate.run, answer.status);
    let cut = |code| Failed::Cut { status: Some(status), code };
    let is_empty = head.method == "HEAD";
    let body = if is_empty { BodyLength::Exact(0) } else { answer.body };
    // An old client can't be sent chunks, and of what ends with a connection it is told by the end of its own.
    let is_bare = body == BodyLength::UntilClose || (body == BodyLength::Chunked && !head.is_1_1);
    let keeps_alive = head.keeps_alive && is_whole && !is_bare;
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(format!("HTTP/1.1 {status} \r\n").as_bytes());
    put_passed_on(&answer.headers, &mut out);
    match (body, answer.header("content-length")) {
        (BodyLength::Chunked, _) if !is_bare => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        (BodyLength::Exact(length), _) if !is_empty && !matches!(status, 204 | 304) => {
            out.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
        }
        (_, Some(length)) if is_empty || status == 304 => {
            out.extend_from_slice(&[b"content-length: ", length, b"\r\n"].concat());
        }
        _ => {}
    }
    let connection: &[u8] =
        if keeps_alive { b"connection: keep-alive\r\n\r\n" } else { b"connection: close\r\n\r\n" };
    out.extend_from_slice(connection);
    client.send(&out).await.map_err(|_| cut("client_gone"))?;
    let (mut left, mut chunks) = match body {
        BodyLength::Exact(length) => (length, None),
        BodyLength::Chunked => (0, Some(Chunks::default())),
        BodyLength::UntilClose => (u64::MAX, None),
    };
    loop {
        let mut payload = Vec::new();
        let used = match &mut chunks {
            Some(chunks) => {
                let keep = |range: std::ops::Range<usize>| {
                    if is_bare {
                        payload.extend_from_slice(&upstream.inbox[range]);
                    }
                };
                chunks.pass(&upstream.inbox, keep).map_err(|_| cut("answer_malformed"))?
            }
            None => usize::try_from(left).unwrap_or(usize::MAX).min(upstream.inbox.len()),
        };
        let bytes = if chunks.is_some() && is_bare { payload.as_slice() } else { &upstream.inbox[..used] };
        if !bytes.is_empty() {
            client.send(bytes).await.map_err(|_| cut("client_gone"))?;
        }
        count(run, &passage.received, used as u64, WebRun::may_receive).map_err(|_| cut("bytes_used_up"))?;
        upstream.inbox.advance(used);
        if body != BodyLength::UntilClose {
            left = left.saturating_sub(used as u64);
        }
        if chunks.as_ref().map_or(left == 0, Chunks::is_done) {
            return Ok(Passed { status, keeps_alive });
        }
        upstream.inbox.reserve(ROOM);
        match read(upstream, client, run.limits.times.idle).await {
            Read::More => {}
            Read::End if body == BodyLength::UntilClose => return Ok(Passed { status, keeps_alive: false }),
            Read::End => return Err(cut("answer_cut")),
            Read::Silent => return Err(cut("answer_timeout")),
            Read::ClientGone => return Err(cut("client_gone")),
        }
    }
}

enum Read {
    More,
    End,
    Silent,
    ClientGone,
}

async fn read<S>(upstream: &mut Connection, client: &mut Client<S>, patience: Duration) -> Read
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    tokio::select! {
        biased;
        read = upstream.fill(patience) => match read {
            Ok(true) => Read::More,
            Ok(false) | Err(AnswerError::Ended(_)) => Read::End,
            Err(_) => Read::Silent,
        },
        () = client.gone() => Read::ClientGone,
    }
}

/// Headers that go on: none that is about a connection, and none that `Connection` says is.
fn put_passed_on(headers: &Headers, out: &mut Vec<u8>) {
    for (name, value) in headers.iter() {
        let Ok(text) = std::str::from_utf8(name) else { continue };
        if NOT_PASSED_ON.contains(&text) || headers.has_token("connection", text) {
            continue;
        }
        for part in [name, b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
}

fn count(
    run: &WebRun,
    counter: &std::cell::Cell<u64>,
    bytes: u64,
    may: fn(&WebRun, u64) -> bool,
) -> Result<(), Failed> {
    counter.set(counter.get() + bytes);
    if may(run, bytes) { Ok(()) } else { Err(Failed::Refused(Refusal::Spent)) }
}

fn of_answer(error: &AnswerError, host: &str) -> Refusal {
    let host = host.to_owned();
    match error {
        AnswerError::Silent => Refusal::Silent { host },
        AnswerError::Ended(_) | AnswerError::Malformed(_) | AnswerError::TooLarge => {
            Refusal::BadAnswer { host }
        }
    }
}

// === impl Failed ===

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Gone => Self::Cut { status: None, code: "client_gone" },
            Stop::Faulty(fault) => Self::Refused(fault.into()),
        }
    }
}
