//! Request of a client in a sandbox, from its head to its record.

use super::answer;
use super::call;
use super::draft::CallRecordBuilder;
use super::refusal::Refusal;
use super::relay::CutReason;
use super::route::{self, Route};
use super::run::InferenceProxy;
use crate::client::{Client, ClientStop};
use crate::http1::limits::{REQUEST_BODY_BYTES, SMALL_BODY_BYTES};
use crate::http1::{BodyLength, RequestHead};
use belljar_contract::inference::{ApiDialect, Excerpt};
use tokio::io::{AsyncRead, AsyncWrite};

/// Answers all requests of one connection until it is closed.
pub(crate) async fn serve<S>(stream: S, served: &InferenceProxy)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut client = Client::new(stream, served.run.times);
    loop {
        let keeps_alive = match client.head().await {
            Ok(head) => exchange(&mut client, &head, served).await,
            Err(ClientStop::Gone) => break,
            Err(ClientStop::Faulty(fault)) => {
                let draft = CallRecordBuilder::unreadable(&served.run);
                refuse(
                    &mut client,
                    draft,
                    &fault.into(),
                    served,
                    ReplyForm { surface: ApiDialect::Openai, keeps_alive: false },
                )
                .await
            }
        };
        if !keeps_alive || !client.can_go_on() {
            break;
        }
    }
    client.close().await;
}

/// Answers one request. Returns false if no other request can follow.
async fn exchange<S>(client: &mut Client<S>, head: &RequestHead, served: &InferenceProxy) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let run = &served.run;
    let mut draft = CallRecordBuilder::new(run, head);
    let Some(route) = route::find(&head.method, &head.path) else {
        return nothing_there(client, head, draft, served).await;
    };
    let (surface, most) = match route {
        Route::Call(call) => (call.surface, REQUEST_BODY_BYTES),
        _ => (route::shape_of(&head.path), SMALL_BODY_BYTES),
    };
    let mut place = served.room.begin();
    let body = match client.body(head, most, &mut place).await {
        Ok(body) => body,
        Err(ClientStop::Gone) => {
            draft.cut(CutReason::Gone);
            return false;
        }
        Err(ClientStop::Faulty(fault)) => {
            return refuse(client, draft, &fault.into(), served, ReplyForm { surface, keeps_alive: false })
                .await;
        }
    };
    draft.request_bytes = body.len() as u64;
    let Route::Call(call) = route else {
        // Both APIs list models at the same path. Anthropic's clients name their version in every request.
        let asks_as = match head.header("anthropic-version") {
            Some(_) => ApiDialect::Anthropic,
            None => surface,
        };
        return match answer::told((route, asks_as), &run.models, &run.identity.run_id, &body) {
            Ok(told) => tell(client, &told, (draft, head.keeps_alive), served).await,
            Err(refusal) => {
                refuse(client, draft, &refusal, served, ReplyForm { surface, keeps_alive: head.keeps_alive })
                    .await
            }
        };
    };
    match call::make(client, call::ReceivedCall { head, call, body, place }, served, &mut draft).await {
        Ok(keeps_alive) => {
            draft.complete();
            keeps_alive
        }
        Err(call::CallFailure::Refused(refusal)) => {
            refuse(client, draft, &refusal, served, ReplyForm { surface, keeps_alive: head.keeps_alive })
                .await
        }
        Err(call::CallFailure::Cut(cut)) => {
            draft.cut(cut);
            false
        }
    }
}

/// Answers with what the host itself knows.
async fn tell<S>(
    client: &mut Client<S>,
    told: &str,
    (draft, keeps_alive): (CallRecordBuilder<'_>, bool),
    served: &InferenceProxy,
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    served.pace.wait().await;
    served.run.budget.audit.wait().await;
    draft.tell();
    client.send(&answer::own(200, told, (keeps_alive, false))).await.is_ok() && keeps_alive
}

/// Answers that there is nothing at that path.
async fn nothing_there<S>(
    client: &mut Client<S>,
    head: &RequestHead,
    draft: CallRecordBuilder<'_>,
    served: &InferenceProxy,
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let refusal = Refusal::NotFound { method: Excerpt::of(&head.method), path: Excerpt::of(&head.path) };
    if head.method == "HEAD" {
        // A `HEAD` request gets a head without a body.
        served.pace.wait().await;
        served.run.budget.audit.wait().await;
        draft.refuse(&refusal);
        let _ = client.send(&answer::without_body(refusal.status())).await;
        return false;
    }
    let keeps_alive = head.keeps_alive && head.body == BodyLength::Exact(0);
    refuse(client, draft, &refusal, served, ReplyForm { surface: route::shape_of(&head.path), keeps_alive })
        .await
}

/// Form of an answer of the proxy's own.
struct ReplyForm {
    /// API dialect of the error body.
    surface: ApiDialect,
    /// True if the client's connection may be kept.
    keeps_alive: bool,
}

/// Answers with the reason of a refusal, and records it.
async fn refuse<S>(
    client: &mut Client<S>,
    draft: CallRecordBuilder<'_>,
    refusal: &Refusal,
    served: &InferenceProxy,
    form: ReplyForm,
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ReplyForm { surface, keeps_alive } = form;
    served.pace.wait().await;
    served.run.budget.audit.wait().await;
    draft.refuse(refusal);
    let keeps_alive = keeps_alive && refusal.keeps_alive();
    let may_come_again = matches!(refusal, Refusal::TooManyCalls { .. } | Refusal::BudgetReserved { .. });
    let own = answer::own(refusal.status(), &refusal.body(surface), (keeps_alive, may_come_again));
    client.send(&own).await.is_ok() && keeps_alive
}
