//! Proxied requests to managed services of a node: `/v1/worker/managed-services/{service_id}/proxy:http`.

use super::{ApiVersion, base64};
use crate::decode::{Decode, DecodeContext, Fields, decode_document};
use crate::json::{self, Node};
use crate::problem::Problems;
use ::base64::Engine;
use ::base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A request that is to be passed on.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProxyHttpRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The method.
    pub method: ProxyMethod,
    /// Path and query, which are appended to the service's own address.
    #[schemars(schema_with = "path_schema")]
    pub path: String,
    /// Forwarded headers, each with its values.
    #[schemars(default, schema_with = "headers_schema")]
    pub headers: Vec<(&'static str, String)>,
    /// The body: at most 1,048,576 bytes, in base64.
    #[schemars(default, rename = "body_b64", with = "String", length(max = LONGEST_BODY), regex(pattern = base64::PATTERN))]
    pub body: Vec<u8>,
}

/// Response of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyHttpResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The status, whatever it is.
    #[schemars(range(min = 200, max = 999))]
    pub status: u16,
    /// Forwarded headers, each with its values.
    pub headers: BTreeMap<String, Vec<String>>,
    /// The body, in base64.
    pub body_b64: String,
}

/// A method that is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "they are named as HTTP names them")]
pub enum ProxyMethod {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// Maximum length of a body in either direction, in bytes.
pub const LARGEST_PROXIED_BYTES: usize = 1 << 20;

/// Names of the forwarded request headers.
pub const REQUEST_HEADERS: [&str; 4] = ["accept", "authorization", "content-type", "x-request-id"];

/// Names of the forwarded response headers.
pub const RESPONSE_HEADERS: [&str; 3] = ["content-type", "x-request-id", "cache-control"];

/// Common spellings of these headers, for the schema.
const WRITTEN: [&str; 5] = ["Accept", "Authorization", "Content-Type", "X-Request-Id", "X-Request-ID"];

const LONGEST_BODY: usize = LARGEST_PROXIED_BYTES.div_ceil(3) * 4;
const LONGEST_TEXT: usize = 8_192;
const MOST_VALUES: usize = 16;

/// Visible ASCII without a fragment; no `//` at the beginning, which would name another host.
const PATH_PATTERN: &str = "^/([!\"$-.0-~][!\"$-~]*)?$";
/// Backslashes in front of a query.
const BACKSLASHES: &str = "^[^?]*(\\\\|%5[Cc])";
/// Dot segments in front of a query, which lead out of the path prefix.
const DOTS: &str = "^[^?]*(/|%2[Ff])(\\.|%2[Ee]){1,2}(;[^/?]*)?(/|%2[Ff]|\\?|$)";

/// Visible ASCII, with spaces between.
const VALUE_PATTERN: &str = "^([!-~]([ -~]*[!-~])?)?$";

// === impl ProxyMethod ===

impl ProxyMethod {
    /// Returns the method as it is written in a request.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl Decode for ProxyMethod {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        const ALL: [ProxyMethod; 5] =
            [ProxyMethod::Get, ProxyMethod::Post, ProxyMethod::Put, ProxyMethod::Patch, ProxyMethod::Delete];
        let found = ALL.into_iter().find(|method| node.as_str() == Some(method.as_str()));
        found.or_else(|| at.mistyped(node, "one of GET, POST, PUT, PATCH and DELETE"))
    }
}

// === impl ProxyHttpRequest ===

impl ProxyHttpRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for ProxyHttpRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let method = fields.required("method");
        let path = fields.required("path");
        let headers = fields.or("headers", Headers(Vec::new()));
        let body = fields.or("body_b64", Body(Vec::new()));
        fields.finish()?;
        Some(Self {
            version: version?,
            method: method?,
            path: path.map(|TargetPath(path)| path)?,
            headers: headers.map(|Headers(headers)| headers)?,
            body: body.map(|Body(body)| body)?,
        })
    }
}

struct TargetPath(String);
struct Headers(Vec<(&'static str, String)>);
struct Values(Vec<String>);
struct Body(Vec<u8>);

impl Decode for TargetPath {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        const EXPECTED: &str = "a path such as /v1/things?page=2, of visible ASCII, without `//` at the beginning, `://`, `#`, and `\\`, `.` and `..` between slashes";
        let is_path = |text: &str| {
            text.starts_with('/')
                && !text.starts_with("//")
                && !text.contains("://")
                && text.len() <= LONGEST_TEXT
                && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
                && stays_below(text)
        };
        match node.as_str().filter(|text| is_path(text)) {
            Some(text) => Some(Self(text.to_owned())),
            None => at.mistyped(node, EXPECTED),
        }
    }
}

/// Returns true if the path stays below its prefix, however a server normalises it.
fn stays_below(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default().to_ascii_lowercase();
    let path = path.replace("%2e", ".").replace("%2f", "/").replace("%5c", "\\");
    // Some servers cut parameters off a segment first.
    let is_dots = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
    !path.contains('\\') && !path.split('/').any(is_dots)
}

impl Decode for Headers {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let Node::Object(members) = node else { return at.mistyped(node, "an object of headers") };
        let (mut headers, mut seen) = (Some(Vec::new()), BTreeSet::new());
        for (name, values) in members {
            let mut at = at.member(name);
            if !seen.insert(name) {
                at.refuse("the member once more", "each member once");
                headers = None;
                continue;
            }
            let Some(known) = known(name) else {
                at.refuse("a header that is not forwarded", format!("one of {}", REQUEST_HEADERS.join(", ")));
                headers = None;
                continue;
            };
            match (Values::decode(values, &mut at), &mut headers) {
                (Some(Values(values)), Some(headers)) => {
                    headers.extend(values.into_iter().map(|value| (known, value)));
                }
                _ => headers = None,
            }
        }
        headers.map(Self)
    }
}

/// Returns the header with that spelling.
fn known(name: &str) -> Option<&'static str> {
    let is_spelled = REQUEST_HEADERS.contains(&name) || WRITTEN.contains(&name);
    REQUEST_HEADERS.into_iter().find(|known| is_spelled && known.eq_ignore_ascii_case(name))
}

impl Decode for Values {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        const EXPECTED: &str = "at most 16 texts of visible ASCII, with spaces between";
        let is_value = |text: &str| {
            text.len() <= LONGEST_TEXT
                && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
                && text.trim_matches(' ') == text
        };
        let Node::Array(elements) = node else { return at.mistyped(node, EXPECTED) };
        let texts =
            elements.iter().map(|element| element.as_str().filter(|text| is_value(text)).map(str::to_owned));
        match texts.collect::<Option<Vec<_>>>().filter(|values| values.len() <= MOST_VALUES) {
            Some(values) => Some(Self(values)),
            None => {
                at.refuse("something else", EXPECTED);
                None
            }
        }
    }
}

impl Decode for Body {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        base64::decode(node, at, LARGEST_PROXIED_BYTES).map(Self)
    }
}

fn path_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "Path and query, appended to the base URL of the service.",
        "type": "string",
        "pattern": PATH_PATTERN,
        "not": { "anyOf": [{ "pattern": "://" }, { "pattern": BACKSLASHES }, { "pattern": DOTS }] },
        "maxLength": LONGEST_TEXT,
    })
}

fn headers_schema(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<_> = REQUEST_HEADERS.iter().chain(&WRITTEN).collect();
    json_schema!({
        "description": "Forwarded headers, each with its values.",
        "type": "object",
        "propertyNames": { "enum": names },
        "additionalProperties": {
            "type": "array",
            "items": { "type": "string", "pattern": VALUE_PATTERN, "maxLength": LONGEST_TEXT },
            "maxItems": MOST_VALUES,
        },
    })
}

// === impl ProxyHttpResponse ===

impl ProxyHttpResponse {
    /// The answer with those headers and that body.
    pub fn new(status: u16, headers: Vec<(&'static str, String)>, body: &[u8]) -> Self {
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), vec![value])).collect();
        Self { version: ApiVersion, status, headers, body_b64: STANDARD.encode(body) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(member: &str, value: Value) -> Result<ProxyHttpRequest, Problems> {
        let mut request = json!({ "version": 1, "method": "GET", "path": "/" });
        request[member] = value;
        ProxyHttpRequest::parse(request.to_string().as_bytes())
    }

    #[test]
    fn proxied_path_cannot_leave_the_service() {
        for good in ["/", "/a/b?c=d&e=%2F", "/a//b", "/?u=http:/x", "/a/..b/.c/...", "/a?x=../y"] {
            assert_eq!(parsed("path", json!(good)).unwrap().path, good);
        }
        for bad in [
            "",
            "a",
            "//host/a",
            "http://host/",
            "/a?u=http://x",
            "/a b",
            "/a\r\nHost: x",
            "/a#b",
            "/ä",
            "*",
            "/..",
            "/a/./b",
            "/a/.",
            "/%2e%2E/x",
            "/.%2e",
            "/a%2f..%2fb",
            "/a/..;v=1/b",
            "/a/..\\b",
            "/a%5cb",
        ] {
            assert!(parsed("path", json!(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn proxied_headers_are_allowlisted_and_contain_no_line_breaks() {
        let read = parsed("headers", json!({ "Accept": ["a", "b"], "x-request-id": ["1 2"] })).unwrap();
        let expected = [("accept", "a"), ("accept", "b"), ("x-request-id", "1 2")];
        assert_eq!(read.headers, expected.map(|(name, value)| (name, value.to_owned())));
        for bad in [
            json!({ "host": ["x"] }),
            json!({ "cookie": ["x"] }),
            json!({ "content-length": ["1"] }),
            json!({ "transfer-encoding": ["chunked"] }),
            json!({ "accept ": ["x"] }),
            json!({ "accept": "x" }),
            json!({ "accept": ["x\r\nhost: y"] }),
            json!({ "accept": ["x\u{0}"] }),
            json!({ "accept": [" x"] }),
            json!({ "accept": ["ä"] }),
            json!({ "accept": [1] }),
            json!({ "accept": vec!["x"; MOST_VALUES + 1] }),
            json!([]),
        ] {
            assert!(parsed("headers", bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn proxied_body_is_base64_of_at_most_one_mebibyte() {
        assert_eq!(parsed("body_b64", json!("aGk=")).unwrap().body, b"hi");
        let of = |bytes: usize| json!(STANDARD.encode(vec![0; bytes]));
        assert!(parsed("body_b64", of(LARGEST_PROXIED_BYTES)).is_ok());
        assert!(parsed("body_b64", of(LARGEST_PROXIED_BYTES + 1)).is_err());
        for bad in ["aGk", "a Gk=", "aGl=", "*"] {
            assert!(parsed("body_b64", json!(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn proxy_request_rejects_other_methods_and_members() {
        for bad in ["get", "CONNECT", "TRACE", "OPTIONS", "HEAD", ""] {
            assert!(parsed("method", json!(bad)).is_err(), "{bad:?}");
        }
        assert!(parsed("url", json!("http://host/")).is_err());
        assert!(parsed("version", json!(2)).is_err());
    }
}
