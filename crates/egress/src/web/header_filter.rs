//! Filters the headers of requests and answers before they are forwarded.

use crate::http1::Headers;
use std::collections::HashSet;

/// Hop-by-hop headers (RFC 9110 §7.6.1), and headers that state the client's identity or override the request's target. The
/// server would act on those although the policy did not decide about them.
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

/// Prefix of headers that state the client's identity.
const FORWARDED: &[u8] = b"x-forwarded-";

/// Words for what a request asks for, and for the base of a server's own paths. A header with one of them in its name overrides
/// the request's target: `x-original-url`, `x-tunneled-method`, `x-invoke-path`, `request-uri`, `x-script-name`,
/// `x-originalurl`.
const ASKED: [&[u8]; 17] = [
    b"authority",
    b"base",
    b"host",
    b"hostname",
    b"method",
    b"path",
    b"pathbase",
    b"pathinfo",
    b"prefix",
    b"rewrite",
    b"scheme",
    b"script",
    b"scriptname",
    b"uri",
    b"url",
    b"verb",
    b"vhost",
];

/// Words of that kind that harmless headers have, too. They count only together with one of [`OTHERS`].
const ASKED_AMONG_OTHERS: [&[u8]; 11] = [
    b"destination",
    b"destinationurl",
    b"location",
    b"mount",
    b"pass",
    b"port",
    b"proto",
    b"protocol",
    b"query",
    b"root",
    b"route",
];

/// Words that mark a replacement for the request's own target.
const OTHERS: [&[u8]; 23] = [
    b"actual",
    b"app",
    b"application",
    b"base",
    b"context",
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

/// Words for the client's identity, as a front server reports it to the one behind it.
const ASKING: [&[u8]; 4] = [b"authenticated", b"clientip", b"remote", b"webauth"];

/// Pairs of words that together mean the client's identity.
const ASKING_TOGETHER: [[&[u8]; 2]; 7] = [
    [b"auth", b"request"],
    [b"client", b"cert"],
    [b"client", b"dn"],
    [b"client", b"ip"],
    [b"external", b"address"],
    [b"ssl", b"client"],
    [b"tls", b"client"],
];

/// Prefix of CORS preflight headers. They are about the browser's next request.
const PREFLIGHT: &[u8] = b"access-control-";

/// Returns the headers that are forwarded: no hop-by-hop headers, and none that `Connection` names. A name with `_` is dropped,
/// because some servers treat it as one with `-`.
pub(super) fn passed_on(headers: &Headers) -> impl Iterator<Item = (&[u8], &[u8])> {
    let of_connection: HashSet<Vec<u8>> = headers
        .all("connection")
        .flat_map(|value| value.split(|byte| *byte == b','))
        .map(|word| word.trim_ascii().to_ascii_lowercase())
        .collect();
    headers.iter().filter(move |(name, _)| may_pass(name) && !of_connection.contains(*name))
}

/// Returns true if a header of that lower-case name may be forwarded.
pub(super) fn may_pass(name: &[u8]) -> bool {
    let is_kept_back = NOT_PASSED_ON.iter().any(|other| other.as_bytes() == name);
    let is_about_connection = is_kept_back || name.starts_with(FORWARDED) || says_who_asks(name);
    !is_about_connection && !name.contains(&b'_') && !is_override(name)
}

/// Returns true if a header of that name states the client's identity. The server trusts the host's address and would believe
/// it.
fn says_who_asks(name: &[u8]) -> bool {
    let has = |wanted: &[u8]| name.split(|byte| *byte == b'-').any(|word| word == wanted);
    ASKING.iter().any(|word| has(word))
        || ASKING_TOGETHER.iter().any(|pair| pair.iter().all(|word| has(word)))
}

/// Returns true if a header of that name overrides the request's target. Servers and frameworks have so many of them that no
/// list of names is complete.
fn is_override(name: &[u8]) -> bool {
    if name.starts_with(PREFLIGHT) {
        return false;
    }
    let words = || name.split(|byte| *byte == b'-');
    let has = |wanted: &[&[u8]]| words().any(|word| wanted.contains(&word));
    // Two words without a hyphen between them.
    let is_joined = |word: &[u8]| {
        OTHERS.iter().any(|other| word.strip_prefix(*other).is_some_and(|rest| ASKED.contains(&rest)))
    };
    has(&ASKED)
        || words().any(is_joined)
        || has(&ASKED_AMONG_OTHERS) && has(&OTHERS)
        || memchr::memmem::find(name, b"override").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_identity_headers_are_not_forwarded() {
        for name in [
            "wl-proxy-client-ip",
            "x-azure-clientip",
            "x-envoy-external-address",
            "remote-user",
            "x-remote-user",
            "x-remote-groups",
            "x-webauth-user",
            "x-auth-request-user",
            "x-ssl-client-dn",
            "x-ssl-client-verify",
            "x-client-cert",
            "x-authenticated-user",
        ] {
            assert!(!may_pass(name.as_bytes()), "{name}");
        }
        for name in ["x-auth-user", "x-auth-key", "x-ms-client-request-id", "x-client-name", "from"] {
            assert!(may_pass(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn method_and_path_override_headers_are_not_forwarded() {
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
            "x-script-name",
            "script-name",
            "x-scriptname",
            "x-prefix",
            "x-original-prefix",
            "x-base",
            "x-base-path",
            "x-basepath",
            "x-app-root",
            "x-application-mount",
            "x-original-route",
            "x-original-port",
            "x-originalurl",
            "x-requesturi",
            "x-httpmethod",
            "x-hostname",
            "x-vhost",
            "x-pathbase",
            "x-proxy-pass",
        ] {
            assert!(!may_pass(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn other_headers_are_forwarded() {
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
            "x-database",
            "x-curl-version",
            "x-ms-root-squash",
            "sec-websocket-protocol",
        ] {
            assert!(may_pass(name.as_bytes()), "{name}");
        }
    }
}
