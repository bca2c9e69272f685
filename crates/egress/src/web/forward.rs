//! Forwards one request. Its head is written anew; its body and the answer's body are streamed.

use super::credential_injection::CredentialInjection;
use super::header_filter::passed_on;
use super::limits::ROOM;
use super::proxied_request::ProxiedRequest;
use super::refusal::Refusal;
use super::response_scan::{LeakedSecret, ResponseScanner};
use super::run::WebRun;
use crate::client::{Client, ClientStop};
use crate::http1::limits::REQUEST_HEAD_BYTES;
use crate::http1::{BodyLength, Chunks, MalformedHttp, RequestHead, ResponseHead};
use crate::time_limit::within;
use crate::upstream::{AnswerError, Connection, ProxyHeaders};
use belljar_policy::egress::Destination;
use bytes::Buf;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use zeroize::Zeroizing;

/// The whole answer was forwarded.
pub(super) struct ForwardedAnswer {
    pub(super) status: u16,
    /// True if another request may follow on the connection.
    pub(super) keeps_alive: bool,
}

/// The answer was not forwarded completely.
pub(super) enum ForwardFailure {
    /// Nothing was sent to the client yet, so it can get a refusal.
    Refused(Refusal),
    /// The answer has begun, or the client is gone.
    Cut { status: Option<u16>, code: &'static str },
}

/// Request as it is sent.
pub(super) struct ForwardedRequest<'o, 'g> {
    pub(super) destination: &'o Destination,
    /// True if it is sent over TLS.
    pub(super) is_secure: bool,
    pub(super) filling: CredentialInjection<'g>,
    /// Headers for an upstream proxy that gets the whole URL.
    pub(super) proxy: Option<ProxyHeaders>,
}

/// Forwards a request and its answer, for as long as the policy allows it.
pub(super) async fn run<S>(
    client: &mut Client<S>,
    head: &RequestHead,
    (outgoing, mut upstream): (ForwardedRequest<'_, '_>, Connection),
    passage: &ProxiedRequest<'_>,
) -> Result<ForwardedAnswer, ForwardFailure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let times = passage.gate.run.limits.times;
    let mut policy = passage.policy.clone();
    let whole = timeout(times.call, exchange(client, head, (&outgoing, &mut upstream), passage));
    tokio::pin!(whole);
    loop {
        tokio::select! {
            // Policy changes come first: bytes that never stop would keep them from being checked.
            biased;
            // The sender of policies lives as long as the run.
            Ok(()) = policy.changed() => {
                policy.borrow_and_update();
                if !passage.is_still_allowed(outgoing.destination) {
                    return Err(ForwardFailure::Cut { status: None, code: "policy_changed" });
                }
            }
            ended = &mut whole => return ended.unwrap_or(Err(ForwardFailure::Cut { status: None, code: "too_long" })),
        }
    }
}

async fn exchange<S>(
    client: &mut Client<S>,
    head: &RequestHead,
    (outgoing, upstream): (&ForwardedRequest<'_, '_>, &mut Connection),
    passage: &ProxiedRequest<'_>,
) -> Result<ForwardedAnswer, ForwardFailure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (run, times) = (&passage.gate.run, passage.gate.run.limits.times);
    let host = outgoing.destination.host.to_string();
    let unreachable = |_| ForwardFailure::Refused(Refusal::Unreachable { host: host.clone() });
    let begun = request(head, outgoing);
    count(run, &passage.sent, begun.len() as u64, WebRun::may_send)?;
    let sent = within(times.idle, upstream.stream.write_all(&begun)).await;
    sent.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into())).map_err(unreachable)?;
    let tell = |bytes| count(run, &passage.sent, bytes, WebRun::may_send).is_ok();
    // A host that doesn't read a whole body may have answered all the same. The rest of the body is not another request.
    let is_whole = match &outgoing.filling.body {
        Some(body) => {
            tell(body.len() as u64)
                && matches!(within(times.idle, upstream.stream.write_all(body)).await, Ok(Ok(())))
        }
        None => client.pass_body(head, &mut upstream.stream, tell).await?,
    };
    if !run.may_send(0) {
        return Err(ForwardFailure::Refused(Refusal::Spent));
    }
    upstream.stream.flush().await.map_err(unreachable)?;
    let mut received = 0;
    let answer = upstream.head_counted(times.idle, |bytes| received += bytes).await;
    count(run, &passage.received, received, WebRun::may_receive)?;
    let answer = answer.map_err(|error| ForwardFailure::Refused(of_answer(&error, &host)))?;
    let noted = passage.note_answer(outgoing.destination, outgoing.proxy.as_ref(), &answer);
    noted.map_err(ForwardFailure::Refused)?;
    let guard = guard(&outgoing.filling, &answer).map_err(|LeakedSecret| {
        let host = host.clone();
        ForwardFailure::Refused(Refusal::Repeated { host })
    })?;
    let upstream_answer = UpstreamAnswer { head, answer: &answer, guard, upstream, is_whole };
    pass_back(client, upstream_answer, passage).await
}

/// Returns the scanner for the body of an answer, if there are secrets to look for. The head is scanned here.
fn guard<'f>(
    filling: &'f CredentialInjection<'_>,
    answer: &ResponseHead,
) -> Result<Option<ResponseScanner<'f>>, LeakedSecret> {
    if !filling.is_watched() {
        return Ok(None);
    }
    let is_told = filling.injected().any(|injected| injected.forms.are_in_lines(answer.headers.text()));
    // The request asked for an unencoded answer. One that is encoded can't be scanned, so it is refused.
    match is_told || !answer.is_plain() {
        true => Err(LeakedSecret),
        false => Ok(Some(ResponseScanner::of(filling.injected()))),
    }
}

/// Value of the `Host` header.
pub(crate) fn authority(Destination { host, port }: &Destination, is_secure: bool) -> String {
    let usual = if is_secure { 443 } else { 80 };
    if *port == usual { host.to_string() } else { format!("{host}:{port}") }
}

/// Head of the request as it is sent. It may contain secrets.
pub(super) fn request(head: &RequestHead, outgoing: &ForwardedRequest<'_, '_>) -> Zeroizing<Vec<u8>> {
    let filling = &outgoing.filling;
    // The buffer has room for everything: growing would leave a copy of the secrets in freed memory.
    let filled: usize =
        filling.headers.iter().flatten().map(|(name, value)| name.len() + value.len() + 4).sum();
    let query = filling.query.as_ref().map_or(0, |query| query.len());
    let introduction = outgoing.proxy.as_ref().map_or(0, |proxy| proxy.lines().len());
    let room = filled + query + introduction + (REQUEST_HEAD_BYTES << 1);
    let mut out = Zeroizing::new(Vec::with_capacity(room));
    let query = filling.query.as_ref().map(|query| query.as_str()).or(head.query.as_deref());
    let (mark, query) = query.map_or(("", ""), |query| ("?", query));
    let authority = authority(outgoing.destination, outgoing.is_secure);
    let (scheme, whole) = if outgoing.proxy.is_some() { ("http://", authority.as_str()) } else { ("", "") };
    for part in [&head.method, " ", scheme, whole, &head.path, mark, query, " HTTP/1.1\r\nhost: ", &authority]
    {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    // A run may not send headers that introduce this host to a proxy.
    let goes_on = |name: &[u8]| outgoing.proxy.as_ref().is_none_or(|proxy| !proxy.says(name));
    match &filling.headers {
        Some(headers) => {
            let headers = headers.iter().filter(|(name, _)| goes_on(name));
            headers.for_each(|(name, value)| put(&mut out, name, value));
        }
        None => {
            let headers = passed_on(&head.headers).filter(|(name, _)| goes_on(name));
            headers.for_each(|(name, value)| put(&mut out, name, value));
        }
    }
    if let Some(proxy) = &outgoing.proxy {
        out.extend_from_slice(proxy.lines());
    }
    match (head.body, &filling.body) {
        (_, Some(body)) => put(&mut out, b"content-length", body.len().to_string().as_bytes()),
        (BodyLength::Chunked, None) => put(&mut out, b"transfer-encoding", b"chunked"),
        (BodyLength::Exact(0), None) if head.header("content-length").is_none() => {}
        (BodyLength::Exact(length), None) => {
            put(&mut out, b"content-length", length.to_string().as_bytes());
        }
        (BodyLength::UntilClose, None) => {}
    }
    // The introduction is for the proxy alone: `Connection` names its headers, so the proxy doesn't forward them.
    let between = outgoing.proxy.as_ref().map(ProxyHeaders::names).unwrap_or_default();
    let between = between.iter().flat_map(|name| [", ", *name]).collect::<String>();
    put(&mut out, b"connection", format!("close{between}").as_bytes());
    out.extend_from_slice(b"\r\n");
    out
}

fn put(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Framing of an answer's body towards the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// By `Content-Length`.
    Length,
    Chunks,
    /// Until the connection is closed: for HTTP/1.0 clients, which understand no chunks, and for answers that end with their
    /// connection.
    Close,
}

/// Answer whose head has come.
struct UpstreamAnswer<'a> {
    /// Head of the request.
    head: &'a RequestHead,
    answer: &'a ResponseHead,
    /// Scanner for the body, if there are secrets to look for.
    guard: Option<ResponseScanner<'a>>,
    upstream: &'a mut Connection,
    /// True if the upstream has read the whole request.
    is_whole: bool,
}

/// Forwards an answer to its end.
async fn pass_back<S>(
    client: &mut Client<S>,
    upstream_answer: UpstreamAnswer<'_>,
    passage: &ProxiedRequest<'_>,
) -> Result<ForwardedAnswer, ForwardFailure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let UpstreamAnswer { head, answer, mut guard, upstream, is_whole } = upstream_answer;
    let (run, status) = (&passage.gate.run, answer.status);
    let cut = |code| ForwardFailure::Cut { status: Some(status), code };
    let body = if head.method == "HEAD" { BodyLength::Exact(0) } else { answer.body };
    let framing = match body {
        BodyLength::Exact(_) => Framing::Length,
        BodyLength::Chunked if head.is_1_1 => Framing::Chunks,
        BodyLength::Chunked | BodyLength::UntilClose => Framing::Close,
    };
    let keeps_alive = head.keeps_alive && is_whole && framing != Framing::Close;
    client.send(&head_back(head, answer, (framing, keeps_alive))).await.map_err(|_| cut("client_gone"))?;
    let mut incoming = BodyProgress::of(body);
    loop {
        let (payload, used) = incoming.take(&upstream.inbox).map_err(|_| cut("answer_malformed"))?;
        count(run, &passage.received, used as u64, WebRun::may_receive).map_err(|_| cut("bytes_used_up"))?;
        let is_done = incoming.is_done();
        let mut out = match (&mut guard, framing) {
            // Chunks are forwarded as they came.
            (None, Framing::Chunks) => upstream.inbox[..used].to_vec(),
            (None, _) => payload,
            (Some(guard), _) => {
                framed(guard.pass(&payload).map_err(|LeakedSecret| cut("credential_repeated"))?, framing)
            }
        };
        if is_done && let Some(guard) = guard.take() {
            let rest = guard.end().map_err(|LeakedSecret| cut("credential_repeated"))?;
            out.extend_from_slice(&framed(rest, framing));
            out.extend_from_slice(if framing == Framing::Chunks { b"0\r\n\r\n" } else { b"" });
        }
        if !out.is_empty() {
            client.send(&out).await.map_err(|_| cut("client_gone"))?;
        }
        upstream.inbox.advance(used);
        if is_done {
            return Ok(ForwardedAnswer { status, keeps_alive });
        }
        upstream.inbox.reserve(ROOM);
        match read(upstream, client, run.limits.times.idle).await {
            ReadOutcome::More => {}
            ReadOutcome::End if body == BodyLength::UntilClose => {
                let rest = guard.map_or_else(|| Ok(Vec::new()), ResponseScanner::end);
                let rest = rest.map_err(|LeakedSecret| cut("credential_repeated"))?;
                client.send(&rest).await.map_err(|_| cut("client_gone"))?;
                return Ok(ForwardedAnswer { status, keeps_alive: false });
            }
            ReadOutcome::End => return Err(cut("answer_cut")),
            ReadOutcome::Silent => return Err(cut("answer_timeout")),
            ReadOutcome::ClientGone => return Err(cut("client_gone")),
        }
    }
}

/// Head of the answer as it is forwarded.
fn head_back(head: &RequestHead, answer: &ResponseHead, (framing, keeps_alive): (Framing, bool)) -> Vec<u8> {
    let (status, is_empty) = (answer.status, head.method == "HEAD");
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(format!("HTTP/1.1 {status} \r\n").as_bytes());
    passed_on(&answer.headers).for_each(|(name, value)| put(&mut out, name, value));
    match (framing, answer.body, answer.header("content-length")) {
        (Framing::Chunks, ..) => put(&mut out, b"transfer-encoding", b"chunked"),
        (Framing::Length, BodyLength::Exact(length), _) if !is_empty && !matches!(status, 204 | 304) => {
            put(&mut out, b"content-length", length.to_string().as_bytes());
        }
        (_, _, Some(length)) if is_empty || status == 304 => put(&mut out, b"content-length", length),
        _ => {}
    }
    put(&mut out, b"connection", if keeps_alive { b"keep-alive" } else { b"close" });
    out.extend_from_slice(b"\r\n");
    out
}

/// Payload in the framing that is sent.
fn framed(payload: Vec<u8>, framing: Framing) -> Vec<u8> {
    if framing != Framing::Chunks || payload.is_empty() {
        return payload;
    }
    [format!("{:x}\r\n", payload.len()).as_bytes(), &payload, b"\r\n"].concat()
}

/// Progress of an answer's body.
enum BodyProgress {
    /// Number of bytes still to come.
    Exact(u64),
    Chunked(Chunks),
    UntilClose,
}

// === impl BodyProgress ===

impl BodyProgress {
    fn of(body: BodyLength) -> Self {
        match body {
            BodyLength::Exact(length) => Self::Exact(length),
            BodyLength::Chunked => Self::Chunked(Chunks::default()),
            BodyLength::UntilClose => Self::UntilClose,
        }
    }

    /// Returns the payload in these bytes, and the number of bytes that belong to the body.
    fn take(&mut self, bytes: &[u8]) -> Result<(Vec<u8>, usize), MalformedHttp> {
        match self {
            Self::Exact(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= here as u64;
                Ok((bytes[..here].to_vec(), here))
            }
            Self::Chunked(chunks) => {
                let mut payload = Vec::new();
                let used = chunks.pass(bytes, |range| payload.extend_from_slice(&bytes[range]))?;
                Ok((payload, used))
            }
            Self::UntilClose => Ok((bytes.to_vec(), bytes.len())),
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Exact(left) => *left == 0,
            Self::Chunked(chunks) => chunks.is_done(),
            Self::UntilClose => false,
        }
    }
}

enum ReadOutcome {
    More,
    End,
    Silent,
    ClientGone,
}

async fn read<S>(upstream: &mut Connection, client: &mut Client<S>, patience: Duration) -> ReadOutcome
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    tokio::select! {
        biased;
        read = upstream.fill(patience) => match read {
            Ok(true) => ReadOutcome::More,
            Ok(false) | Err(AnswerError::Ended(_)) => ReadOutcome::End,
            Err(_) => ReadOutcome::Silent,
        },
        () = client.gone() => ReadOutcome::ClientGone,
    }
}

fn count(
    run: &WebRun,
    counter: &std::cell::Cell<u64>,
    bytes: u64,
    may: fn(&WebRun, u64) -> bool,
) -> Result<(), ForwardFailure> {
    counter.set(counter.get() + bytes);
    if may(run, bytes) { Ok(()) } else { Err(ForwardFailure::Refused(Refusal::Spent)) }
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

// === impl ForwardFailure ===

impl From<ClientStop> for ForwardFailure {
    fn from(stop: ClientStop) -> Self {
        match stop {
            ClientStop::Gone => Self::Cut { status: None, code: "client_gone" },
            ClientStop::Faulty(fault) => Self::Refused(fault.into()),
        }
    }
}
