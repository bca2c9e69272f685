//! Tests of credentials that are injected, and never come back.

use super::house::{ProxyRig, UP, WebAnswer, config, outcome};
use super::upstream::AfterAnswer;
use crate::tls::authority::{Authority, NOW};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;
use tempfile::TempDir;

const SECRET: &str = "ghp_aB/c+d=0123456789";
const KEY_ID: &str = "AKIDEXAMPLE";
const KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

struct Rig {
    house: ProxyRig,
    _authority: Authority,
    folder: TempDir,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, secret) in
            [("token", SECRET), ("id", KEY_ID), ("key", KEY), ("session", "a-session-token")]
        {
            std::fs::write(folder.path().join(name), secret).unwrap();
        }
        let authority = Authority::new("house");
        let house = ProxyRig::looking_into(&section(folder.path()), authority.server(UP, NOW), &authority);
        Self { house, _authority: authority, folder }
    }

    fn get(&self, path: &str, headers: &str) -> WebAnswer {
        self.house.get_inside(path, headers)
    }

    /// Asserts that the request was sent with that text in its head.
    #[track_caller]
    fn assert_filled(&self, path: &str, headers: &str, expected: &str) {
        let told = self.get(path, headers);
        assert_eq!(told.status, 200, "{path} {headers}: {}", told.text);
        let head = self.house.upstream.heads().pop().unwrap();
        assert!(head.contains(expected), "{head}");
        assert!(!head.contains("belljar"), "{head}");
        assert!(head.contains("accept-encoding: identity"), "{head}");
    }

    /// Asserts that nothing was sent.
    #[track_caller]
    fn assert_refused(&self, path: &str, headers: &str, code: &str) {
        let before = self.house.upstream.connections();
        let told = self.get(path, headers);
        assert_eq!(told.code(), code, "{path} {headers}: {}", told.text);
        assert!(!told.text.contains(SECRET), "{}", told.text);
        assert_eq!(self.house.upstream.connections(), before, "{path} {headers}");
    }
}

fn section(folder: &Path) -> String {
    let file = |name: &str| format!("{{file: {}}}", folder.join(name).display());
    format!(
        "rules:
- {{host: up.test, ports: [PORT], paths: [/v1], networks: [127.0.0.0/8], credentials: [house, bucket, lent]}}
- {{host: up.test, ports: [PORT], networks: [127.0.0.0/8], inspect: true}}
- {{host: up.test, ports: [PORT], paths: [/back, /coded], networks: [127.0.0.0/8], credentials: [house]}}
credentials:
- {{name: house, from: {token}, headers: [authorization, x-api-key], query: [key]}}
- {{name: elsewhere, from: {token}}}
- {{name: lost, from: {{file: /nonexistent/token}}}}
aws_keys:
- {{name: bucket, access_key_id: {id}, secret_access_key: {key}, services: [iam]}}
- {{name: lent, access_key_id: {id}, secret_access_key: {key}, session_token: {session}, services: [iam], regions: [us-east-1]}}
authorities: CA
",
        token = file("token"),
        id = file("id"),
        key = file("key"),
        session = file("session"),
    )
}

fn basic(text: &str) -> String {
    STANDARD.encode(text)
}

#[test]
fn credential_is_injected_into_headers_basic_auth_and_query() {
    let rig = Rig::new();
    let bearer = format!("authorization: Bearer {SECRET}\r\n");
    rig.assert_filled("/v1/x", "Authorization: Bearer belljar:cred:house\r\n", &bearer);
    rig.assert_filled("/v1", "X-Api-Key: belljar:cred:house\r\n", &format!("x-api-key: {SECRET}\r\n"));
    for (said, expected) in
        [("user:belljar:cred:house", format!("user:{SECRET}")), ("belljar:cred:house:", format!("{SECRET}:"))]
    {
        let header = format!("Authorization: basic {}\r\n", basic(said));
        rig.assert_filled("/v1", &header, &format!("authorization: Basic {}\r\n", basic(&expected)));
    }
    let encoded = "/v1?a=1&key=ghp_aB%2Fc%2Bd%3D0123456789&b HTTP/1.1\r\n".replace("&b ", "&b=%20 ");
    for query in ["key=belljar:cred:house", "key=belljar%3Acred%3ahouse"] {
        rig.assert_filled(&format!("/v1?a=1&{query}&b=%20"), "", &encoded);
    }
    // The names of the injected credentials are recorded, and nothing of their values.
    let begun = rig.house.ledger.begun();
    assert!(begun.iter().all(|begun| begun.credentials == ["house"]), "{begun:#?}");
    let all = format!("{begun:?} {:?}", rig.house.ledger.ended());
    assert!(!all.contains(SECRET) && !all.contains(&basic(SECRET)));
}

#[test]
fn request_with_an_unusable_placeholder_is_not_sent() {
    let rig = Rig::new();
    let basic = |text: &str| format!("Authorization: Basic {}\r\n", basic(text));
    for (path, headers) in [
        // Another path of the same host.
        ("/v2", "Authorization: Bearer belljar:cred:house\r\n"),
        ("/v10", "Authorization: Bearer belljar:cred:house\r\n"),
        ("/v2?key=belljar:cred:house", ""),
        // Credentials that are not bound there, or don't exist.
        ("/v1", "Authorization: Bearer belljar:cred:elsewhere\r\n"),
        ("/v1", "Authorization: Bearer belljar:cred:nothing\r\n"),
        ("/v1", "Authorization: Bearer belljar:cred:\r\n"),
        ("/v1", "Authorization: Bearer belljar:cred:house belljar:cred:nothing\r\n"),
        ("/v1", "Authorization: Bearer belljar:cred:HOUSE\r\n"),
        // Another place in the request.
        ("/v1/belljar:cred:house", ""),
        ("/v1/belljar%3acred%3ahouse", ""),
        ("/v1", "X-Other: belljar:cred:house\r\n"),
        ("/v1", "Cookie: a=belljar:cred:house\r\n"),
        ("/v1", "User-Agent: belljar:cred:house\r\n"),
        ("/v1?other=belljar:cred:house", ""),
        ("/v1?belljar:cred:house", ""),
        ("/v1?belljar:cred:house=1", ""),
        // With text around the placeholder: a client that chooses it chooses where a server would cut.
        ("/v1", "Authorization: AAAAAAAAAAAAAAAAAAAAAAAA belljar:cred:house\r\n"),
        ("/v1", "Authorization: Bearer xbelljar:cred:house\r\n"),
        ("/v1", "Authorization: Bearer belljar:cred:house x\r\n"),
        ("/v1", "X-Api-Key: x belljar:cred:house\r\n"),
        ("/v1?key=xbelljar:cred:house", ""),
        ("/v1?key=1;q=belljar:cred:house", ""),
        // A signing key can't be used as a text, nor a text as a signing key.
        ("/v1", "Authorization: Bearer belljar:cred:bucket\r\n"),
        ("/v1", "X-Amz-Security-Token: belljar:cred:lent\r\n"),
    ] {
        rig.assert_refused(path, headers, "credential_unresolved");
    }
    for said in ["user:belljar:cred:nothing", "belljar:cred:elsewhere:x", "user:xbelljar:cred:house"] {
        rig.assert_refused("/v1", &basic(said), "credential_unresolved");
    }
    // A user so long that a server could cut within the password when it repeats both; control: the longest allowed user.
    let padded = |length: usize| format!("{}:belljar:cred:house", "u".repeat(length));
    rig.assert_refused("/v1", &basic(&padded(65)), "credential_unresolved");
    rig.assert_filled("/v1", &basic(&padded(64)), "authorization: Basic dXV1");
    // Credentials are not injected without TLS: over plain HTTP, or in a plain HTTP tunnel.
    let told = rig.house.send(
        b"GET http://up.test:PORT/v1 HTTP/1.1\r\nHost: up.test:PORT\r\nAuthorization: belljar:cred:house\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(told.code(), "credential_unresolved", "{}", told.text);
    // Control.
    rig.assert_filled("/v1", "Authorization: Bearer belljar:cred:house\r\n", SECRET);
}

#[test]
fn missing_secret_fails_the_request_and_is_read_again_for_the_next() {
    let rig = Rig::new();
    let file = rig.folder.path().join("token");
    std::fs::remove_file(&file).unwrap();
    rig.assert_refused("/v1", "Authorization: Bearer belljar:cred:house\r\n", "credential_unavailable");
    std::fs::write(&file, "another-secret").unwrap();
    rig.assert_filled("/v1", "Authorization: Bearer belljar:cred:house\r\n", "Bearer another-secret\r\n");
}

#[test]
fn injected_credential_never_comes_back_in_an_answer() {
    let (rig, mut refused) = (Rig::new(), 0);
    for path in ["/back", "/back/chunked", "/back/header", "/coded"] {
        for headers in [
            "Authorization: Bearer belljar:cred:house\r\n".to_owned(),
            format!("Authorization: Basic {}\r\n", basic("user:belljar:cred:house")),
        ] {
            let told = rig.get(path, &headers);
            for secret in [SECRET, &SECRET[..12], &basic(&format!("user:{SECRET}"))[8..20]] {
                assert!(!told.text.contains(secret), "{path} {headers}: {}", told.text);
            }
            refused += 1;
            let repeated = || {
                let ended = rig.house.ledger.ended();
                ended.iter().filter(|record| outcome(record) == "failed: credential_repeated").count()
            };
            belljar_testkit::wait::until(|| repeated() == refused);
        }
    }
    // A value that was injected and stored must not come back, even to a request without placeholders.
    let told = rig.get("/back", &format!("X-Stored: {SECRET}\r\n"));
    assert!(told.code() == "credential_repeated" || !told.text.contains(SECRET), "{}", told.text);
    // Controls: if nothing is injected, everything comes back; and so does an answer without the secret.
    for path in ["/back", "/back/chunked"] {
        assert!(rig.get(path, "Authorization: Bearer mine\r\n").text.contains("mine"), "{path}");
    }
    for path in ["/v1", "/v1/chunked"] {
        let told = rig.get(path, "Authorization: Bearer belljar:cred:house\r\n");
        assert!(told.text.contains("hello"), "{}", told.text);
    }
}

#[test]
fn injected_credential_does_not_come_back_through_another_rule() {
    let rig = Rig::new();
    let port = rig.house.upstream.address.port();
    let elsewhere = format!("rules:\n- {{host: 127.0.0.1, ports: [{port}], networks: [127.0.0.0/8]}}\n");
    let section = section(rig.folder.path()).replace("rules:\n", &elsewhere);
    let section = section.replace("PORT", &rig.house.port());
    rig.house.policy.replace(config(&section.replace("CA", &rig._authority.file().display().to_string())));
    let stored = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{SECRET}", SECRET.len());
    rig.house.upstream.tell(stored, AfterAnswer::Wait);
    let get_elsewhere = || {
        let asked = format!(
            "GET http://127.0.0.1:{port}/log HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        );
        rig.house.send(asked.as_bytes())
    };
    // The rule of this path injects nothing; another rule of the host does.
    let told = rig.get("/v2/log", "");
    assert!(!told.text.contains(SECRET), "{}", told.text);
    // Control: a host that no rule binds the credential to, before it was injected for the run.
    let told = get_elsewhere();
    assert!(told.text.contains(SECRET), "{}", told.text);
    rig.get("/v1", "Authorization: Bearer belljar:cred:house\r\n");
    let told = get_elsewhere();
    assert!(!told.text.contains(&SECRET[..10]), "{}", told.text);
    let repeated = || {
        let ended = rig.house.ledger.ended();
        ended.iter().filter(|record| outcome(record) == "failed: credential_repeated").count()
    };
    belljar_testkit::wait::until(|| repeated() == 3);
}

#[test]
fn answer_that_ends_within_an_injected_credential_is_cut_before_it() {
    let rig = Rig::new();
    let bearer = "Authorization: Bearer belljar:cred:house\r\n";
    for way in ["length", "chunks", "close", "header"] {
        for length in [6, 12, SECRET.len() - 1] {
            let told = rig.get(&format!("/back/cut/{length}/{way}"), bearer);
            assert!(!told.text.contains(&SECRET[..6]), "{way} {length}: {}", told.text);
            let failed = outcome(
                rig.house
                    .ledger
                    .ended()
                    .iter()
                    .rev()
                    .find(|ended| ended.asked.as_ref().unwrap().path.is_some())
                    .unwrap(),
            );
            assert_eq!(failed, "failed: credential_repeated", "{way} {length}");
        }
        // Control: a few characters may end any text.
        let told = rig.get(&format!("/back/cut/4/{way}"), bearer);
        assert!(told.status == 401 && told.text.contains("ghp_"), "{way}: {}", told.text);
    }
}

#[test]
fn scanned_chunked_answer_arrives_complete() {
    let rig = Rig::new();
    let section = "Authorization: Bearer belljar:cred:house\r\n";
    let told = rig.get("/v1", section);
    assert!(told.text.ends_with("\r\n\r\nhello"), "{}", told.text);
    // Equal to the answer without a credential.
    assert_eq!(rig.get("/chunked", "").text.matches("hello").count(), 1);
}

#[test]
fn sigv4_signature_with_a_placeholder_key_is_replaced() {
    let rig = Rig::new();
    let signed = |name: &str, more: &str| {
        format!(
            "X-Amz-Date: 20150830T123600Z\r\nAuthorization: AWS4-HMAC-SHA256 \
             Credential=belljar:cred:{name}/20150830/us-east-1/iam/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature=00\r\n{more}"
        )
    };
    rig.assert_filled("/v1?Version=2010-05-08&Action=ListUsers", &signed("bucket", ""), &format!("Credential={KEY_ID}/20150830/us-east-1/iam/aws4_request, SignedHeaders=host;x-amz-date, Signature="));
    let head = rig.house.upstream.heads().pop().unwrap();
    assert!(!head.contains("Signature=00") && !head.contains(KEY), "{head}");
    rig.assert_filled(
        "/v1",
        &signed("lent", "X-Amz-Security-Token: belljar:cred:lent\r\n"),
        "x-amz-security-token: a-session-token\r\n",
    );
    assert!(
        rig.house
            .upstream
            .heads()
            .pop()
            .unwrap()
            .contains("SignedHeaders=host;x-amz-date;x-amz-security-token,")
    );
    rig.assert_refused("/v1", &signed("house", ""), "credential_unresolved");
    rig.assert_refused("/v2", &signed("bucket", ""), "credential_unresolved");
    rig.assert_refused(
        "/v1",
        &signed("bucket", "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n"),
        "signature_unsupported",
    );
    rig.assert_refused(
        "/v1",
        &signed("bucket", "").replace("host;x-amz-date", "host;x-amz-other"),
        "signature_unsupported",
    );
}
