//! Signs requests with an AWS key that the client doesn't have (AWS Signature Version 4).
//!
//! The client signs with a placeholder key. Day, region, service and signed headers are taken from its signature; then the
//! request is signed anew.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use zeroize::Zeroizing;

/// Parts of a client's signature, without the signature itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SignatureClaim<'h> {
    /// Key id, which is a placeholder.
    pub(super) key_id: &'h str,
    /// `20261124`
    date: &'h str,
    region: &'h str,
    service: &'h str,
    signed_headers: Vec<&'h str>,
}

/// Request as it is sent, without its signature.
pub(super) struct UnsignedRequest<'r> {
    pub(super) method: &'r str,
    pub(super) path: &'r str,
    pub(super) query: Option<&'r str>,
    /// All headers, `host` included, by lower-case name.
    pub(super) headers: &'r [(Vec<u8>, Zeroizing<Vec<u8>>)],
    /// Digest of the body in hexadecimal, or the value that stands for it.
    pub(super) payload: &'r str,
}

/// The only supported algorithm.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

// === impl SignatureClaim ===

impl<'h> SignatureClaim<'h> {
    /// Parses the value of an `authorization` header. Returns `None` if it is of another kind or malformed.
    pub(super) fn parse(value: &'h str) -> Option<Self> {
        let rest = value.strip_prefix(ALGORITHM)?.strip_prefix(' ')?;
        let member =
            |name: &str| rest.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
        let mut scope = member("Credential")?.rsplitn(5, '/');
        let end = scope.next().filter(|end| *end == "aws4_request");
        let (service, region, date, key_id) = (scope.next(), scope.next(), scope.next(), scope.next());
        end?;
        let is_word = |text: &&str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let signed_headers: Vec<_> = member("SignedHeaders")?.split(';').collect();
        let is_sorted = signed_headers.is_sorted() && signed_headers.contains(&"host");
        is_sorted.then_some(())?;
        Some(Self {
            key_id: key_id?,
            date: date.filter(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))?,
            region: region.filter(is_word)?,
            service: service.filter(is_word)?,
            signed_headers,
        })
    }

    /// Returns true if the signature is for one of these services and regions. An empty list of regions means all.
    pub(super) fn is_for(&self, services: &[String], regions: &[String]) -> bool {
        let is_one = |all: &[String], one: &str| all.iter().any(|known| known == one);
        is_one(services, self.service) && (regions.is_empty() || is_one(regions, self.region))
    }

    /// Returns true if that header is among the signed ones.
    pub(super) fn signs(&self, name: &str) -> bool {
        self.signed_headers.contains(&name)
    }

    /// Returns the value of `authorization` for that request; `None` if a signed header is missing.
    pub(super) fn sign(
        &self,
        request: &UnsignedRequest<'_>,
        key_id: &[u8],
        (key, has_token): (&[u8], bool),
    ) -> Option<Zeroizing<Vec<u8>>> {
        const TOKEN: &str = "x-amz-security-token";
        let mut names: Vec<&str> =
            self.signed_headers.iter().copied().filter(|name| *name != TOKEN).collect();
        if has_token {
            names.push(TOKEN);
            names.sort_unstable();
        }
        let time = request.value("x-amz-date").and_then(|time| String::from_utf8(time).ok())?;
        if !time.starts_with(self.date) {
            return None;
        }
        let names_signed = names.join(";");
        let canonical = self.canonical(request, &names)?;
        let scope = format!("{}/{}/{}/aws4_request", self.date, self.region, self.service);
        let to_sign = format!("{ALGORITHM}\n{time}\n{scope}\n{}", hex(&Sha256::digest(&*canonical)));
        let mut derived = Zeroizing::new([b"AWS4", key].concat());
        for part in [self.date, self.region, self.service, "aws4_request"] {
            derived = authenticated(&derived, part.as_bytes())?;
        }
        let signature = hex(&authenticated(&derived, to_sign.as_bytes())?);
        let mut value = Zeroizing::new(format!("{ALGORITHM} Credential=").into_bytes());
        value.extend_from_slice(key_id);
        let rest = format!("/{scope}, SignedHeaders={names_signed}, Signature={signature}");
        value.extend_from_slice(rest.as_bytes());
        Some(value)
    }

    /// Returns the canonical request, whose digest is signed.
    fn canonical(&self, request: &UnsignedRequest<'_>, names: &[&str]) -> Option<Zeroizing<Vec<u8>>> {
        // Only S3 takes a path as it is.
        let path = match self.service {
            "s3" | "s3express" => request.path.to_owned(),
            _ => encoded(request.path.as_bytes(), b"/"),
        };
        let mut text = Zeroizing::new(Vec::with_capacity(1024));
        for part in [request.method, "\n", &path, "\n", &canonical_query(request.query), "\n"] {
            text.extend_from_slice(part.as_bytes());
        }
        for name in names {
            text.extend_from_slice(name.as_bytes());
            text.push(b':');
            text.extend_from_slice(&request.value(name)?);
            text.push(b'\n');
        }
        for part in ["\n", &names.join(";"), "\n", request.payload] {
            text.extend_from_slice(part.as_bytes());
        }
        Some(text)
    }
}

// === impl UnsignedRequest ===

impl UnsignedRequest<'_> {
    /// Returns all values of a header as they are signed: with single spaces between words.
    fn value(&self, name: &str) -> Option<Vec<u8>> {
        let mut values = self.headers.iter().filter(|(own, _)| own == name.as_bytes()).peekable();
        values.peek()?;
        let one = |value: &[u8]| {
            let words: Vec<&[u8]> =
                value.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
            words.join(&b' ')
        };
        let all: Vec<Vec<u8>> = values.map(|(_, value)| one(value)).collect();
        Some(all.join(&b','))
    }
}

/// Canonical query string: each parameter's name and value in one encoding.
fn canonical_query(query: Option<&str>) -> String {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return String::new() };
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (encoded(&decoded(name), b""), encoded(&decoded(value), b""))
        })
        .collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// Percent-encodes all but unreserved characters (RFC 3986 §2.3).
pub(crate) fn encoded(text: &[u8], besides: &[u8]) -> String {
    // The text may be a secret: a buffer that grows would leave a copy in freed memory.
    let mut out = String::with_capacity(3 * text.len());
    for byte in text {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || besides.contains(byte);
        match is_plain {
            true => out.push(char::from(*byte)),
            // Writing to a `String` can't fail.
            false => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

fn decoded(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let is_code = |code: &&[u8]| *first == b'%' && code.iter().all(u8::is_ascii_hexdigit);
        let code = behind.get(..2).filter(is_code).and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    out
}

fn authenticated(key: &[u8], text: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut code = Hmac::<Sha256>::new_from_slice(key).ok()?;
    code.update(text);
    Some(Zeroizing::new(code.finalize().into_bytes().to_vec()))
}

/// Returns the digest of a body.
pub(super) fn digest(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> (Vec<u8>, Zeroizing<Vec<u8>>) {
        (name.into(), Zeroizing::new(value.into()))
    }

    /// The examples in AWS's documentation: a request for a list of users, and one to S3.
    #[test]
    fn sigv4_signatures_match_the_aws_examples() {
        let key = b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let iam = [
            header("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
            header("host", "iam.amazonaws.com"),
            header("x-amz-date", "20150830T123600Z"),
        ];
        let claim = SignatureClaim::parse(
            "AWS4-HMAC-SHA256 Credential=belljar:cred:a/20150830/us-east-1/iam/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date, Signature=0",
        );
        let request = UnsignedRequest {
            method: "GET",
            path: "/",
            query: Some("Version=2010-05-08&Action=ListUsers"),
            headers: &iam,
            payload: &digest(b""),
        };
        let claim = claim.unwrap();
        assert_eq!(claim.key_id, "belljar:cred:a");
        let signed = claim.sign(&request, b"AKIDEXAMPLE", (key, false)).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&signed),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date, \
             Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }

    #[test]
    fn sigv4_keeps_s3_paths_unchanged_and_signs_the_session_token() {
        let key = b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let empty = digest(b"");
        let store = [
            header("host", "examplebucket.s3.amazonaws.com"),
            header("range", "bytes=0-9"),
            header("x-amz-content-sha256", &empty),
            header("x-amz-date", "20130524T000000Z"),
        ];
        let text = "AWS4-HMAC-SHA256 Credential=x/20130524/us-east-1/s3/aws4_request,\
                    SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=0";
        let claim = SignatureClaim::parse(text).unwrap();
        let request = UnsignedRequest {
            method: "GET",
            path: "/test.txt",
            query: None,
            headers: &store,
            payload: &empty,
        };
        let signed = claim.sign(&request, b"AKIAIOSFODNN7EXAMPLE", (key, false)).unwrap();
        let signed = String::from_utf8_lossy(&signed);
        assert!(
            signed.ends_with("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            "{signed}"
        );
        assert_eq!(claim.sign(&request, b"A", (key, true)), None, "the token isn't there");
    }

    #[test]
    fn malformed_sigv4_authorization_is_not_parsed() {
        for bad in [
            "AWS4-HMAC-SHA256",
            "AWS4-HMAC-SHA256 Credential=a/20130524/us-east-1/s3/aws4, SignedHeaders=host, Signature=0",
            "AWS4-HMAC-SHA256 Credential=a/2013/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0",
            "AWS4-HMAC-SHA256 Credential=a/20130524/us east/s3/aws4_request, SignedHeaders=host, Signature=0",
            "AWS4-HMAC-SHA256 Credential=a/20130524/r/s3/aws4_request, SignedHeaders=range, Signature=0",
            "AWS4-HMAC-SHA256 Credential=20130524/r/s3/aws4_request, SignedHeaders=host, Signature=0",
            "AWS4-ECDSA-P256-SHA256 Credential=a/20130524/r/s3/aws4_request, SignedHeaders=host, Signature=0",
        ] {
            assert_eq!(SignatureClaim::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sigv4_query_is_canonicalized() {
        for (query, expected) in [
            (None, ""),
            (Some(""), ""),
            (Some("b=2&a=1"), "a=1&b=2"),
            (Some("acl"), "acl="),
            (Some("a=%7e%2f/+%zz"), "a=~%2F%2F%2B%25zz"),
            (Some("a=b=c"), "a=b%3Dc"),
        ] {
            assert_eq!(canonical_query(query), expected, "{query:?}");
        }
    }
}
