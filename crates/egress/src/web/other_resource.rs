//! Headers that name another resource than the request's own: the target or the source of a copy.
//!
//! A server follows them without a further request. So the policy decides about them together with the request.

use super::decision;
use super::refusal::Refusal;
use crate::http1::Headers;
use belljar_policy::egress::Destination;
use std::str;

/// Target of `COPY` and `MOVE` (RFC 4918 §10.3): a URL or a path.
const DESTINATION: &[u8] = b"destination";

/// Parts of header names by which object stores read from elsewhere: `x-amz-copy-source`, `x-ms-rename-source`, `x-copy-from`,
/// and Swift's manifests, whose objects consist of other objects. Vault's header puts a prefix before the path.
const SOURCES: &[&[u8]] = &[
    b"copy-source",
    b"rename-source",
    b"move-source",
    b"copy-from",
    b"object-manifest",
    b"symlink-target",
    b"vault-namespace",
];

/// Checks the headers of a request that is allowed at `destination`. `is_about_paths` is true if no rule allows all paths
/// there. `is_allowed` returns true if the rules allow the request's method at a path there.
pub(super) fn check(
    headers: &Headers,
    (destination, is_about_paths): (&Destination, bool),
    is_allowed: impl Fn(&str) -> bool,
) -> Result<(), Refusal> {
    for (name, value) in headers.iter() {
        let is_good = match name {
            DESTINATION => is_there(value, destination, |path| !is_about_paths || is_allowed(path)),
            name => !is_about_paths || !names_source(name),
        };
        if !is_good {
            return Err(Refusal::OtherResource { header: String::from_utf8_lossy(name).into_owned() });
        }
    }
    Ok(())
}

/// Returns true if a header of that lower-case name names what a server reads instead of the request's own resource.
pub(super) fn names_source(name: &[u8]) -> bool {
    SOURCES.iter().any(|source| name.windows(source.len()).any(|part| part == *source))
}

/// Returns true if a URL or a path names the same host and an allowed path.
fn is_there(value: &[u8], destination: &Destination, is_allowed: impl Fn(&str) -> bool) -> bool {
    let Ok(value) = str::from_utf8(value) else { return false };
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| value.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme)));
    // `//other/x` is on another host. The policy has no such path; where rules don't limit paths, this check finds it.
    let Some(scheme) = scheme else { return !value.starts_with("//") && is_allowed(value) };
    let rest = value.get(scheme.len()..).unwrap_or_default();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let named = decision::read(authority, Some(destination.port));
    named.is_ok_and(|named| named == *destination) && is_allowed(if path.is_empty() { "/" } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::RequestHead;
    use belljar_policy::egress::Host;

    fn checked(header: &str, is_about_paths: bool) -> Result<(), &'static str> {
        let text = format!("COPY http://a.example/pub/a HTTP/1.1\r\nHost: a.example\r\n{header}\r\n\r\n");
        let (head, _) = RequestHead::parse_for_proxy(text.as_bytes()).unwrap();
        let destination = Destination { host: Host::parse("a.example").unwrap(), port: 80 };
        let checked = check(&head.headers, (&destination, is_about_paths), |path| path.starts_with("/pub/"));
        checked.map_err(|refusal| refusal.code())
    }

    #[test]
    fn resource_in_a_header_is_checked_against_host_and_paths() {
        for header in [
            "Destination: http://a.example/priv/evil",
            "destination: /priv/evil",
            "Destination: HTTP://A.example:80/priv",
            "Destination: http://a.example",
            "Destination: priv/evil",
            "Destination: http://a.example/pub/a\r\nDestination: /priv",
            "X-Amz-Copy-Source: /bucket/key",
            "x-goog-copy-source: a",
            "x-ms-rename-source: /a",
            "x-copy-from: a/b",
            "x-oss-copy-source: a",
            "X-Object-Manifest: a/b",
        ] {
            assert_eq!(checked(header, true), Err("other_resource_not_allowed"), "{header}");
            // Control: a rule that allows all paths of the host.
            assert_eq!(checked(header, false), Ok(()), "{header}");
        }
        for header in [
            "Destination: http://b.example/pub/a",
            "Destination: http://a.example:81/pub/a",
            "Destination: http://x@a.example/pub/a",
            "Destination: http:///pub/a",
            "Destination: //b.example/pub/a",
        ] {
            assert_eq!(checked(header, true), Err("other_resource_not_allowed"), "{header}");
            assert_eq!(checked(header, false), Err("other_resource_not_allowed"), "{header}");
        }
        for header in
            ["Destination: http://a.example/pub/b", "Destination: /pub/b", "X-Source: /priv", "Depth: 0"]
        {
            assert_eq!(checked(header, true), Ok(()), "{header}");
        }
    }
}
