//! Terminals (PTYs) in sessions: `/v1/worker/sessions/{session_id}/pty:…`, by requests or by a WebSocket.

use super::answer::{Refusal, json};
use super::query::{Query, whole};
use super::sessions::{check, find_allowed};
use super::{SharedApi, body};
use crate::session::Session;
use crate::session::pty::{Pty, PtyChunk};
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use belljar_contract::id::PtyId;
use belljar_contract::problem::Problems;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::problem::ProblemKind;
use belljar_contract::worker::pty::{
    ClosePtyRequest, LARGEST_INPUT_BYTES, OpenPtyRequest, PtyRequestContext, PtyResponse, ReceivePtyResponse,
    ResizePtyRequest, SendPtyRequest,
};
use belljar_sandbox::backend::TerminalSize;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of a request about a terminal, in bytes.
const LARGEST_REQUEST_BYTES: usize = 256 << 10;

/// Default and maximum time in milliseconds for which `pty:recv` waits for output.
const USUAL_WAIT_MS: u64 = 1_000;
const MOST_WAIT_MS: u64 = 30_000;

/// Interval of pings to a WebSocket client, maximum silence of the client, and maximum time for sending it a message.
const PING_EVERY: Duration = Duration::from_secs(20);
const SILENT_WITHIN: Duration = Duration::from_secs(60);
const SENT_WITHIN: Duration = Duration::from_secs(30);

/// Default command of a terminal.
const SHELL: &str = "/bin/sh";

/// `pty:open`.
pub(super) async fn open(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (wanted, session) = asked(&api, &id, request, OpenPtyRequest::parse, |wanted| &wanted.of).await?;
    let argv = wanted.command.unwrap_or_else(|| vec![SHELL.to_owned()]);
    let size = TerminalSize { rows: wanted.rows, columns: wanted.cols };
    let pty = session.open_pty((argv, wanted.cwd), size).await?;
    Ok(told(StatusCode::CREATED, &session, &pty.id))
}

/// `pty:send`.
pub(super) async fn send(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (wanted, session) = asked(&api, &id, request, SendPtyRequest::parse, |wanted| &wanted.of).await?;
    session.pty(&wanted.pty_id)?.send(&wanted.data).await?;
    Ok(told(StatusCode::OK, &session, &wanted.pty_id))
}

/// `pty:resize`.
pub(super) async fn resize(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (wanted, session) = asked(&api, &id, request, ResizePtyRequest::parse, |wanted| &wanted.of).await?;
    session.pty(&wanted.pty_id)?.resize(TerminalSize { rows: wanted.rows, columns: wanted.cols })?;
    Ok(told(StatusCode::OK, &session, &wanted.pty_id))
}

/// `pty:close`.
pub(super) async fn close(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (wanted, session) = asked(&api, &id, request, ClosePtyRequest::parse, |wanted| &wanted.of).await?;
    session.close_pty(&wanted.pty_id);
    Ok(told(StatusCode::OK, &session, &wanted.pty_id))
}

/// `pty:recv`: returns the terminal's output from byte `after` on.
pub(super) async fn receive(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let mut query = Query::parse(uri.query().unwrap_or_default())?;
    let pty_id = query.required("pty_id", "a UUID", |text| PtyId::parse(text).ok())?;
    let after = query.optional("after", "the `next` of an earlier answer", whole)?.unwrap_or_default();
    let most = format!("milliseconds, up to {MOST_WAIT_MS}");
    let wait = query.optional("wait_ms", &most, |text| whole(text).filter(|wait| *wait <= MOST_WAIT_MS))?;
    query.finish()?;
    let session = find_allowed(&api, &id)?;
    let wait = Duration::from_millis(wait.unwrap_or(USUAL_WAIT_MS));
    let PtyChunk { bytes, next, closed, exit_code } = session.pty(&pty_id)?.receive(after, wait).await;
    let own = session.request();
    let answer = ReceivePtyResponse {
        version: ApiVersion,
        task_id: own.task_id.clone(),
        session_id: own.session_id.clone(),
        pty_id,
        data_b64: STANDARD.encode(bytes),
        next,
        closed,
        exit_code,
    };
    Ok(json(StatusCode::OK, &answer))
}

/// `pty:attach`: a terminal over a WebSocket. Binary messages carry input and output. A text message from the client is
/// `{"cols": …, "rows": …}`; the node sends `{"exit_code": …}` as its last message.
pub(super) async fn attach(
    State(api): State<SharedApi>,
    Path(id): Path<String>,
    uri: Uri,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let mut query = Query::parse(uri.query().unwrap_or_default())?;
    let pty_id = query.required("pty_id", "a UUID", |text| PtyId::parse(text).ok())?;
    let after = query.optional("after", "how many bytes are there already", whole)?.unwrap_or_default();
    query.finish()?;
    let session = find_allowed(&api, &id)?;
    let pty = session.pty(&pty_id)?;
    let upgrade = upgrade.map_err(|error| {
        Refusal::new(ProblemKind::Validation, format!("this endpoint speaks WebSocket (RFC 6455): {error}"))
    })?;
    let upgrade = upgrade.max_message_size(LARGEST_INPUT_BYTES).max_frame_size(LARGEST_INPUT_BYTES);
    let (stop, one) = (api.stop.clone(), pty.attach());
    Ok(upgrade.on_upgrade(async move |socket| {
        tokio::select! {
            () = stop.cancelled() => {}
            () = one.until_replaced() => {}
            () = carry(socket, &session, &pty, after) => {}
        }
    }))
}

/// Copies between a WebSocket and a terminal, until either is closed. The terminal stays open, so a disconnected client can
/// attach again.
async fn carry(socket: WebSocket, session: &Session, pty: &Pty, after: u64) {
    let (mut to, mut from) = socket.split();
    // Input and output are independent: output flows while the client sends much input.
    tokio::select! {
        () = typed(&mut from, session, pty) => {}
        () = printed(&mut to, session, pty, after) => {}
    }
}

/// Passes the client's input to the terminal.
async fn typed(from: &mut SplitStream<WebSocket>, session: &Session, pty: &Pty) {
    // A client that sends nothing, not even a pong, is treated as gone.
    while let Ok(Some(Ok(message))) = tokio::time::timeout(SILENT_WITHIN, from.next()).await {
        let done = match message {
            Message::Binary(typed) => session.pty(&pty.id).is_ok() && pty.send(&typed).await.is_ok(),
            Message::Text(text) => size(text.as_str()).is_some_and(|size| pty.resize(size).is_ok()),
            Message::Close(_) => false,
            Message::Ping(_) | Message::Pong(_) => true,
        };
        if !done {
            return;
        }
    }
}

/// Sends the terminal's output to the client, with a ping when there is none.
async fn printed(to: &mut SplitSink<WebSocket, Message>, session: &Session, pty: &Pty, mut after: u64) {
    loop {
        let piece = pty.receive(after, PING_EVERY).await;
        after = piece.next;
        let message = match piece.bytes.is_empty() {
            true if piece.closed => None,
            true => Some(Message::Ping(Bytes::new())),
            false => Some(Message::Binary(Bytes::from(piece.bytes))),
        };
        // A client that may no longer use the terminal is disconnected.
        if session.untouched_pty(&pty.id).is_err() {
            return;
        }
        if let Some(message) = message
            && !sent(to, message).await
        {
            return;
        }
        if piece.closed {
            let last = serde_json::json!({ "exit_code": piece.exit_code }).to_string();
            if sent(to, Message::Text(last.into())).await {
                sent(to, Message::Close(None)).await;
            }
            return;
        }
    }
}

/// Returns true if the message was sent within [`SENT_WITHIN`].
async fn sent(to: &mut SplitSink<WebSocket, Message>, message: Message) -> bool {
    matches!(tokio::time::timeout(SENT_WITHIN, to.send(message)).await, Ok(Ok(())))
}

fn size(text: &str) -> Option<TerminalSize> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Size {
        cols: std::num::NonZero<u16>,
        rows: std::num::NonZero<u16>,
    }
    let Size { cols, rows } = serde_json::from_str(text).ok()?;
    Some(TerminalSize { rows: rows.get(), columns: cols.get() })
}

/// Parses a request about a terminal, and finds the session in its path. The body must not name another session.
async fn asked<T>(
    api: &SharedApi,
    id: &str,
    request: Request,
    parse: impl FnOnce(&[u8]) -> Result<T, Problems>,
    named: impl FnOnce(&T) -> &PtyRequestContext,
) -> Result<(T, Arc<Session>), Refusal> {
    let wanted = parse(&body::read(request, LARGEST_REQUEST_BYTES).await?)?;
    let session = find_allowed(api, id)?;
    let PtyRequestContext { version: _, task_id, session_id } = named(&wanted);
    check(&session, task_id.as_ref(), session_id.as_ref())?;
    Ok((wanted, session))
}

fn told(status: StatusCode, session: &Session, pty_id: &PtyId) -> Response {
    let own = session.request();
    let answer = PtyResponse {
        version: ApiVersion,
        task_id: own.task_id.clone(),
        session_id: own.session_id.clone(),
        pty_id: pty_id.clone(),
    };
    json(status, &answer)
}
