//! What a request is for, read in one way, and whether the policy allows it.

use super::live::Generation;
use super::refusal::Refusal;
use crate::http1::{BodyLength, RequestHead, Target};
use belljar_policy::egress::{Allowed, Asked, Destination, Host};

const HTTP: u16 = 80;

/// Where a request wants to get to. What it says in one place agrees with what it says in another.
pub(crate) fn destination(head: &RequestHead, target: &Target) -> Result<Destination, Refusal> {
    let (authority, usual_port) = match target {
        Target::Origin => return Err(Refusal::NotForProxy),
        Target::Absolute { authority } => (authority, Some(HTTP)),
        Target::Authority { authority } => (authority, None),
    };
    if *target == (Target::Authority { authority: authority.clone() }) && head.body != BodyLength::Exact(0) {
        return Err(Refusal::BodyOfTunnel);
    }
    let destination = read(authority, usual_port)?;
    if let Some(named) = head.header("host") {
        let named = std::str::from_utf8(named).map_err(|_| Refusal::OtherHost)?;
        // Without a port it is for the one that is asked for.
        let named =
            read(named, Some(usual_port.unwrap_or(destination.port))).map_err(|_| Refusal::OtherHost)?;
        if named != destination {
            return Err(Refusal::OtherHost);
        }
    }
    Ok(destination)
}

/// Whether that is allowed.
pub(crate) fn decide(
    generation: &Generation,
    destination: Destination,
    head: &RequestHead,
    target: &Target,
) -> Result<Allowed<Destination>, Refusal> {
    let path = match &head.query {
        Some(query) => format!("{}?{query}", head.path),
        None => head.path.clone(),
    };
    let (asked, is_tunnel) = match target {
        Target::Authority { .. } => (Asked::Tunnel, true),
        _ => (Asked::Request { method: &head.method, path: &path }, false),
    };
    let allowed = generation.policy.decide(destination, asked).map_err(Refusal::Denied)?;
    match is_tunnel && allowed.is_inspected() {
        // Rules about what is said inside can't be held by who doesn't hear it.
        true => Err(Refusal::Uninspected { destination: allowed.value().to_string() }),
        false => Ok(allowed),
    }
}

pub(super) fn read(authority: &str, usual_port: Option<u16>) -> Result<Destination, Refusal> {
    // A colon within brackets belongs to an address.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &str) -> Result<String, &'static str> {
        let (head, target) =
            RequestHead::parse_for_proxy(request.as_bytes()).map_err(|_| "malformed_request")?;
        destination(&head, &target).map(|found| found.to_string()).map_err(|refusal| refusal.code())
    }

    #[test]
    fn what_is_asked_for_is_read_in_one_way_or_not_at_all() {
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
    fn a_tunnel_has_no_body() {
        let body = |header: &str| {
            asked(&format!("CONNECT a.example:1 HTTP/1.1\r\nHost: a.example\r\n{header}\r\n\r\n"))
        };
        assert_eq!(body("Content-Length: 0").as_deref(), Ok("a.example:1"));
        assert_eq!(body("Content-Length: 5"), Err("body_not_allowed"));
        assert_eq!(body("Transfer-Encoding: chunked"), Err("body_not_allowed"));
    }
}
