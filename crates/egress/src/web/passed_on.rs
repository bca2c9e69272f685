//! Which headers of a request or an answer go on.

use crate::http1::Headers;
use std::collections::HashSet;

/// What is between two ends of one connection, and goes no further (RFC 9110 §7.6.1); and what is said of who asks, or of what
/// else is meant than what is asked for, which would be heard behind a decision that has not heard it.
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
    "cf-connecting-ip",
    "client-ip",
    "fastly-client-ip",
    "forwarded-for",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-original-host",
    "x-envoy-original-path",
    "x-forwarded",
    "x-host",
    "x-http-host-override",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-uri",
    "x-original-url",
    "x-originating-ip",
    "x-override-url",
    "x-real-ip",
    "x-remote-addr",
    "x-rewrite-url",
    "true-client-ip",
];

/// All that begin so say who asks.
const FORWARDED: &[u8] = b"x-forwarded-";

/// Those that go on: none that is about a connection, and none that `Connection` says is. A name with `_` in it would be the same
/// as one with `-` to some.
pub(super) fn passed_on(headers: &Headers) -> impl Iterator<Item = (&[u8], &[u8])> {
    let of_connection: HashSet<Vec<u8>> = headers
        .all("connection")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|word| word.trim_ascii().to_ascii_lowercase())
        .collect();
    headers.iter().filter(move |(name, _)| may_pass(name) && !of_connection.contains(*name))
}

/// Whether a header of that name, in lower case, ever goes on.
pub(super) fn may_pass(name: &[u8]) -> bool {
    let is_kept_back = NOT_PASSED_ON.iter().any(|other| other.as_bytes() == name);
    !is_kept_back && !name.starts_with(FORWARDED) && !name.contains(&b'_')
}
