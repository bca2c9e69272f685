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
    "x-forwarded",
    "x-host",
    "x-originating-ip",
    "x-real-ip",
    "x-remote-addr",
    "true-client-ip",
];

/// All that begin so say who asks.
const FORWARDED: &[u8] = b"x-forwarded-";

/// Words of what a request asks for. A header with one of them in its name says what else is meant: `x-original-url`,
/// `x-tunneled-method`, `x-invoke-path`, `request-uri`.
const ASKED: [&[u8]; 10] =
    [b"authority", b"host", b"method", b"path", b"pathinfo", b"rewrite", b"scheme", b"uri", b"url", b"verb"];

/// Words of it that harmless headers have, too: it takes one of [`OTHERS`] beside them.
const ASKED_AMONG_OTHERS: [&[u8]; 3] = [b"destination", b"destinationurl", b"query"];

/// Words of what is in place of it.
const OTHERS: [&[u8]; 19] = [
    b"actual",
    b"effective",
    b"envoy",
    b"forward",
    b"forwarded",
    b"http",
    b"internal",
    b"new",
    b"orig",
    b"original",
    b"originating",
    b"override",
    b"proxy",
    b"real",
    b"request",
    b"rewritten",
    b"target",
    b"true",
    b"upstream",
];

/// What browsers ask before a request of another origin; it is about that request.
const PREFLIGHT: &[u8] = b"access-control-";

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
    !is_kept_back && !name.starts_with(FORWARDED) && !name.contains(&b'_') && !is_override(name)
}

/// Whether a header of that name says what else is meant than what is asked for: servers and frameworks have many, which no list of
/// names is complete of.
fn is_override(name: &[u8]) -> bool {
    if name.starts_with(PREFLIGHT) {
        return false;
    }
    let has = |words: &[&[u8]]| name.split(|byte| *byte == b'-').any(|word| words.contains(&word));
    has(&ASKED)
        || has(&ASKED_AMONG_OTHERS) && has(&OTHERS)
        || memchr::memmem::find(name, b"override").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_that_overrides_what_is_asked_for_does_not_go_on() {
        for name in [
            "x-original-method",
            "x-original-path",
            "x-original-url",
            "x-original-uri",
            "x-original-host",
            "x-rewrite-url",
            "x-override-url",
            "x-http-method",
            "x-http-method-override",
            "x-method-override",
            "http-method-override",
            "method-override",
            "x-http-path-override",
            "x-http-host-override",
            "x-http-destinationurl",
            "x-request-uri",
            "request-uri",
            "x-real-url",
            "x-envoy-original-host",
            "x-envoy-original-method",
            "x-envoy-original-path",
            "x-host-override",
            "x-forwarded-path",
            "x-host",
            "x-method",
            "x-tunneled-method",
            "x-rewrite",
            "x-matched-path",
            "x-invoke-path",
            "x-replaced-path",
            "x-path",
            "x-uri",
            "url",
            "x-backend-host",
            "x-http-verb",
        ] {
            assert!(!may_pass(name.as_bytes()), "{name}");
        }
        for name in [
            "accept",
            "authorization",
            "content-type",
            "destination",
            "http-referer",
            "x-request-id",
            "x-title",
            "x-github-api-version",
            "x-goog-request-params",
            "x-goog-user-project",
            "x-amz-target",
            "x-amz-content-sha256",
            "x-amz-copy-source",
            "x-ms-version",
            "x-original-filename",
            "access-control-request-method",
            "x-upload-content-type",
            "x-npm-session",
        ] {
            assert!(may_pass(name.as_bytes()), "{name}");
        }
    }
}
