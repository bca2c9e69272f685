//! Request that is sent to a provider.

use super::models::{Provider, ProviderKind};
use super::route::{self, Call};
use crate::credential::InjectedSecret;
use crate::http1::RequestHead;
use crate::identity::Identity;
use std::io::IoSlice;
use std::sync::Arc;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Client headers that are forwarded: the formats that it understands. The host sets identity and everything else.
const PASSED_ON: &[&str] = &["accept", "anthropic-beta", "anthropic-version", "openai-beta", "user-agent"];

/// Version for a client that names none.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Call as it is sent.
pub(crate) struct OutgoingCall {
    /// Head, up to the secret if there is one. The secret is sent from its own buffer: a copy would have to be wiped.
    head: Vec<u8>,
    injected: Option<Arc<InjectedSecret>>,
    body: Vec<u8>,
}

/// Bytes reserved for the fixed parts of a head: names, lengths, line ends.
const ROOM: usize = 768;

/// Call of a client, and the identity that it is made with.
#[derive(Clone, Copy)]
pub(crate) struct CallOrigin<'o> {
    /// Head of the client's request.
    pub(crate) client: &'o RequestHead,
    pub(crate) call: Call,
    pub(crate) identity: &'o Identity,
    pub(crate) call_id: &'o str,
}

// === impl OutgoingCall ===

impl OutgoingCall {
    /// Makes the provider request from a client's call.
    pub(crate) fn new(
        origin: &CallOrigin<'_>,
        provider: &Provider,
        injected: Option<Arc<InjectedSecret>>,
        body: Vec<u8>,
    ) -> Self {
        let mut head = head(origin, provider, body.len());
        if injected.is_some() {
            head.extend_from_slice(match provider.kind {
                ProviderKind::Anthropic => b"x-api-key: ",
                ProviderKind::LiteLlm | ProviderKind::OpenAi | ProviderKind::Ollama => {
                    b"authorization: Bearer "
                }
            });
        }
        Self { head, injected, body }
    }

    /// Returns the body, which may be recorded.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Sends the request. Returns false if no byte was accepted: then it can't have had an effect.
    pub(crate) async fn send<W: AsyncWrite + Unpin>(&self, upstream: &mut W) -> bool {
        let (secret, end): (&[u8], &[u8]) = match &self.injected {
            Some(injected) => (injected.secret.expose(), b"\r\n\r\n"),
            None => (b"", b"\r\n"),
        };
        let mut parts = [&self.head, secret, end, &self.body].map(IoSlice::new);
        let mut left = &mut parts[..];
        let Ok(taken) = upstream.write_vectored(left).await else { return false };
        IoSlice::advance_slices(&mut left, taken);
        while !left.is_empty() {
            match upstream.write_vectored(left).await {
                // A provider that refuses a large request may have answered before all of it was sent.
                Ok(0) | Err(_) => return true,
                Ok(taken) => IoSlice::advance_slices(&mut left, taken),
            }
        }
        let _ = upstream.flush().await;
        true
    }
}

/// Returns the head of a call with a body of that length, without its end.
fn head(origin: &CallOrigin<'_>, provider: &Provider, length: usize) -> Vec<u8> {
    let CallOrigin { client, call, identity, call_id } = *origin;
    let (prefix, host) = (provider.upstream.prefix(), provider.upstream.host());
    let mut head = Vec::with_capacity(ROOM);
    let mark = route::query(client.query.as_deref()).map_or(["", ""], |query| ["?", query]);
    for part in ["POST ", prefix, call.path, mark[0], mark[1], " HTTP/1.1\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    let mut put = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            head.extend_from_slice(part);
        }
    };
    put("host", host.as_bytes());
    put("content-type", b"application/json");
    put("content-length", length.to_string().as_bytes());
    // The answer is scanned, so it must come unencoded.
    put("accept-encoding", b"identity");
    for name in PASSED_ON {
        if let Some(value) = client.header(name).filter(|value| is_plain(value)) {
            put(name, value);
        }
    }
    // Identity of the caller (`docs/contracts/agents.md#a1.10`). Only LiteLLM understands all headers; for the others it is
    // in the body.
    match provider.kind {
        ProviderKind::LiteLlm => {
            put("x-litellm-call-id", call_id.as_bytes());
            put("x-litellm-end-user-id", identity.billing_account_id.as_bytes());
            put("x-litellm-spend-logs-metadata", identity.metadata().as_bytes());
        }
        ProviderKind::OpenAi => put("x-client-request-id", call_id.as_bytes()),
        ProviderKind::Anthropic if client.header("anthropic-version").is_none() => {
            put("anthropic-version", ANTHROPIC_VERSION.as_bytes());
        }
        ProviderKind::Anthropic | ProviderKind::Ollama => {}
    }
    head
}

fn is_plain(value: &[u8]) -> bool {
    value.len() <= 1024 && value.iter().all(|byte| matches!(byte, 0x20..=0x7e))
}
