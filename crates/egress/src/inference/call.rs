//! A call that a provider answers.

use super::answer;
use super::client::{Client, Stop};
use super::draft::Draft;
use super::models::Provider;
use super::observe::{Observer, Shape};
use super::outgoing;
use super::refusal::Refusal;
use super::relay::{Cut, Relay};
use super::request::{self, Prepared};
use super::route::Call;
use super::run::Run;
use crate::credential::{Credential, Injected};
use crate::echo::Forms;
use crate::http1::limits::{CALL_TIME, CONNECT_TIME, IDLE_TIME, RESPONSE_HEAD_BYTES};
use crate::http1::{BodyLength, Chunks, RequestHead, ResponseHead, head};
use crate::upstream::{Connection, Pool};
use bytes::Buf;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Why a call has no answer, or none that was passed on to its end.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Nothing was passed on yet: it can be said why.
    Refused(Refusal),
    /// The answer was under way, or there is nobody to tell.
    Cut(Cut),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Gone => Self::Cut(Cut::Gone),
            Stop::Refused(refusal) => Self::Refused(refusal),
        }
    }
}

impl From<Cut> for Failed {
    fn from(cut: Cut) -> Self {
        Self::Cut(cut)
    }
}

/// What is asked, and what must not come back.
#[derive(Clone, Copy)]
struct Asked<'a> {
    prepared: &'a Prepared,
    call: Call,
    forms: &'a Forms,
}

/// The largest error that is passed on: whole, so that it can be looked through.
const LARGEST_ERROR: usize = 256 << 10;

/// Makes a call, and passes the answer on. Whether another request may follow on the client's connection.
pub(crate) async fn make<S>(
    client: &mut Client<S>,
    (head, call): (&RequestHead, Call),
    body: Vec<u8>,
    (run, pool): (&Run, &Pool),
    draft: &mut Draft<'_>,
) -> Result<bool, Failed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if !run.ledger.is_sound() {
        return Err(Refusal::NotRecorded.into());
    }
    let prepared = request::prepare(body, call, &run.models, &run.identity)?;
    draft.prepared(&prepared);
    let reservation = run.budget.begin()?;
    let provider = &prepared.model.provider;
    let injected = injected(provider).await?;
    let secret = injected.as_ref().map(|injected| &injected.secret);
    let bytes = outgoing::write(head, call, &prepared, (&run.identity, draft.call_id()), secret);
    let nothing = Forms::of(None);
    let forms = injected.as_ref().map_or(&nothing, |injected| &injected.forms);
    let exchanged = async {
        let (mut connection, answer) = ask(client, provider, pool, &bytes).await?;
        let is_harmless = !forms_are_in(forms, &answer);
        draft.answered(&answer, is_harmless);
        if answer.status == 401
            && let Some(credential) = &provider.credential
        {
            // It may have been replaced meanwhile; the next call asks for it again.
            credential.forget();
        }
        if !is_harmless {
            return Err(Refusal::Withheld { status: answer.status }.into());
        }
        let ends_by_closing = answer.status < 400 && answer.body == BodyLength::UntilClose;
        let keeps_alive = head.keeps_alive && !ends_by_closing;
        let asked = Asked { prepared: &prepared, call, forms };
        let whole = pass_on(client, (&answer, keeps_alive), &mut connection, asked, draft).await;
        if whole.is_ok() && answer.keeps_alive {
            pool.give_back(&provider.upstream, connection);
        }
        whole.map(|()| keeps_alive)
    };
    let exchanged = timeout(CALL_TIME, exchanged).await;
    reservation.spend(&draft.usage);
    match exchanged {
        Ok(exchanged) => exchanged,
        Err(_) if draft.has_begun() => Err(Cut::Silent.into()),
        Err(_) => Err(Refusal::OutOfTime.into()),
    }
}

/// What the provider wants to see. Why there is none is not for whoever is in a sandbox.
async fn injected(provider: &Arc<Provider>) -> Result<Option<Arc<Injected>>, Refusal> {
    let Some(credential) = &provider.credential else { return Ok(None) };
    let got = match credential.takes_time() {
        false => credential.get(),
        true => {
            let provider = Arc::clone(provider);
            // Other calls go on meanwhile.
            let asked =
                tokio::task::spawn_blocking(move || provider.credential.as_ref().map(Credential::get));
            asked.await.ok().flatten().ok_or(Refusal::NoCredential)?
        }
    };
    got.map(Some).map_err(|_| Refusal::NoCredential)
}

fn forms_are_in(forms: &Forms, answer: &ResponseHead) -> bool {
    answer.headers.iter().any(|header| forms.is_in(&header.value) || forms.is_in(header.name.as_bytes()))
}

/// Sends the call and waits for the head of its answer.
async fn ask<S>(
    client: &mut Client<S>,
    provider: &Provider,
    pool: &Pool,
    bytes: &[u8],
) -> Result<(Connection, ResponseHead), Failed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = match timeout(CONNECT_TIME, pool.take(&provider.upstream)).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return Err(Refusal::from(error).into()),
        Err(_) => return Err(Refusal::OutOfTime.into()),
    };
    let answered = async {
        match timeout(IDLE_TIME, connection.stream.write_all(bytes)).await {
            // Whoever refuses a large request may have answered before all of it was sent.
            Ok(Ok(()) | Err(_)) => {}
            Err(_) => return Err(Refusal::OutOfTime),
        }
        read_head(&mut connection).await
    };
    let answer = tokio::select! {
        biased;
        answer = answered => answer?,
        () = client.gone() => return Err(Cut::Gone.into()),
    };
    Ok((connection, answer))
}

/// The head of an answer, behind any that only says to go on.
async fn read_head(connection: &mut Connection) -> Result<ResponseHead, Refusal> {
    loop {
        if let Some(end) = head::end(&connection.inbox) {
            let parsed = ResponseHead::parse(connection.inbox.get(..end).unwrap_or_default());
            connection.inbox.advance(end);
            match parsed.map_err(|_| Refusal::BadAnswer)? {
                // Nobody has asked for another protocol.
                ResponseHead { status: 101, .. } => return Err(Refusal::BadAnswer),
                ResponseHead { status: 100..=199, .. } => continue,
                answer => return Ok(answer),
            }
        }
        if connection.inbox.len() > RESPONSE_HEAD_BYTES {
            return Err(Refusal::BadAnswer);
        }
        match timeout(IDLE_TIME, connection.stream.read_buf(&mut connection.inbox)).await {
            Ok(Ok(0) | Err(_)) if connection.inbox.is_empty() => return Err(Refusal::Unreachable),
            Ok(Ok(0) | Err(_)) => return Err(Refusal::BadAnswer),
            Ok(Ok(_)) => {}
            Err(_) => return Err(Refusal::OutOfTime),
        }
    }
}

/// Passes an answer on as it comes; an error only when all of it is there and was looked through.
async fn pass_on<S>(
    client: &mut Client<S>,
    (answer, keeps_alive): (&ResponseHead, bool),
    connection: &mut Connection,
    asked: Asked<'_>,
    draft: &mut Draft<'_>,
) -> Result<(), Failed>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if answer.status >= 400 {
        let body = whole_error(answer, connection).await?;
        if asked.forms.is_in(&body) {
            return Err(Refusal::Withheld { status: answer.status }.into());
        }
        draft.begin();
        draft.response_bytes = body.len() as u64;
        let mut bytes = answer::head_of(answer, BodyLength::Exact(draft.response_bytes), keeps_alive);
        bytes.extend_from_slice(&body);
        return Ok(client.send(&bytes).await?);
    }
    let shape = if asked.prepared.streams { Shape::Lines } else { Shape::Whole };
    let observer = Observer::new(asked.call.surface, shape);
    let mut relay = Relay::new(answer.body, asked.forms.watch(), observer);
    draft.begin();
    let passed = relay.run(answer::head_of(answer, answer.body, keeps_alive), client, connection).await;
    draft.response_bytes = relay.bytes;
    let has_begun = relay.has_begun;
    draft.spent(relay.finish(), answer);
    match passed {
        Err(Cut::Echo) if !has_begun => Err(Refusal::Withheld { status: answer.status }.into()),
        passed => Ok(passed?),
    }
}

/// The payload of an error.
async fn whole_error(answer: &ResponseHead, connection: &mut Connection) -> Result<Vec<u8>, Refusal> {
    let withheld = || Refusal::Withheld { status: answer.status };
    let (mut body, mut chunks) = (Vec::new(), Chunks::default());
    loop {
        let inbox = &mut connection.inbox;
        let used = match answer.body {
            BodyLength::Chunked => chunks
                .pass(inbox, |range| body.extend_from_slice(&inbox[range]))
                .map_err(|_| Refusal::BadAnswer)?,
            BodyLength::Exact(length) => {
                let left = length - body.len() as u64;
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(inbox.len());
                body.extend_from_slice(&inbox[..here]);
                here
            }
            BodyLength::UntilClose => {
                body.extend_from_slice(inbox);
                inbox.len()
            }
        };
        inbox.advance(used);
        let is_whole = match answer.body {
            BodyLength::Chunked => chunks.is_done(),
            BodyLength::Exact(length) => body.len() as u64 == length,
            BodyLength::UntilClose => false,
        };
        if body.len() > LARGEST_ERROR {
            return Err(withheld());
        }
        if is_whole {
            return Ok(body);
        }
        match timeout(IDLE_TIME, connection.stream.read_buf(inbox)).await {
            Ok(Ok(0)) if answer.body == BodyLength::UntilClose => return Ok(body),
            Ok(Ok(0) | Err(_)) => return Err(Refusal::BadAnswer),
            Ok(Ok(_)) => {}
            Err(_) => return Err(Refusal::OutOfTime),
        }
    }
}
