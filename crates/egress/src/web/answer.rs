//! Answers that the proxy itself gives.

use super::refusal::Refusal;
use serde_json::json;

/// Response head that opens a tunnel.
pub(crate) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Builds a refusal. Many programs show only the status line, so the reason is in it, too.
pub(crate) fn refused(refusal: &Refusal, keeps_alive: bool, has_body: bool) -> Vec<u8> {
    let (status, said) = (refusal.status(), refusal.to_string());
    let problem = json!({
        "type": format!("urn:belljar:egress:{}", refusal.code()),
        "title": "Request refused",
        "status": status,
        "detail": said,
        "rule_needed": refusal.needed(),
    });
    let body = format!("{problem}\n");
    let connection = if keeps_alive { "keep-alive" } else { "close" };
    let mut answer = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: application/problem+json\r\nContent-Length: {}\r\nConnection: {connection}\r\n\
         Proxy-Status: belljar; error={}; details={}\r\n\r\n",
        phrase(&said),
        body.len(),
        error_type(status),
        refusal.code(),
    );
    if has_body {
        answer.push_str(&body);
    }
    answer.into_bytes()
}

/// Makes a text fit for a status line: printable ASCII, at most 120 characters.
fn phrase(said: &str) -> String {
    said.chars().map(|one| if one == ' ' || one.is_ascii_graphic() { one } else { '?' }).take(120).collect()
}

/// Proxy error type of a status (RFC 9209).
fn error_type(status: u16) -> &'static str {
    match status {
        403 => "http_request_denied",
        502 => "destination_unavailable",
        504 => "connection_timeout",
        503 => "proxy_internal_response",
        _ => "http_request_error",
    }
}
