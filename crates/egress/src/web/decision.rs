//! Destination of a request, read in exactly one way.

use super::refusal::Refusal;
use crate::http1::{BodyLength, RequestHead, Target};
use belljar_policy::egress::{Destination, Host};

/// Route by which a request came.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestRoute<'r> {
    /// As a request to a proxy.
    Proxied(&'r Target),
    /// Through a tunnel to that destination, with TLS or without.
    Inside { destination: &'r Destination, is_secure: bool },
}

const HTTP: u16 = 80;
const HTTPS: u16 = 443;

/// Returns the destination of a request. Its target and its `Host` header must agree.
pub(crate) fn destination(head: &RequestHead, way: RequestRoute<'_>) -> Result<Destination, Refusal> {
    let (destination, usual_port) = match way {
        RequestRoute::Proxied(Target::Origin) => return Err(Refusal::NotForProxy),
        RequestRoute::Proxied(Target::Absolute { authority }) => (read(authority, Some(HTTP))?, Some(HTTP)),
        RequestRoute::Proxied(Target::Authority { .. }) if head.body != BodyLength::Exact(0) => {
            return Err(Refusal::BodyOfTunnel);
        }
        RequestRoute::Proxied(Target::Authority { authority }) => (read(authority, None)?, None),
        RequestRoute::Inside { destination, is_secure } => {
            (destination.clone(), Some(if is_secure { HTTPS } else { HTTP }))
        }
    };
    if let Some(named) = head.header("host") {
        let named = std::str::from_utf8(named).map_err(|_| Refusal::OtherHost)?;
        // Without a port, the header means the port of the target.
        let named =
            read(named, Some(usual_port.unwrap_or(destination.port))).map_err(|_| Refusal::OtherHost)?;
        if named != destination {
            return Err(Refusal::OtherHost);
        }
    }
    Ok(destination)
}

/// Returns the path of a request, with its query.
pub(super) fn path(head: &RequestHead) -> String {
    match &head.query {
        Some(query) => format!("{}?{query}", head.path),
        None => head.path.clone(),
    }
}

pub(super) fn read(authority: &str, usual_port: Option<u16>) -> Result<Destination, Refusal> {
    // A colon within brackets belongs to an IPv6 address.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let port = match (port, usual_port) {
        (Some(text), _) => {
            let is_number = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|port| is_number && *port != 0).ok_or(Refusal::Port)?
        }
        (None, Some(usual)) => usual,
        (None, None) => return Err(Refusal::Port),
    };
    Ok(Destination { host: Host::parse(host)?, port })
}

// === impl RequestRoute ===

impl RequestRoute<'_> {
    /// Returns true if the request came through TLS, so that it can't be read on the wire.
    pub(super) fn is_secure(self) -> bool {
        matches!(self, Self::Inside { is_secure: true, .. })
    }

    /// Returns true for a single request, false for a tunnel.
    pub(super) fn is_request(self) -> bool {
        !matches!(self, Self::Proxied(Target::Authority { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &str) -> Result<String, &'static str> {
        let (head, target) =
            RequestHead::parse_for_proxy(request.as_bytes()).map_err(|_| "malformed_request")?;
        destination(&head, RequestRoute::Proxied(&target))
            .map(|found| found.to_string())
            .map_err(|refusal| refusal.code())
    }

    #[test]
    fn ambiguous_request_destination_is_refused() {
        for (line, host, expected) in [
            ("CONNECT a.example:443", "a.example:443", Ok("a.example:443")),
            ("CONNECT A.Example.:443", "a.example", Ok("a.example:443")),
            ("CONNECT [::1]:443", "[0:0:0:0:0:0:0:1]:443", Ok("[::1]:443")),
            ("CONNECT a.example", "a.example", Err("invalid_port")),
            ("CONNECT a.example:", "a.example", Err("invalid_port")),
            ("CONNECT a.example:0", "a.example", Err("invalid_port")),
            ("CONNECT a.example:65536", "a.example", Err("invalid_port")),
            ("CONNECT a.example:+443", "a.example", Err("invalid_port")),
            ("CONNECT a.example:443:443", "a.example", Err("invalid_host")),
            ("CONNECT user@a.example:443", "a.example", Err("invalid_host")),
            ("CONNECT http://a.example:443", "a.example", Err("invalid_host")),
            ("CONNECT /", "a.example", Err("invalid_port")),
            ("CONNECT a.example:443", "b.example:443", Err("host_mismatch")),
            ("CONNECT a.example:443", "a.example:444", Err("host_mismatch")),
            ("CONNECT a.example:443", "", Err("host_mismatch")),
            ("CONNECT 127.1:443", "127.1:443", Err("invalid_host")),
            ("CONNECT 0x7f000001:443", "0x7f000001:443", Err("invalid_host")),
            ("GET http://a.example/x", "a.example", Ok("a.example:80")),
            ("GET HTTP://A.EXAMPLE:8080", "a.example:8080", Ok("a.example:8080")),
            ("GET http://a.example?x", "a.example", Ok("a.example:80")),
            ("GET http://a.example:80/", "a.example:80", Ok("a.example:80")),
            ("GET http://a.example/", "b.example", Err("host_mismatch")),
            ("GET http://a.example:8080/", "a.example", Err("host_mismatch")),
            ("GET http:///x", "a.example", Err("invalid_host")),
            ("GET http://user:word@a.example/", "a.example", Err("invalid_port")),
            ("GET http://a.example:/", "a.example", Err("invalid_port")),
            ("GET https://a.example/", "a.example", Err("malformed_request")),
            ("GET ftp://a.example/", "a.example", Err("malformed_request")),
            ("GET a.example/", "a.example", Err("malformed_request")),
            ("GET /x", "a.example", Err("not_a_proxy_request")),
            ("OPTIONS *", "a.example", Err("malformed_request")),
            ("GET http://a.example/#x", "a.example", Err("malformed_request")),
        ] {
            let found = asked(&format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(found.as_deref().map_err(|code| *code), expected, "{line}, {host}");
        }
    }

    #[test]
    fn connect_request_with_a_body_is_refused() {
        let body = |header: &str| {
            asked(&format!("CONNECT a.example:1 HTTP/1.1\r\nHost: a.example\r\n{header}\r\n\r\n"))
        };
        assert_eq!(body("Content-Length: 0").as_deref(), Ok("a.example:1"));
        assert_eq!(body("Content-Length: 5"), Err("body_not_allowed"));
        assert_eq!(body("Transfer-Encoding: chunked"), Err("body_not_allowed"));
    }
}
