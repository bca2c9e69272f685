//! Call that a provider answers.

use super::answer;
use super::draft::CallRecordBuilder;
use super::models::{Model, Provider};
use super::observe::{AnswerFormat, Observer};
use super::outgoing::{CallOrigin, OutgoingCall};
use super::refusal::Refusal;
use super::relay::{CutReason, Framing, Relay};
use super::request::{self, PreparedRequest};
use super::route::Call;
use super::run::{InferenceProxy, Run};
use super::token_demand::Demand;
use crate::client::{Client, ClientStop};
use crate::credential::InjectedSecret;
use crate::http1::limits::Times;
use crate::http1::{BodyLength, RequestHead, ResponseHead};
use crate::leak_scan::SecretForms;
use crate::memory_quota::MemoryReservation;
use crate::time_limit::within;
use crate::upstream::{AnswerError, Connection};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};

/// Reason why a call has no answer, or an answer that was not forwarded to its end.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// Nothing was forwarded yet, so the client can get a refusal.
    Refused(Refusal),
    /// The answer was under way, or the client is gone.
    Cut(CutReason),
}

impl From<Refusal> for CallFailure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ClientStop> for CallFailure {
    fn from(stop: ClientStop) -> Self {
        match stop {
            ClientStop::Gone => Self::Cut(CutReason::Gone),
            ClientStop::Faulty(fault) => Self::Refused(fault.into()),
        }
    }
}

impl From<CutReason> for CallFailure {
    fn from(cut: CutReason) -> Self {
        Self::Cut(cut)
    }
}

/// Call that a client has sent.
pub(crate) struct ReceivedCall<'r> {
    /// Head of its request.
    pub(crate) head: &'r RequestHead,
    pub(crate) call: Call,
    pub(crate) body: Vec<u8>,
    /// Memory that the body takes.
    pub(crate) place: MemoryReservation<'r>,
}

/// Answer of a provider, and its connection.
struct ProviderAnswer<'a> {
    head: &'a ResponseHead,
    connection: &'a mut Connection,
}

/// Request, and the secrets that must not come back.
#[derive(Clone, Copy)]
struct PreparedCall<'a> {
    head: &'a RequestHead,
    call: Call,
    model: &'a Model,
    streams: bool,
    forms: &'a SecretForms,
}

/// Maximum size of an error's payload that is forwarded, in bytes.
const LARGEST_ERROR: usize = 1 << 20;

/// Size in bytes from which a body is scanned on another thread, so that other calls go on meanwhile.
const LARGE_BODY: usize = 256 << 10;

/// Makes a call and forwards the answer. Returns true if another request may follow on the client's connection.
pub(crate) async fn make<S>(
    client: &mut Client<S>,
    received: ReceivedCall<'_>,
    served: &InferenceProxy,
    draft: &mut CallRecordBuilder<'_>,
) -> Result<bool, CallFailure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ReceivedCall { head, call, body, place } = received;
    let run = &served.run;
    recordable(run).await?;
    let PreparedRequest { body, model, streams } = prepare(body, call, run).await?;
    draft.prepared(&model, streams);
    let reserved = reserve(body, (call, &model), run, draft);
    let body = tokio::select! {
        biased;
        reserved = reserved => reserved?,
        () = client.gone() => return Err(CutReason::Gone.into()),
    };
    let injected = injected(&model.provider).await?;
    let origin = CallOrigin { client: head, call, identity: &run.identity, call_id: draft.call_id() };
    let outgoing = OutgoingCall::new(&origin, &model.provider, injected.clone(), body);
    draft.said(outgoing.body());
    let nothing = SecretForms::of(None);
    let forms = injected.as_ref().map_or(&nothing, |injected| &injected.forms);
    let asked = PreparedCall { head, call, model: &model, streams, forms };
    draft.begin_on_disk().await?;
    let exchanged = async {
        let ask = ask(&model.provider, served, &outgoing, draft);
        let (mut connection, answer) = tokio::select! {
            biased;
            asked = ask => asked?,
            () = client.gone() => return Err(CutReason::Gone.into()),
        };
        // The request isn't needed any more.
        drop((outgoing, place));
        check(&answer, asked, draft)?;
        let upstream = ProviderAnswer { head: &answer, connection: &mut connection };
        let keeps_alive = match answer.status {
            400.. => pass_on_error(client, upstream, asked, served, draft).await?,
            _ => pass_on(client, upstream, asked, &run.times, draft).await?,
        };
        if answer.keeps_alive {
            served.pool.give_back(&model.provider.upstream, connection);
        }
        Ok(keeps_alive)
    };
    let ended = {
        // Pinned in place: it is large, and would be copied otherwise.
        tokio::pin!(exchanged);
        within(run.times.call, exchanged).await
    };
    match ended {
        Ok(exchanged) => exchanged,
        Err(_) if draft.has_begun() => Err(CutReason::Silent.into()),
        Err(_) => Err(Refusal::OutOfTime.into()),
    }
}

/// Waits until the call can be recorded within the rate limit and the quota of the run's records.
async fn recordable(run: &Run) -> Result<(), Refusal> {
    run.budget.audit.wait().await;
    if !run.budget.audit.has_left() {
        return Err(Refusal::AuditQuota);
    }
    const PATIENCE: Duration = Duration::from_secs(5);
    const STEP: Duration = Duration::from_millis(5);
    let since = Instant::now();
    loop {
        match (run.ledger.is_sound(), run.ledger.has_room()) {
            (true, true) => return Ok(()),
            (true, false) if since.elapsed() < PATIENCE => tokio::time::sleep(STEP).await,
            _ => return Err(Refusal::NotRecorded),
        }
    }
}

async fn prepare(body: Vec<u8>, call: Call, run: &Arc<Run>) -> Result<PreparedRequest, Refusal> {
    let run = Arc::clone(run);
    let bytes = body.len();
    beside(bytes, move || request::prepare(body, call, &run.models, &run.identity)).await
}

/// Reserves the maximum of the call. Returns the body, with the output limit that the budget allows.
async fn reserve(
    body: Vec<u8>,
    (call, model): (Call, &Model),
    run: &Run,
    draft: &mut CallRecordBuilder<'_>,
) -> Result<Vec<u8>, Refusal> {
    let kind = model.provider.kind;
    if !run.budget.limits_size(model.price()) {
        draft.reserve(&Demand::unread(call)).await?;
        return Ok(body);
    }
    let bytes = body.len();
    let file_tokens = run.budget.file_tokens();
    let read = move || Demand::read(&body, (call, kind), file_tokens).map(|demand| (demand, body));
    let (demand, body) = beside(bytes, read).await?;
    let Some(output) = draft.reserve(&demand).await? else { return Ok(body) };
    let limit = move || {
        let changed = demand.limit(&body, (call, kind), output)?;
        Ok(changed.unwrap_or(body))
    };
    beside(bytes, limit).await
}

/// Runs work on a body of that size in bytes. A large one is handled on another thread, while other calls go on.
async fn beside<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    if bytes < LARGE_BODY {
        return work();
    }
    // The work doesn't panic. If it did, only this call would fail.
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Refusal::TooSlow))
}

/// Checks an answer before anything of it is forwarded.
fn check(
    answer: &ResponseHead,
    asked: PreparedCall<'_>,
    draft: &mut CallRecordBuilder<'_>,
) -> Result<(), Refusal> {
    let is_harmless = !asked.forms.are_in_lines(answer.headers.text());
    draft.answered(answer, is_harmless);
    if answer.status == 401
        && let Some(credential) = &asked.model.provider.credential
    {
        // The credential may have been replaced meanwhile; the next call reads it again.
        credential.forget();
    }
    if !is_harmless {
        return Err(Refusal::Withheld { status: answer.status });
    }
    // The request asked for an unencoded answer. One that is encoded can't be scanned, so it is refused.
    match answer.is_plain() {
        true => Ok(()),
        false => Err(Refusal::BadAnswer),
    }
}

/// Returns the provider's credential. The sandbox doesn't learn why it can't be obtained.
async fn injected(provider: &Arc<Provider>) -> Result<Option<Arc<InjectedSecret>>, Refusal> {
    let Some(credential) = &provider.credential else { return Ok(None) };
    let got = credential.get_beside().await;
    got.map(Some).map_err(|_| Refusal::NoCredential)
}

/// Sends the call and waits for the head of the answer.
async fn ask(
    provider: &Provider,
    served: &InferenceProxy,
    outgoing: &OutgoingCall,
    draft: &mut CallRecordBuilder<'_>,
) -> Result<(Connection, ResponseHead), Refusal> {
    let times = &served.run.times;
    loop {
        let mut connection = match within(times.connect, served.pool.take(&provider.upstream)).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(Refusal::from(error)),
            Err(_) => return Err(Refusal::OutOfTime),
        };
        let is_sent = within(times.idle, outgoing.send(&mut connection.stream)).await;
        if matches!(is_sent, Ok(false)) {
            // An idle connection may have been closed while it waited. Nothing was accepted, so the call can't take effect
            // twice.
            match connection.is_used {
                true => continue,
                false => return Err(Refusal::Unreachable),
            }
        }
        draft.sent();
        is_sent.map_err(|_| Refusal::OutOfTime)?;
        return match connection.head(times.idle).await {
            Ok(answer) => Ok((connection, answer)),
            // The provider hung up without a byte.
            Err(AnswerError::Ended(_)) if connection.inbox.is_empty() => Err(Refusal::Unreachable),
            Err(error) => Err(error.into()),
        };
    }
}

/// Forwards an error answer once all of it has come. The run's memory quota counts it meanwhile.
async fn pass_on_error<S>(
    client: &mut Client<S>,
    upstream: ProviderAnswer<'_>,
    asked: PreparedCall<'_>,
    served: &InferenceProxy,
    draft: &mut CallRecordBuilder<'_>,
) -> Result<bool, CallFailure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ProviderAnswer { head: answer, connection } = upstream;
    let withheld = || Refusal::Withheld { status: answer.status };
    let most = match answer.body {
        BodyLength::Exact(length) => usize::try_from(length).unwrap_or(LARGEST_ERROR).min(LARGEST_ERROR),
        BodyLength::Chunked | BodyLength::UntilClose => LARGEST_ERROR,
    };
    let mut place = served.room.begin();
    place.hold(most).await;
    let body = match connection.body(answer.body, LARGEST_ERROR, served.run.times.idle).await {
        Err(AnswerError::TooLarge) => return Err(withheld().into()),
        body => body.map_err(Refusal::from)?,
    };
    if asked.forms.are_told_by(&body) {
        return Err(withheld().into());
    }
    draft.response_bytes = body.len() as u64;
    draft.heard(&body);
    let length = BodyLength::Exact(draft.response_bytes);
    let mut bytes = answer::head_of(answer, length, asked.head.keeps_alive);
    bytes.extend_from_slice(&body);
    client.send(&bytes).await?;
    draft.begin();
    Ok(asked.head.keeps_alive)
}

/// Forwards an answer as it comes. Returns whether another request may follow; an error unless the whole answer came and was
/// scanned.
async fn pass_on<S>(
    client: &mut Client<S>,
    upstream: ProviderAnswer<'_>,
    asked: PreparedCall<'_>,
    times: &Times,
    draft: &mut CallRecordBuilder<'_>,
) -> Result<bool, CallFailure>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ProviderAnswer { head: answer, connection } = upstream;
    let framing = Framing::of(answer.body, asked.head.is_1_1);
    let keeps_alive = asked.head.keeps_alive && framing != Framing::Bare;
    let head = answer::head_of(answer, framing.length(answer.body), keeps_alive);
    let shape = if asked.streams { AnswerFormat::Lines } else { AnswerFormat::Whole };
    let observer = Observer::new(asked.call.surface, shape);
    let mut relay = Relay::new((answer.body, framing), asked.forms.watch(), observer, draft);
    let passed = relay.run(head, client, connection, times.idle).await;
    drop(relay);
    match passed {
        Err(CutReason::Echo) if !draft.has_begun() => Err(Refusal::Withheld { status: answer.status }.into()),
        passed => Ok(passed.map(|()| keeps_alive)?),
    }
}
