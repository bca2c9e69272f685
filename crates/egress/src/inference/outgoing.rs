//! What a provider is sent.

use super::models::{Provider, ProviderKind};
use super::route::{self, Call};
use crate::http1::RequestHead;
use crate::identity::Identity;
use crate::secret::Secret;
use std::io::IoSlice;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

/// What of a client's headers goes on: how it wants to be understood. Who it is, and everything else, is said by the host.
const PASSED_ON: &[&str] = &["accept", "anthropic-beta", "anthropic-version", "openai-beta", "user-agent"];

/// For what stands in every head: names, lengths, ends of lines.
const ROOM: usize = 1024;

/// What a client that says no version means.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// A call as it is sent.
pub(crate) struct Outgoing {
    pub(crate) head: Zeroizing<Vec<u8>>,
    pub(crate) body: Vec<u8>,
}

// === impl Outgoing ===

impl Outgoing {
    /// Sends all of it. False if nothing of it was taken: then nobody can have acted on it.
    pub(crate) async fn send<W: AsyncWrite + Unpin>(&self, upstream: &mut W) -> bool {
        let both = [IoSlice::new(&self.head), IoSlice::new(&self.body)];
        let Ok(taken) = upstream.write_vectored(&both).await else { return false };
        let head = self.head.get(taken..).unwrap_or_default();
        let body = self.body.get(taken.saturating_sub(self.head.len())..).unwrap_or_default();
        for rest in [head, body] {
            // Whoever refuses a large request may have answered before all of it was sent.
            if !rest.is_empty() && upstream.write_all(rest).await.is_err() {
                return true;
            }
        }
        let _ = upstream.flush().await;
        true
    }
}

/// The head of a call, for a body of that length.
pub(crate) fn head(
    head: &RequestHead,
    call: Call,
    (provider, length): (&Provider, usize),
    (identity, call_id): (&Identity, &str),
    secret: Option<&Secret>,
) -> Zeroizing<Vec<u8>> {
    let passed_on = || {
        PASSED_ON.iter().filter_map(|name| Some((*name, head.header(name).filter(|value| is_plain(value))?)))
    };
    let injected = injected(provider, identity, call_id);
    // All of it fits: what grows leaves a copy of the secret behind.
    let longest = ROOM
        + passed_on().map(|(_, value)| value.len()).sum::<usize>()
        + injected.iter().map(|(_, value)| value.len()).sum::<usize>()
        + secret.map_or(0, |secret| secret.expose().len())
        + provider.upstream.prefix().len()
        + provider.upstream.host().len();
    let mut bytes = Zeroizing::new(Vec::with_capacity(longest));
    let query = route::query(head.query.as_deref()).map_or(String::new(), |query| format!("?{query}"));
    let prefix = provider.upstream.prefix();
    bytes.extend_from_slice(format!("POST {prefix}{}{query} HTTP/1.1\r\n", call.path).as_bytes());
    let mut put = |name: &str, value: &[u8]| {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    };
    put("host", provider.upstream.host().as_bytes());
    put("content-type", b"application/json");
    put("content-length", length.to_string().as_bytes());
    // What passes is looked at.
    put("accept-encoding", b"identity");
    for (name, value) in passed_on() {
        put(name, value);
    }
    for (name, value) in &injected {
        put(name, value.as_bytes());
    }
    if provider.kind == ProviderKind::Anthropic && head.header("anthropic-version").is_none() {
        put("anthropic-version", ANTHROPIC_VERSION.as_bytes());
    }
    if let Some(secret) = secret {
        match provider.kind {
            ProviderKind::Anthropic => put("x-api-key", secret.expose()),
            ProviderKind::LiteLlm | ProviderKind::OpenAi | ProviderKind::Ollama => {
                put("authorization", &Zeroizing::new([b"Bearer ", secret.expose()].concat()));
            }
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// What says who calls (`spec/2` invariant 10). Only LiteLLM understands it; for the others it stands in the body.
fn injected(provider: &Provider, identity: &Identity, call_id: &str) -> Vec<(&'static str, String)> {
    match provider.kind {
        ProviderKind::LiteLlm => vec![
            ("x-litellm-call-id", call_id.to_owned()),
            ("x-litellm-end-user-id", identity.billing_account_id.clone()),
            ("x-litellm-spend-logs-metadata", identity.metadata()),
        ],
        ProviderKind::OpenAi => vec![("x-client-request-id", call_id.to_owned())],
        ProviderKind::Anthropic | ProviderKind::Ollama => Vec::new(),
    }
}

fn is_plain(value: &[u8]) -> bool {
    value.len() <= 1024 && value.iter().all(|byte| matches!(byte, 0x20..=0x7e))
}
