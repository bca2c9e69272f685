//! Request of an agent. The host writes its head, and nothing that the agent supplies can end a header line.

use super::super::credential_injection::first_of;
use super::super::hatch_server::WebProxy;
use super::super::header_filter::may_pass;
use super::super::proxied_request::BodyExtent;
use super::{FetchError, FetchTarget, RequestTemplate, repeated};
use crate::http1::limits::REQUEST_HEADERS;
use std::fmt::Write;
use std::time::Duration;
use url::Url;

/// Request of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// Complete URL.
    pub url: String,
    /// HTTP method.
    pub method: Method,
    /// Headers, by name and value.
    pub headers: Vec<(String, String)>,
    /// Body, mostly empty.
    pub body: Vec<u8>,
    /// Maximum number of bytes of the answer's body that is returned.
    pub most_bytes: usize,
    /// Time limit for the whole request.
    pub within: Duration,
}

/// HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are those of RFC 9110 §9.3 and RFC 5789")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

/// Answer to a [`FetchRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchAnswer {
    /// URL that was requested.
    pub url: String,
    /// HTTP status, including a redirect's.
    pub status: u16,
    /// Headers, by lower-case name and value.
    pub headers: Vec<(String, String)>,
    /// Body, up to the requested size. The body of a redirect is left out.
    pub body: Vec<u8>,
    /// True if the body is longer than what is returned.
    pub is_truncated: bool,
}

/// Maximum lengths of a header's name and of its value, in bytes.
const LONGEST_NAME: usize = 128;
const LONGEST_VALUE: usize = 8 << 10;

/// Headers that only the host may set: answers must come unencoded.
const ITS_OWN: [&str; 1] = ["accept-encoding"];

/// Maximum number of headers. It leaves room for those that the host adds.
const MOST_HEADERS: usize = REQUEST_HEADERS - 10;

/// Sends a request once.
pub(super) async fn answered(gate: &WebProxy, request: &FetchRequest) -> Result<FetchAnswer, FetchError> {
    // The semaphore is never closed.
    let _place = gate.fetching.acquire().await;
    let address = |why| FetchError::Address { url: repeated(&request.url), why };
    let headers = request.headers()?;
    let mut url = Url::parse(&request.url).map_err(|_| address("it is not an absolute URL"))?;
    let said = RequestTemplate { method: request.method.as_str(), headers: &headers };
    let wanted = FetchTarget::of(&mut url, &said).map_err(address)?;
    // This finds encoded placeholders, too, as in basic authentication.
    if let Some(name) = first_of(&wanted.head) {
        return Err(FetchError::Header { name, why: "it is a placeholder for a credential" });
    }
    let fetched = wanted.fetch(gate, &request.body, BodyExtent::Beginning(request.most_bytes)).await?;
    let (status, headers, mut body) = (fetched.status, fetched.headers, fetched.body);
    let is_truncated = fetched.is_truncated || body.len() > request.most_bytes;
    body.truncate(request.most_bytes);
    Ok(FetchAnswer { url: url.into(), status, headers, body, is_truncated })
}

// === impl FetchRequest ===

impl FetchRequest {
    /// Returns the headers as lines.
    fn headers(&self) -> Result<String, FetchError> {
        let mut lines = String::new();
        let mut is_named = false;
        if self.headers.len() > MOST_HEADERS {
            let (name, _) = &self.headers[MOST_HEADERS];
            return Err(FetchError::Header { name: repeated(name), why: "there are too many" });
        }
        for (name, value) in &self.headers {
            if let Some(why) = wrong(name, value) {
                return Err(FetchError::Header { name: repeated(name), why });
            }
            is_named |= name.eq_ignore_ascii_case("user-agent");
            put(&mut lines, name, value.trim_matches([' ', '\t']));
        }
        if !is_named {
            put(&mut lines, "user-agent", "belljar");
        }
        if !self.body.is_empty() || self.method.has_body() {
            put(&mut lines, "content-length", &self.body.len().to_string());
        }
        Ok(lines)
    }
}

fn put(lines: &mut String, name: &str, value: &str) {
    // Writing to a `String` can't fail.
    let _ = write!(lines, "{name}: {value}\r\n");
}

/// Returns the error in a header, if there is one (RFC 9110 §5.5 and §5.6.2).
fn wrong(name: &str, value: &str) -> Option<&'static str> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let lower = name.to_ascii_lowercase();
    match () {
        () if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_token) => {
            Some("its name is not a valid header name")
        }
        () if ITS_OWN.contains(&lower.as_str()) || !may_pass(lower.as_bytes()) => Some("agents can't set it"),
        () if value.len() > LONGEST_VALUE => Some("its value is too long"),
        () if value.bytes().any(|byte| byte != b'\t' && (byte < b' ' || byte == 0x7f)) => {
            Some("its value contains a control character")
        }
        () if !value.is_ascii() => Some("its value contains non-ASCII characters"),
        () => None,
    }
}

// === impl Method ===

impl Method {
    /// Returns the method's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Returns true if the method has a body, even an empty one.
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_request_headers_are_rejected() {
        let none = "its name is not a valid header name";
        let own = "agents can't set it";
        let control = "its value contains a control character";
        for (name, value, expected) in [
            ("Accept", "application/json", None),
            ("X-Token", "a\tb", None),
            ("authorization", "Bearer x", None),
            ("", "x", Some(none)),
            ("a b", "x", Some(none)),
            ("a:", "x", Some(none)),
            ("a\r\nhost", "x", Some(none)),
            ("ä", "x", Some(none)),
            ("Host", "b.example", Some(own)),
            ("content-LENGTH", "5", Some(own)),
            ("Transfer-Encoding", "chunked", Some(own)),
            ("Connection", "x-secret", Some(own)),
            ("Keep-Alive", "1", Some(own)),
            ("Upgrade", "h2c", Some(own)),
            ("TE", "trailers", Some(own)),
            ("Trailer", "x", Some(own)),
            ("Expect", "100-continue", Some(own)),
            ("Proxy-Authorization", "x", Some(own)),
            ("Proxy-Connection", "x", Some(own)),
            ("X-Forwarded-For", "127.0.0.1", Some(own)),
            ("X-HTTP-Method-Override", "DELETE", Some(own)),
            ("Content_Length", "5", Some(own)),
            ("Accept-Encoding", "gzip", Some(own)),
            ("x", "a\r\nhost: b", Some(control)),
            ("x", "a\nb", Some(control)),
            ("x", "a\0", Some(control)),
            ("x", "\u{7f}", Some(control)),
            ("x", "ä", Some("its value contains non-ASCII characters")),
        ] {
            assert_eq!(wrong(name, value), expected, "{name:?}: {value:?}");
        }
        assert_eq!(wrong("x", &"x".repeat(LONGEST_VALUE + 1)), Some("its value is too long"));
    }
}
