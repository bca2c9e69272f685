//! One request of somebody in a sandbox, from its head to its record.

use super::answer;
use super::call;
use super::client::{Client, Stop};
use super::draft::Draft;
use super::refusal::Refusal;
use super::relay::Cut;
use super::room::Room;
use super::route::{self, Route};
use super::run::Run;
use crate::http1::RequestHead;
use crate::upstream::Pool;
use belljar_contract::inference::Excerpt;
use tokio::io::{AsyncRead, AsyncWrite};

/// Answers everything that comes by one connection, until it is closed.
pub(crate) async fn serve<S>(stream: S, run: &Run, pool: &Pool, room: &Room)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut client = Client::new(stream);
    loop {
        let keeps_alive = match client.head().await {
            Ok(head) => exchange(&mut client, &head, run, (pool, room)).await,
            Err(Stop::Gone) => break,
            Err(Stop::Refused(refusal)) => {
                let draft = Draft::unreadable(run);
                refuse(&mut client, draft, &refusal, (&Route::Health, "", false)).await
            }
        };
        if !keeps_alive {
            break;
        }
    }
    client.close().await;
}

/// Answers one request. False if no other can follow.
async fn exchange<S>(
    client: &mut Client<S>,
    head: &RequestHead,
    run: &Run,
    (pool, room): (&Pool, &Room),
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut draft = Draft::new(run, head);
    if head.method == "HEAD" {
        // Its answer has no body, and nothing here is asked for that way: said with a head alone.
        let refusal = Refusal::NotFound { method: Excerpt::of(&head.method), path: Excerpt::of(&head.path) };
        draft.refuse(&refusal);
        let _ = client.send(&answer::without_body(refusal.status())).await;
        return false;
    }
    let found = route::find(&head.method, &head.path);
    let Some(route) = found else {
        let (method, path) = (Excerpt::of(&head.method), Excerpt::of(&head.path));
        let refusal = Refusal::NotFound { method, path };
        let keeps_alive = head.keeps_alive && head.body == crate::http1::BodyLength::Exact(0);
        return refuse(client, draft, &refusal, (&Route::Health, &head.path, keeps_alive)).await;
    };
    // Until the answer is there.
    let mut place = room.begin();
    let body = match client.body(head, &mut place).await {
        Ok(body) => body,
        Err(Stop::Gone) => {
            draft.cut(Cut::Gone);
            return false;
        }
        Err(Stop::Refused(refusal)) => {
            return refuse(client, draft, &refusal, (&route, &head.path, false)).await;
        }
    };
    draft.request_bytes = body.len() as u64;
    let Route::Call(call) = route else {
        return match answer::told(route, &run.models, &run.identity.run_id, &body) {
            Ok(told) => {
                draft.tell();
                client.send(&answer::own(200, &told, (head.keeps_alive, false))).await.is_ok()
                    && head.keeps_alive
            }
            Err(refusal) => refuse(client, draft, &refusal, (&route, &head.path, head.keeps_alive)).await,
        };
    };
    match call::make(client, (head, call), body, (run, pool), &mut draft).await {
        Ok(keeps_alive) => {
            draft.complete();
            keeps_alive
        }
        Err(call::Failed::Refused(refusal)) => {
            refuse(client, draft, &refusal, (&route, &head.path, head.keeps_alive)).await
        }
        Err(call::Failed::Cut(cut)) => {
            draft.cut(cut);
            false
        }
    }
}

/// Says why there is no answer, and writes it down.
async fn refuse<S>(
    client: &mut Client<S>,
    draft: Draft<'_>,
    refusal: &Refusal,
    (route, path, keeps_alive): (&Route, &str, bool),
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let body = match route {
        Route::Call(call) => refusal.body(call.surface),
        _ => refusal.body_at(path),
    };
    draft.refuse(refusal);
    let keeps_alive = keeps_alive && refusal.keeps_alive();
    client
        .send(&answer::own(
            refusal.status(),
            &body,
            (keeps_alive, matches!(refusal, Refusal::TooManyCalls { .. })),
        ))
        .await
        .is_ok()
        && keeps_alive
}
