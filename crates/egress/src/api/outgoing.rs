//! Checks a call and writes the head of its request.

use super::call::ApiCall;
use super::config::{ApiConnection, CredentialPlacement};
use super::error::ApiError;
use crate::credential::InjectedSecret;
use crate::upstream::ProxyHeaders;
use crate::web::{authority_of, encoded};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// Headers that a caller may set. Ranges are left out: an answer in parts could repeat a credential so that no part has all of
/// it.
const FROM_CALLER: [&str; 8] = [
    "accept",
    "accept-language",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "prefer",
];

/// Maximum size of a call's body in bytes: 4 MiB.
const MOST_BODY: usize = 4 << 20;

const MOST_TARGET: usize = 8 << 10;
const MOST_HEADER: usize = 1 << 10;

/// Refuses what no request may contain.
pub(super) fn check(call: &ApiCall) -> Result<(), ApiError> {
    let ApiCall { method, path, query, headers, body, .. } = call;
    let invalid = |what, why| Err(ApiError::Invalid { what, why });
    let is_graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return invalid("the method", "it must be a word in upper case");
    }
    if !path.starts_with('/') || !is_graphic(path) || path.contains('?') || path.len() > MOST_TARGET {
        return invalid("the path", "it must begin with a slash, and invisible characters must be encoded");
    }
    if query.as_ref().is_some_and(|query| !is_graphic(query) || query.len() > MOST_TARGET) {
        return invalid("the query", "invisible characters must be encoded");
    }
    if body.len() > MOST_BODY {
        return invalid("the body", "it is larger than 4 MiB");
    }
    for (name, value) in headers {
        if !FROM_CALLER.contains(&name.as_str()) {
            return invalid("a header", "callers can't set it");
        }
        let is_plain = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if !is_plain || value.len() > MOST_HEADER {
            return invalid("a header", "it must be at most 1 KiB of visible ASCII");
        }
    }
    Ok(())
}

/// Returns the head of the request. It may contain a secret. A proxy that gets the request itself gets its whole URL.
pub(super) fn head(
    (connection, call): (&ApiConnection, &ApiCall),
    path: &str,
    injected: Option<&InjectedSecret>,
    proxy: Option<&ProxyHeaders>,
) -> Zeroizing<Vec<u8>> {
    let placement = injected.map(|_| &connection.placement);
    let secret = injected.map(|injected| injected.secret.expose()).unwrap_or_default();
    let mut head =
        Zeroizing::new(Vec::with_capacity(2 * MOST_TARGET + FROM_CALLER.len() * MOST_HEADER + (64 << 10)));
    let authority = authority_of(&connection.destination, connection.is_secure);
    let origin = proxy.map(|_| format!("http://{authority}")).unwrap_or_default();
    for part in [&call.method, " ", &origin, path] {
        head.extend_from_slice(part.as_bytes());
    }
    let mut mark: &[u8] = b"?";
    if let Some(query) = call.query.as_ref().filter(|query| !query.is_empty()) {
        head.extend_from_slice(&[mark, query.as_bytes()].concat());
        mark = b"&";
    }
    if let Some(CredentialPlacement::Query(name)) = placement {
        let encoded = Zeroizing::new(encoded(secret, b""));
        for part in [mark, name.as_bytes(), b"=", encoded.as_bytes()] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(b" HTTP/1.1\r\n");
    let mut put = |name: &str, value: &[&[u8]]| {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        value.iter().for_each(|part| head.extend_from_slice(part));
        head.extend_from_slice(b"\r\n");
    };
    put("host", &[authority.as_bytes()]);
    put("user-agent", &[b"belljar"]);
    // The answer is scanned, so it must come unencoded.
    put("accept-encoding", &[b"identity"]);
    for (name, value) in &call.headers {
        put(name, &[value.as_bytes()]);
    }
    match placement {
        Some(CredentialPlacement::Bearer) => put("authorization", &[b"Bearer ", secret]),
        Some(CredentialPlacement::Basic) => {
            let encoded = Zeroizing::new(STANDARD.encode(secret));
            put("authorization", &[b"Basic ", encoded.as_bytes()]);
        }
        Some(CredentialPlacement::Header(name)) => put(name, &[secret]),
        Some(CredentialPlacement::Query(_)) | None => {}
    }
    put("content-length", &[call.body.len().to_string().as_bytes()]);
    put("connection", &[b"close"]);
    head.extend_from_slice(proxy.map(ProxyHeaders::lines).unwrap_or_default());
    head.extend_from_slice(b"\r\n");
    head
}
